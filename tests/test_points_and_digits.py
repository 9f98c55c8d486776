"""Tasks of the two-point theory: two points, exclusive or in bits, blobs, and digits."""

import gzip
import hashlib
import os

import numpy as np
import pytest

import festina as fs

HAS_FILES = "FESTINA_DATA" in os.environ


def test_two_points_are_as_far_apart_as_asked():
    task = fs.tasks.two_point(dx=0.5, dy=-2.0)
    np.testing.assert_allclose(np.diff(task.x, axis=0), [[0.5]])
    np.testing.assert_allclose(np.diff(task.y, axis=0), [[-2.0]])
    as_run = fs.tasks.two_point()
    np.testing.assert_allclose([np.diff(as_run.x[:, 0]) ** 2, np.diff(as_run.y[:, 0]) ** 2], [[1.0], [0.5]])
    with pytest.raises(fs.BadInput, match="identical inputs"):
        fs.tasks.two_point(dx=0)


def test_exclusive_or_in_bits():
    task = fs.tasks.xor(form="bits")
    for bits, answer in zip(task.x.astype(int).tolist(), task.y[:, 0], strict=True):
        assert answer == bits[0] ^ bits[1]
    with pytest.raises(fs.UnknownName, match="bits"):
        fs.tasks.xor(form="bit")
    with pytest.raises(fs.BadInput, match=r'(?s)margin = 0.5 with form="bits".*no third input.*leave margin out'):
        fs.tasks.xor(0.5, form="bits")


def test_blobs_show_what_is_asked_for_in_one_of_two_contexts():
    task = fs.tasks.blobs(positions=4, pixels=5)
    assert task.x.shape == (32, 27)
    np.testing.assert_allclose(task.x[:, :25].sum(axis=1), 1)
    places = np.linspace(-1, 1, 4)
    grid = np.linspace(-1, 1, 5)
    for row, target, context, first, second in zip(task.x, task.y[:, 0], *task.labels.values(), strict=True):
        centre = places[int(first)], places[int(second)]
        assert target == centre[int(context)]
        assert row[25 + int(context)] == 1
        image = np.array([[np.exp(-((a - centre[0]) ** 2 + (b - centre[1]) ** 2) / 2) for b in grid] for a in grid])
        np.testing.assert_allclose(row[:25], (image / image.sum()).ravel())


def test_the_stand_in_says_that_it_is_one():
    task = fs.tasks.mnist_stand_in(40, seed=3)
    assert "mnist_stand_in" in repr(task)
    assert task.x.shape == (40, 784)
    np.testing.assert_array_equal(np.argmax(task.y, axis=1), task.labels["digit"])
    raw = fs.tasks.mnist_stand_in(40, seed=3, scaling="raw").x
    np.testing.assert_allclose(task.x, (raw / 255 - 0.1307) / 0.3081)
    assert raw.min() >= 0
    assert raw.max() <= 255


@pytest.mark.skipif(not HAS_FILES, reason="needs the files of MNIST: set FESTINA_DATA")
def test_digits_of_the_files():
    task = fs.tasks.mnist(5)
    np.testing.assert_array_equal(task.labels["digit"], [5, 0, 4, 1, 9])
    # The first 0 and the first 1, by an independent computation.
    assert np.sum((task.x[1] - task.x[3]) ** 2) == pytest.approx(1240, abs=0.5)
    two = fs.tasks.mnist(30, digits=(0, 1), part="test", scaling="raw")
    assert set(two.labels["digit"]) == {0, 1}
    assert two.x.max() == 255


def files(folder, images):
    """Files of the right names, with the given bytes for the images."""
    folder.mkdir(exist_ok=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(images)
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + bytes([1, 0]), mtime=0))
    return str(folder)


def test_files_are_read_where_the_sums_agree(tmp_path, monkeypatch):
    import importlib

    module = importlib.import_module("festina.tasks.mnist")
    images = gzip.compress(bytes(16) + bytes(range(256)) * 6 + bytes(32), mtime=0)
    folder = files(tmp_path / "own", images)
    with pytest.raises(fs.BadInput) as refusal:
        fs.tasks.mnist(2, directory=folder)
    assert "md5" in refusal.value.seen
    assert "get it anew" in refusal.value.do
    own = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in (tmp_path / "own").iterdir()}
    monkeypatch.setattr(module, "SUMS", {**module.SUMS, **own})
    task = fs.tasks.mnist(2, directory=folder, scaling="raw")
    np.testing.assert_array_equal(task.x.ravel()[:300], np.arange(300) % 256)
    np.testing.assert_array_equal(task.labels["digit"], [1, 0])
    monkeypatch.setenv("FESTINA_DATA", str(tmp_path))
    (tmp_path / "own").rename(tmp_path / "mnist")
    np.testing.assert_array_equal(fs.tasks.mnist(2, scaling="raw").x, task.x)


def test_missing_files_are_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FESTINA_DATA", raising=False)
    for options in ({}, {"directory": str(tmp_path)}):
        with pytest.raises(fs.BadInput) as refusal:
            fs.tasks.mnist(2, **options)
        assert "no train-images-idx3-ubyte.gz in" in refusal.value.seen
        assert "mnist_stand_in" in refusal.value.do


def test_a_download_that_fails_says_so(tmp_path, monkeypatch):
    import urllib.request

    def unreachable(address):
        raise OSError("no route")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FESTINA_DATA", raising=False)
    with pytest.raises(fs.BadInput) as refusal:
        fs.tasks.mnist(2, download=True)
    assert "no route" in refusal.value.seen
    assert list((tmp_path / "festina" / "mnist").iterdir()) == []


@pytest.mark.parametrize("in_directory", [False, True])
def test_a_download_is_kept_where_it_was_asked_for_if_its_sum_agrees(in_directory, tmp_path, monkeypatch):
    import importlib
    import urllib.request

    module = importlib.import_module("festina.tasks.mnist")
    sent = tmp_path / "sent"
    files(sent, gzip.compress(bytes(16) + bytes(range(256)) * 6 + bytes(32), mtime=0))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("FESTINA_DATA", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", lambda address: (sent / address.rsplit("/", 1)[1]).open("rb"))
    kept = tmp_path / "own" if in_directory else tmp_path / "festina" / "mnist"
    options = dict(scaling="raw", directory=str(kept) if in_directory else None)
    with pytest.raises(fs.BadInput) as refusal:
        fs.tasks.mnist(2, download=True, **options)
    assert "train-images-idx3-ubyte.gz has the md5 sum" in refusal.value.seen
    assert f"download it again, or put the files into {kept}" in refusal.value.do
    assert list(kept.iterdir()) == []
    own = {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in sent.iterdir()}
    monkeypatch.setattr(module, "SUMS", {**module.SUMS, **own})
    task = fs.tasks.mnist(2, download=True, **options)
    assert sorted(path.name for path in kept.iterdir()) == sorted(own)
    monkeypatch.delattr(urllib.request, "urlopen")
    np.testing.assert_array_equal(fs.tasks.mnist(2, **options).x, task.x)


def test_unknown_parts_and_scalings_are_refused():
    with pytest.raises(fs.UnknownName, match=r"(?s)unknown part 'valid'.*train, test"):
        fs.tasks.mnist(2, part="valid")
    for make in (fs.tasks.mnist, fs.tasks.mnist_stand_in):
        with pytest.raises(fs.UnknownName, match=r"(?s)unknown scaling 'norm'.*raw, unit.*did you mean 'normalised'"):
            make(2, scaling="norm")
