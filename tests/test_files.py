"""Files: damage is answered in words, a full disk leaves what was there, one run at a time has a folder."""

from __future__ import annotations

import errno
import json
import os
import random
import stat
import subprocess
import sys
import textwrap
import threading

import h5py
import numpy as np
import pytest
import xarray

import festina as fs
from festina._figures.style import new_figure
from festina._foundation import files, netcdf
from festina._foundation.files import alone_in, write_whole
from festina._reporting.report_files import is_done
from festina._reporting.run import PARTS


def trajectory(points=40):
    times = np.linspace(0, 1, points)
    values = {"loss": np.exp(-times), "modes": np.outer(times, [1.0, 2.0])}
    axes = {"loss": ("time",), "modes": ("time", "mode")}
    return fs.Trajectory(times, values, axes, "simulate", {"seconds": 1.5}, {"mode": ["one", "two"]})


@pytest.fixture
def saved(tmp_path):
    trajectory().save(tmp_path / "run.nc")
    return tmp_path / "run.nc"


def damaged(content, count, seed=0):
    """Bytes with one thing wrong each: flips, cuts, swaps, blanks, lost and added bytes, a lost seal with a flip."""
    dice, size = random.Random(seed), len(content)
    for k in range(count):
        b, i, j = bytearray(content), dice.randrange(size), dice.randrange(size - 64)
        length = dice.choice([1, 8, 64, 512])
        match k % 10:
            case 0:
                b[i] ^= 1 << dice.randrange(8)
            case 1:
                b[: i + 1] = bytes(byte ^ (dice.random() < 0.01) for byte in b[: i + 1])
            case 2:
                b = b[:i]
            case 3:
                b = b[: size - dice.randrange(1, 2 * netcdf.SEAL)]
            case 4:
                b[j : j + 64], b[:64] = b[:64], b[j : j + 64]
            case 5:
                b[i : i + length] = bytes(len(b[i : i + length]))
            case 6:
                b += dice.randbytes(length)
            case 7:
                del b[i : i + length]
            case 8:
                b[i:i] = dice.randbytes(length)
            case 9:
                b = b[: size - netcdf.SEAL]
                b[i % len(b)] ^= 1 << dice.randrange(8)
        if b != content:
            yield bytes(b)


def test_damaged_trajectories_are_refused_in_words(saved):
    content, seen = saved.read_bytes(), 0
    for wrong in damaged(content, 500):
        saved.write_bytes(wrong)
        with pytest.raises(fs.BadInput, match="cannot be read as netCDF"):
            fs.Trajectory.load(saved)
        seen += 1
    assert seen > 444


def test_a_file_without_its_seal_never_reaches_hdf5(saved, monkeypatch):
    saved.write_bytes(saved.read_bytes()[: -netcdf.SEAL])
    monkeypatch.setattr(h5py, "File", None)
    with pytest.raises(fs.BadInput, match="its checksum is missing: the file was damaged, or rewritten"):
        fs.Trajectory.load(saved)


def test_other_programs_read_sealed_files(saved):
    for engine in (None, "h5netcdf"):
        with xarray.open_dataset(saved, engine=engine) as data:
            np.testing.assert_array_equal(data["loss"], trajectory()["loss"])
    with h5py.File(saved) as file:
        assert file["modes"].shape == (40, 2)


def test_files_of_earlier_versions_are_read_with_a_warning(tmp_path):
    trajectory().to_xarray().to_netcdf(tmp_path / "old.nc", engine="h5netcdf")
    with pytest.warns(UserWarning, match="has no checksum, so damage may pass unseen"):
        again = fs.Trajectory.load(tmp_path / "old.nc")
    np.testing.assert_array_equal(again["modes"], trajectory()["modes"])
    bare = trajectory().to_xarray().drop_attrs().assign_attrs(format="festina trajectory 1")
    bare.to_netcdf(tmp_path / "bare.nc", engine="h5netcdf")
    with (
        pytest.warns(UserWarning, match="no check"),
        pytest.raises(fs.BadInput, match="lacks times, source or provenance"),
    ):
        fs.Trajectory.load(tmp_path / "bare.nc")


