"""The command line, as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from festina.cli import app

COMMANDS = ("list", "show", "run", "reproduce", "doctor")


def festina(*words: str, cwd=None, timeout=300) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "festina.cli", *words], capture_output=True, text=True, cwd=cwd, timeout=timeout
    )


def three_parts(text: str) -> bool:
    return text.startswith("error:") and "needed:" in text and "to do:" in text and "Traceback" not in text


def test_every_command_has_help():
    import typer.main

    commands = typer.main.get_command(app).commands
    assert set(commands) == set(COMMANDS)
    for command in commands.values():
        assert command.help
        for parameter in command.params:
            if parameter.name not in ("help",):
                assert getattr(parameter, "help", None), f"{command.name} {parameter.name}"


def test_help_imports_nothing_heavy():
    heavy = ("jax", "xarray", "matplotlib", "scipy", "diffrax", "numpy")
    code = f"import sys, festina.cli; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    assert "reproduce" in festina("--help").stdout


def test_list_and_show():
    listed = json.loads(festina("list", "--json").stdout)
    assert "AlignedModes" in listed["theories"]
    assert "hierarchy" in listed["tasks"]
    assert "depth_makes_learning_sigmoidal" in festina("list").stdout
    shown = festina("show", "AlignedModes").stdout
    assert "Errata" in shown
    assert "saxe2014" in shown
    shown = json.loads(festina("show", "depth_makes_learning_sigmoidal", "--json").stdout)
    assert "depths" in shown["parameters"]
    assert "hidden" in festina("show", "DeepLinear").stdout


def test_doctor():
    health = json.loads(festina("doctor", "--json").stdout)
    assert {"versions", "devices", "precision", "caches"} <= set(health)
    assert "jax" in festina("doctor").stdout


def test_run_takes_any_parameter_and_writes_the_report(tmp_path):
    changes = ("--depths", "1,2,3", "--points=40")
    done = festina(
        "run", "depth_makes_learning_sigmoidal", "--quick", "--seed", "1", *changes, "--out", f"{tmp_path}/a/b"
    )
    assert done.returncode == 0, done.stderr + done.stdout
    facts = json.loads((tmp_path / "a" / "b" / "report.json").read_text())
    assert facts["parameters"]["depths"] == [1, 2, 3]
    assert facts["parameters"]["points"] == 40
    assert facts["seed"] == 1
    assert str(tmp_path / "a" / "b" / "report.json") in done.stdout


def test_an_outcome_that_differs_exits_with_one(tmp_path):
    # Between so few records nothing is seen to accelerate, and orders cannot be read off.
    done = festina(
        "run", "networks_learn_mode_by_mode", "--quick", "--until", "2.0", "--points", "20", "--out", str(tmp_path)
    )
    assert done.returncode == 1, done.stderr
    assert "not as expected" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["outcome"] == "differs"


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("run", "depth_makes_learning", "--out", "x"), "unknown experiment"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--depth", "3"), "unknown parameter 'depth'"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--lr", "fast"), "--lr fast"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--lr"), "--lr without a value"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--lr", "-1"), "lr"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--points", "-5"), "points = -5"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--depths", "1,2"), "depths = (1, 2)"),
        (("run", "networks_learn_mode_by_mode", "--out", "x", "--hidden", "-3"), "hidden = -3"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "stray"), "stray word"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "x", "--seed", "-2"), "seed = -2"),
        (("run", "depth_makes_learning_sigmoidal", "--out", "/dev/null/x"), "--out"),
        (("reproduce", "no_such_thing", "--out", "x"), "unknown experiment"),
        (("show", "AlignedMode"), "unknown name"),
    ],
)
def test_wrong_input_is_answered_in_three_parts_and_nothing_is_written(words, seen, tmp_path):
    done = festina(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert three_parts(done.stderr), done.stderr
    assert seen in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--debug", "show", "AlignedMode"), ("show", "AlignedMode", "--debug")])
def test_debug_shows_the_traceback(words):
    done = festina(*words)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_ctrl_c_keeps_what_is_finished_and_writes_no_half_report(child, tmp_path):
    name = "networks_learn_mode_by_mode"
    words = ("run", name, "--lr", "1e-6", "--out", str(tmp_path / "slow"))  # days of steps
    process = child(sys.executable, "-m", "festina.cli", *words, stderr=subprocess.PIPE)
    time.sleep(25)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_reproduce_says_where_the_report_is(tmp_path):
    name = "depth_makes_learning_sigmoidal"
    first = festina("reproduce", name, "--quick", "--out", str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert first.stdout.strip().endswith(f"Report: {tmp_path / 'index.html'}")
    second = festina("reproduce", name, "--out", str(tmp_path), "--json")
    assert json.loads(second.stdout)["kept"] == [name]
    assert os.listdir(tmp_path / name)
