"""Removing an input or an output never raises the first singular value of a task, but removing a sample can.

A gate that is off for some samples removes them from the correlation Σʸˣ that its pathway sees. If the first singular
value could only fall, a pathway would learn its first mode the sooner the more samples it is on for. The proof of
proposition 4.2 uses this. Removing a column of x or y takes a column or row out of Σʸˣ, which cannot raise it. Removing
a sample takes a term out of Σʸˣ = ⟨y xᵀ⟩. If all numbers are positive, this cannot raise it either. With numbers of
both signs terms cancel, and in a third of random data sets it does. What decides the first mode does not decide the
others: see `the_twin_is_not_unique`, where gatings with weaker first modes learn the task sooner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .._figures.panels import border, panels
from .._figures.style import COLOURS, GREY
from ._kit.labelled import table
from ._kit.parameters import Count, Seed, checked
from .base import Claim, Result, at_most, between, ours, paper

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.figure import Figure

THEME, PLACE = "twins", 8
REFERENCE = {"jarvis2025": "proposition 4.2, appendix E"}
QUICK = {}
CAPTION = """
A part of a random data set of 20 samples, 8 inputs and 12 outputs is removed. Histograms of the first singular value of
the input-output correlation Σʸˣ after the removal over that before. **a** One input is removed, **b** one output, both
from normally distributed data; **c** one sample of positive data, absolute values of normal ones; **d** one sample of
normal data, which have both signs. Data sets in which the singular value rises are in orange. The grey line is a ratio
of 1; a few ratios below 0.7 are not shown.
"""
ALT = """
Four histograms. In three all ratios are below 1; where a sample of data with both signs is removed, the ratios lie on
both sides of 1.
"""
REMOVED = {
    "input": "One input removed: never rises",
    "output": "One output removed: never rises",
    "positive": "One sample removed, positive data: never rises",
    "signed": "One sample removed, both signs: can rise",
}
SHAPE = (20, 8, 12)  # samples, inputs and outputs of random data


@checked
def run(*, trials: Count = 2000, seed: Seed = 0) -> Result:
    """`trials`: number of random data sets."""
    rng, (n, d_in, d_out) = np.random.default_rng(seed), SHAPE
    x, y = rng.normal(size=(trials, n, d_in)), rng.normal(size=(trials, n, d_out))
    size_x, size_y = np.abs(x), np.abs(y)
    ratios = [
        _first(x[..., 1:], y) / _first(x, y),
        _first(x, y[..., 1:]) / _first(x, y),
        _first(size_x[:, 1:], size_y[:, 1:]) / _first(size_x, size_y),
        _first(x[:, 1:], y[:, 1:]) / _first(x, y),
    ]
    return Result(xarray.Dataset({"ratio": table(ratios, "removed", "trial")}, coords={"removed": list(REMOVED)}))


def _first(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " trial"]:
    """The first singular value of N Σʸˣ of every data set."""
    return np.linalg.svd(np.swapaxes(y, 1, 2) @ x, compute_uv=False)[:, 0]


def claims(result: Result) -> list[Claim]:
    ratio = result.data.ratio
    trials = ratio.sizes["trial"]
    raised = ratio > 1 + 1e-12  # by more than rounding
    of_columns = raised.sel(removed=["input", "output"]).mean("trial").max() * trials
    positive, signed = (raised.sel(removed=name).mean() for name in ("positive", "signed"))
    return [
        ours(
            "Data with both signs: share of data sets in which removing a sample raises the first singular value",
            between(signed, 0.25, 0.45),
            headline=True,
            panel="d",
        ),
        paper(
            f"Removing an input or output raises the first singular value: number of {trials} data sets",
            at_most(of_columns, 0),
            headline=True,
            panel="a",
        ),
        paper(
            f"Removing a sample of positive data raises the first singular value: number of {trials} data sets",
            at_most(positive * trials, 0),
            panel="c",
        ),
    ]


def figure(result: Result) -> Figure:
    ratio = result.data.ratio
    sheet, at = panels("ab;cd", row=2.3, sharex=True, sharey=True)
    for letter, (name, title) in zip("abcd", REMOVED.items(), strict=True):
        one, bins = ratio.sel(removed=name), [0.7 + 0.01 * k for k in range(51)]
        at[letter].hist(one, bins, color=GREY)
        at[letter].hist(one[one > 1 + 1e-12], bins, color=COLOURS[1])
        border(at[letter], 1.0)
        at[letter].set_title(title)
    for letter in "ac":
        at[letter].set_ylabel("number of data sets")
    for letter in "cd":
        at[letter].set_xlabel("first singular value, after / before")
    return sheet