def test_a_file_that_declares_more_than_it_has_is_not_read(tmp_path):
    with h5py.File(tmp_path / "huge.nc", "w") as file:
        file.create_dataset("loss", (10**13,), float)
    with pytest.raises(fs.BadInput, match="declares 80,000,000,000,000 bytes of numbers"):
        fs.Trajectory.load(tmp_path / "huge.nc")


def test_what_is_no_plain_file_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    words = {
        tmp_path: "is a folder",
        tmp_path / "loop": "cannot be read",
        tmp_path / "dangling": "no file",
        tmp_path / "pipe": "is a pipe or a device",
        "/dev/zero": "is a pipe or a device",
        "a\0b": "a path, as a text",
        tmp_path / ("x" * 300): "cannot be read",
    }
    for path, seen in words.items():
        with pytest.raises(fs.BadInput, match=seen):
            fs.Trajectory.load(path)


def test_files_of_other_users_are_refused(saved):
    saved.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        with pytest.raises(fs.BadInput, match=r"cannot be read \(Permission denied\)"):
            fs.Trajectory.load(saved)
        with pytest.raises(fs.BadInput, match="was not written: Permission denied"):
            write_whole("/", {"x": b""})
    finally:
        os.seteuid(user)


@pytest.fixture
def report(monkeypatch):
    """A whole report that costs nothing."""
    experiment = fs.Experiment.named("networks_learn_mode_by_mode")
    monkeypatch.setattr(experiment.module, "figure", lambda result: new_figure()[0])
    data = xarray.Dataset({"a": ("time", np.arange(3.0))})
    facts = {"experiment": experiment.name, "digest": "d", "outcome": "as expected", "networks": {}}
    return fs.Report(experiment, fs.Result(data), (fs.Claim.at_most("a", 1.0, 2.0),), facts)


def test_damaged_reports_are_refused_and_run_again(report, tmp_path):
    report.save(tmp_path)
    assert is_done(tmp_path, "d")
    for name in ("report.json", "data.nc"):
        content = (tmp_path / name).read_bytes()
        for wrong in damaged(content, 60):
            (tmp_path / name).write_bytes(wrong)
            try:
                same = fs.Report.load(tmp_path).to_dict() == json.loads(content)
            except fs.BadInput:
                same = True
            assert same or wrong.isspace()
        (tmp_path / name).write_bytes(content)
    fs.Report(report.experiment, fs.Result(report.result.data + 1), report.claims, report.facts).save(tmp_path / "b")
    (tmp_path / "data.nc").write_bytes((tmp_path / "b" / "data.nc").read_bytes())
    with pytest.raises(fs.BadInput, match=r"data\.nc is not the file that was written with report\.json"):
        fs.Report.load(tmp_path)
    assert not is_done(tmp_path, "d")
    (tmp_path / "report.json").write_text("[" * 100_000)
    with pytest.raises(fs.BadInput, match=r"report\.json cannot be read"):
        fs.Report.load(tmp_path)


def test_reports_of_earlier_versions_are_read_with_a_warning(report, tmp_path):
    report.save(tmp_path)
    facts = json.loads((tmp_path / "report.json").read_text())
    del facts["files"], facts["checksum"]
    (tmp_path / "report.json").write_text(json.dumps(facts))
    with pytest.warns(UserWarning, match="has no checksums"):
        assert fs.Report.load(tmp_path).claims == report.claims
    facts["claims"][0]["txt"] = facts["claims"][0].pop("text")
    (tmp_path / "report.json").write_text(json.dumps(facts))
    with pytest.raises(fs.BadInput, match="has other claims than festina's"):
        fs.Report.load(tmp_path)


def test_pictures_of_an_earlier_report_do_not_stay(report, tmp_path):
    (tmp_path / "network-7.svg").write_text("old")
    report.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.nc", "figure.png", "figure.svg", "report.json"]


