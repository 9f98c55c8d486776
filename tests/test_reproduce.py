"""What reproduce promises: folders, pages, what is kept, workers side by side."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina import experiments
from festina._reporting.experiment import Experiment
from festina._reporting.provenance import digest
from festina._reporting.report_files import is_done
from festina._reporting.reproduce import reproduce


def tiny(monkeypatch, broken=()):
    """Make runs instant: reproduce is about folders and pages here, not about science."""
    import xarray

    from festina._figures.style import new_figure
    from festina.experiments.base import Claim, Result

    calls = []
    for name in experiments.__all__:
        module = Experiment.named(name).module

        def run(*, _name=name, seed=0, **parameters):
            calls.append(_name)
            if _name in broken:
                raise RuntimeError("something broke")
            return Result(xarray.Dataset({"a": ("time", np.arange(3.0))}))

        monkeypatch.setattr(module, "run", run)
        monkeypatch.setattr(module, "QUICK", {})
        monkeypatch.setattr(module, "claims", lambda result: [Claim.at_most("a", 1.0, 2.0)])
        monkeypatch.setattr(module, "figure", lambda result: new_figure()[0])
        monkeypatch.setattr(Experiment, "parameters", lambda self, quick=False, preset=None: {})
    return calls


def test_reproduce_keeps_what_is_done_and_survives_a_failure(monkeypatch, tmp_path):
    broken = experiments.__all__[0]
    calls = tiny(monkeypatch, broken={broken})
    first = reproduce((), quick=True, out=tmp_path)
    assert list(first.failures) == [broken]
    assert first.done == experiments.__all__[1:]
    assert not first.as_expected
    page = (tmp_path / "index.html").read_text()
    assert "something broke" in page
    assert experiments.__all__[1] in page

    calls.clear()
    tiny_again = tiny(monkeypatch)
    second = reproduce((), quick=True, out=tmp_path)
    assert tiny_again == [broken]
    assert second.kept == experiments.__all__[1:]
    assert second.as_expected


def test_a_report_with_other_inputs_or_missing_files_is_run_again(monkeypatch, tmp_path):
    calls = tiny(monkeypatch)
    name = experiments.__all__[0]
    reproduce([name], quick=True, out=tmp_path)
    reproduce([name], quick=True, out=tmp_path, seed=1)
    (tmp_path / name / "figure.png").unlink()
    reproduce([name], quick=True, out=tmp_path, seed=1)
    (tmp_path / name / "report.json").write_text("{ broken")
    reproduce([name], quick=True, out=tmp_path, seed=1)
    assert calls == [name] * 4
    assert is_done(tmp_path / name, digest(name, {}, 1))


def test_an_interrupted_save_leaves_the_report_that_was_there(monkeypatch, tmp_path):
    calls = tiny(monkeypatch)
    name = experiments.__all__[0]
    reproduce([name], quick=True, out=tmp_path)
    kept = fs.Report.load(tmp_path / name)

    def interrupted(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fs.Report, "figure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kept.save(tmp_path / name)
    reproduce([name], quick=True, out=tmp_path)
    assert calls == [name]


def test_workers_side_by_side_write_what_one_process_writes(tmp_path):
    names = ["final_distance_is_predicted", "broad_before_fine"]
    told = []
    alone = reproduce(names, quick=True, out=tmp_path / "one", jobs=1)
    many = reproduce(names, quick=True, out=tmp_path / "two", jobs=2, tell=told.append)
    assert alone.done == many.done == names
    assert many.as_expected
    assert sorted(line.split()[0] for line in told) == ["done", "done"]
    for name in names:
        one, two = tmp_path / "one" / name, tmp_path / "two" / name
        assert sorted(path.name for path in one.iterdir()) == sorted(path.name for path in two.iterdir())
        for path in one.iterdir():
            if path.name != "report.json":
                assert path.read_bytes() == (two / path.name).read_bytes(), path
        first, second = (fs.Report.load(folder).to_dict() for folder in (one, two))
        assert first.pop("time") != second.pop("time")
        assert {**first, "checksum": ""} == {**second, "checksum": ""}
    kept = reproduce(names, quick=True, out=tmp_path / "two", jobs=2)
    assert kept.kept == names


def test_a_worker_that_is_killed_is_a_failure_that_is_said(tmp_path, monkeypatch):
    import os
    import signal

    from festina._reporting import pool

    def killed(worker, line):
        if not line.startswith("{"):
            os.kill(worker.process.pid, signal.SIGKILL)
        asked(worker, line)

    asked = pool._Worker._ask
    monkeypatch.setattr(pool._Worker, "_ask", killed)
    names = ["broad_before_fine", "final_distance_is_predicted"]  # the second in a process of its own
    summary = reproduce(names, quick=True, out=tmp_path, jobs=1)
    assert list(summary.failures) == names
    assert "ended with code -9" in summary.failures["broad_before_fine"]
    assert not summary.as_expected
    assert "ended with code -9" in summary.page.read_text()


def test_jobs_are_counted(tmp_path):
    with pytest.raises(fs.BadInput, match="jobs = 0"):
        reproduce(["broad_before_fine"], quick=True, out=tmp_path, jobs=0)
