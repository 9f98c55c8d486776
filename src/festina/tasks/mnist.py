"""Handwritten digits: MNIST from files of the user's own, and a synthetic stand-in that says that it is one.

The four files of the data set are never part of festina. They are looked for in `directory`, in the folder `mnist` of
the folder that the environment variable FESTINA_DATA names, and in festina's cache; `download=True` fetches them into
`directory`, or else into the cache. Every file is checked by its md5 sum before it is read, and before a download is
kept.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped, UInt8

from .._foundation.checks import choice, listed, path, truth, whole
from .._foundation.checks import seed as checked_seed
from .._foundation.errors import BadInput
from .._foundation.files import read_plain, write_whole
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays

__all__ = ["mnist", "mnist_stand_in"]

SUMS = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
SCALINGS = ("normalised", "unit", "raw")
MEAN, SPREAD = 0.1307, 0.3081  # of all pixels of the train set, between 0 and 1
SIDE, CLASSES = 28, 10


@recipe
def mnist(
    samples: int | None = None,
    *,
    part: str = "train",
    digits: int | Sequence[int] | None = None,
    scaling: str = "normalised",
    directory: str | None = None,
    download: bool = False,
) -> Task:
    """Digits as rows of 784 pixels with one-hot targets, in the order of the files; label "digit".

    Args:
        samples: how many, from the first on; None takes all.
        part: "train" (60,000) or "test" (10,000).
        digits: which digits to keep, for example (0, 1); targets keep all ten columns.
        scaling: pixels "normalised" (mean 0, deviation 1 over the train set), "unit" (0 to 1) or "raw" (0 to 255).
        directory: a folder with the four files; None looks into FESTINA_DATA and the cache.
        download: fetch files that are missing, into `directory` if it is given and else into the cache.
    """
    kinds = {"train": "train", "test": "t10k"}
    choice(part, "part", kinds)
    choice(scaling, "scaling", SCALINGS)
    truth(download, "download")
    count = None if samples is None else whole(samples, "samples")
    wanted = None if digits is None else _checked_digits(digits)
    directory = None if directory is None else str(path(directory, "directory"))
    pixels = _read(f"{kinds[part]}-images-idx3-ubyte.gz", directory, download, header=16).reshape(-1, SIDE * SIDE)
    digit = _read(f"{kinds[part]}-labels-idx1-ubyte.gz", directory, download, header=8)
    if wanted is not None:
        kept = np.isin(digit, wanted)
        pixels, digit = pixels[kept], digit[kept]
    count = len(digit) if count is None else count
    if not 0 < count <= len(digit):
        raise BadInput(f"{count} samples of {len(digit)}", f"1 to {len(digit)}", "lower samples, or keep more digits")
    return _labelled(pixels[:count].astype(float), digit[:count], scaling)


@recipe
def mnist_stand_in(samples: int = 1000, *, seed: int = 0, scaling: str = "normalised") -> Task:
    """Synthetic images of the size of MNIST's, ten blurred prototypes with noise, for machines without the data."""
    choice(scaling, "scaling", SCALINGS)
    random = np.random.default_rng(checked_seed(seed))
    coarse = random.random((CLASSES, 7, 7)) ** 3
    prototypes = np.kron(coarse, np.ones((4, 4))).reshape(CLASSES, -1)
    digit = np.arange(whole(samples, "samples")) % CLASSES
    pixels = 255 * np.clip(prototypes[digit] + 0.1 * random.standard_normal((len(digit), SIDE * SIDE)), 0, 1)
    return _labelled(np.round(pixels), digit, scaling)


def _checked_digits(digits: int | Sequence[int]) -> list[int]:
    is_one = isinstance(digits, (int, np.integer))
    kept = (digits,) if is_one else listed(digits, "digits", "digits to keep", "give digits=(0, 1)")
    return [whole(digit, "digits", least=0, most=CLASSES - 1) for digit in kept]


def _labelled(pixels: Float[np.ndarray, "sample pixel"], digit: Shaped[np.ndarray, " sample"], scaling: str) -> Task:
    x = {"raw": pixels, "unit": pixels / 255, "normalised": (pixels / 255 - MEAN) / SPREAD}[scaling]
    features = [f"is {k}" for k in range(CLASSES)]
    return from_arrays(x, np.eye(CLASSES)[digit], features=features, labels={"digit": digit.astype(int)})


def _read(name: str, directory: str | None, download: bool, header: int) -> UInt8[np.ndarray, " byte"]:
    file = _file(name, directory, download)
    data = read_plain(file, f"MNIST's {name}")
    _check_sum(data, name, str(file), "remove the file and get it anew")
    return np.frombuffer(gzip.decompress(data), np.uint8, offset=header)


def _check_sum(data: bytes, name: str, source: str, do: str) -> None:
    md5 = hashlib.md5(data).hexdigest()
    if md5 != SUMS[name]:
        raise BadInput(f"{source} has the md5 sum {md5}", f"{SUMS[name]}, that of MNIST's {name}", do)


def _file(name: str, directory: str | None, download: bool) -> Path:
    """The file of this name, in the first place that has it, or downloaded."""
    data_folder = os.environ.get("FESTINA_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "festina" / "mnist"
    places = [Path(directory)] if directory else [*([Path(data_folder) / "mnist"] if data_folder else []), cache]
    for place in places:
        if (place / name).is_file():
            return place / name
    if download:
        kept, by_hand = places[-1], f"or put the files into {places[-1]} by hand"
        try:
            kept.mkdir(parents=True, exist_ok=True)
            with urllib.request.urlopen(MIRROR + name) as answer:
                data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            do = f"check the connection, {by_hand}"
            raise BadInput(f"{MIRROR + name} could not be fetched ({error})", "the file", do) from None
        # A file with its final name is trusted from then on, so check the sum before writing it.
        _check_sum(data, name, MIRROR + name, f"download it again, {by_hand}")
        write_whole(kept, {name: data})
        return kept / name
    raise BadInput(
        f"no {name} in {', '.join(map(str, places))}",
        f"the files of MNIST: {', '.join(SUMS)}",
        "give directory=, set FESTINA_DATA to the folder above mnist/, or download=True; "
        "tasks.mnist_stand_in() needs no files",
    )