def test_a_full_disk_is_named_and_leaves_what_was_there(report, saved, monkeypatch):
    folder = saved.parent / "report"
    report.save(folder)
    before = {path: path.read_bytes() for path in (saved, *folder.iterdir())}

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for save in (lambda: trajectory(50).save(saved), lambda: report.save(folder)):
            with pytest.raises(fs.BadInput, match=r"was not written: the disk at \S+ is full, with [\d,]+ bytes free"):
                save()
    assert {path: path.read_bytes() for path in (saved, *folder.iterdir())} == before
    assert is_done(folder, "d")
    assert sorted(path.name for path in saved.parent.iterdir()) == ["report", "run.nc"]


def test_a_limit_on_the_size_of_files_ends_nothing_but_the_save(tmp_path):
    """The system refuses to write, as on a full disk, in the middle of the file."""
    code = """
        import resource, numpy as np, festina as fs
        times = np.linspace(0, 1, 20_000)
        make = lambda n: fs.Trajectory(times[:n], {"loss": times[:n]}, {"loss": ("time",)}, "simulate")
        make(100).save("run.nc")
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        for path in ("run.nc", "new.nc"):
            try:
                make(20_000).save(path)
            except fs.BadInput as error:
                print(error.seen)
        print(len(fs.Trajectory.load("run.nc").times))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    refusals = [f"{name} was not written: it is larger than this process may write" for name in ("run.nc", "new.nc")]
    *seen, kept = done.stdout.splitlines()
    assert [line.partition(" (")[0] for line in seen] == refusals
    assert kept == "100"
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_an_interrupted_move_has_no_sign_of_completion(tmp_path, monkeypatch):
    write_whole(tmp_path, {"a": b"old", "sign": b"old"})

    def interrupted(self, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files.Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_whole(tmp_path, {"a": b"new", "sign": b"new"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    with pytest.raises(fs.BadInput, match="is a folder"):
        write_whole(tmp_path.parent, {tmp_path.name: b""})


def test_nothing_but_a_file_is_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name, seen in {"pipe": "a pipe", "circle": "circle", "y" * 300: "too long"}.items():
        with pytest.raises(fs.BadInput, match=seen):
            write_whole(tmp_path, {name: b"new"})
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "circle"}


def test_a_link_is_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "run.nc"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    write_whole(tmp_path, {"link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]
    write_whole(tmp_path, {"other": b"new", "link": b"newer"})  # as the sign that others are complete, too
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"newer"


def test_leftovers_of_killed_processes_are_removed_and_others_kept(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (tmp_path / f"{files.LEFTOVER}{process}-00" for process in (ended.pid, os.getpid()))
    foreign = tmp_path / f"{files.LEFTOVER}word"
    for path in (dead, alive, foreign):
        path.touch()
    write_whole(tmp_path, {"x": b""})
    assert set(tmp_path.iterdir()) == {alive, foreign, tmp_path / "x"}


def test_one_run_at_a_time_has_a_folder(tmp_path):
    told, order, entered = [], [], threading.Event()

    def second():
        with alone_in(tmp_path / "a" / "b", lambda text: (told.append(text), entered.set())):
            order.append("second")

    with alone_in(tmp_path / "a" / "b"):
        other = threading.Thread(target=second)
        other.start()
        assert entered.wait(60)
        order.append("first")
    other.join(60)
    assert order == ["first", "second"]
    assert "another run writes into" in told[0]
    assert list(tmp_path.iterdir()) == []  # both left it empty
    for path in ("/dev/null/x", "/proc/x", "a\0b"):
        with pytest.raises(fs.BadInput, match="cannot be made"), alone_in(path):
            pass


def test_a_report_that_is_done_keeps_no_parts(report, tmp_path, monkeypatch):
    from festina._reporting import reproduce, single

    report.save(tmp_path / report.experiment.name)
    (tmp_path / report.experiment.name / PARTS).mkdir()
    monkeypatch.setattr(single, "digest", lambda *inputs: "d")
    monkeypatch.setattr(reproduce, "render", lambda *inputs, **options: "")
    assert reproduce.reproduce([report.experiment.name], quick=True, out=tmp_path).kept == [report.experiment.name]
    assert not (tmp_path / report.experiment.name / PARTS).exists()
