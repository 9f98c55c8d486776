"""The command line, as a user meets it; in this process, but for what only a process of its own can show."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from festina import cli
from festina._reporting import process

COMMANDS = ("list", "show", "run", "reproduce", "open", "doctor")


@pytest.fixture
def festina(monkeypatch, capsys):
    """Runs `festina` with some words; the exit code, and what it printed on both streams."""
    # The settings of this process are those of the tests.
    monkeypatch.setattr(process, "prepare", lambda **options: None)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["festina", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run


def real(*words: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "festina.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def three_parts(text: str) -> bool:
    return text.startswith("error:") and "needed:" in text and "to do:" in text and "Traceback" not in text


def test_every_command_has_help():
    import typer.main

    commands = typer.main.get_command(cli.app).commands
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
    assert "reproduce" in real("--help").stdout


def test_list_and_show(festina):
    listed = json.loads(festina("list", "--json")[1])
    assert "AlignedModes" in listed["theories"]
    assert "hierarchy" in listed["tasks"]
    assert "depth_makes_learning_sigmoidal" in festina("list")[1]
    assert "Modes and depth" in festina("list")[1]
    assert "example" not in json.loads(festina("show", "AlignedModes", "--json")[1])
    assert "balanced" in json.loads(festina("show", "AlignedModes", "--json", "--measure")[1])["example"]
    shown = festina("show", "AlignedModes")[1]
    assert "Errata" in shown
    assert "saxe2014" in shown
    shown = json.loads(festina("show", "depth_makes_learning_sigmoidal", "--json")[1])
    assert "depths" in shown["parameters"]
    assert "hidden" in festina("show", "DeepLinear")[1]


def test_doctor_says_how_much_is_kept(festina, monkeypatch, tmp_path):
    (tmp_path / "program").write_bytes(bytes(2_500_000))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    health = json.loads(festina("doctor", "--json")[1])
    assert {"versions", "devices", "precision", "caches"} <= set(health)
    assert health["caches"]["compilation"].startswith(f"{tmp_path}: 1 files, 2.5 MB")
    assert "jax" in festina("doctor")[1]


def test_run_takes_any_parameter_and_writes_the_report(festina, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, changes = "depth_makes_learning_sigmoidal", ("--depths", "1,2,3", "--points=40")
    code, out, err = festina("run", name, "--quick", "--seed", "1", *changes)
    assert code == 0, err + out
    written = tmp_path / "reports" / name / "report.json"  # the default of --out
    facts = json.loads(written.read_text())
    assert facts["parameters"]["depths"] == [1, 2, 3]
    assert facts["parameters"]["points"] == 40
    assert facts["seed"] == 1
    assert str(written.relative_to(tmp_path)) in out
    assert "<h1>festina: " in written.with_name("index.html").read_text()
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert festina("open", name)[0] == festina("open")[0] == 0
    assert opened == 2 * [written.with_name("index.html").as_uri()]


def test_open_says_where_it_looked(festina, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = festina("open", "nowhere")
    assert code == 2
    assert "no page in nowhere, reports/nowhere" in err


def test_names_are_completed_from_the_files():
    assert "networks_learn_mode_by_mode" in cli._experiments("networks_")
    assert cli._names("Aligned") == ["AlignedChains", "AlignedModes", "Aligned"]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of orders that are not there
def test_an_outcome_that_differs_exits_with_one(festina, tmp_path):
    # Between so few records nothing is seen to accelerate, and orders cannot be read off.
    words = ("--quick", "--until", "2.0", "--points", "20", "--out", f"{tmp_path}/a/b")
    code, out, err = festina("run", "networks_learn_mode_by_mode", *words)
    assert code == 1, err
    assert "not as expected" in out
    assert json.loads((tmp_path / "a" / "b" / "report.json").read_text())["outcome"] == "differs"


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
        (("reproduce", "broad_before_fine", "--out", "x", "--jobs", "0"), "jobs = 0"),
        (("show", "AlignedMode"), "unknown name"),
    ],
)
def test_wrong_input_is_answered_in_three_parts_and_nothing_is_written(festina, words, seen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = festina(*words)
    assert code == 2
    assert three_parts(err), err
    assert seen in err
    assert list(tmp_path.iterdir()) == []


def test_wrong_input_of_a_process_ends_it_with_two_and_three_parts(tmp_path):
    done = real("run", "depth_makes_learning_sigmoidal", "--depths", "1,2", cwd=tmp_path)
    assert done.returncode == 2
    assert three_parts(done.stderr), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--debug", "show", "AlignedMode"), ("show", "AlignedMode", "--debug")])
def test_debug_shows_the_traceback(words, monkeypatch):
    from festina import UnknownName

    monkeypatch.setattr(sys, "argv", ["festina", *words])
    with pytest.raises(UnknownName):
        cli.main()


def test_reproduce_says_where_the_report_is_and_compiled_programs_are_kept(tmp_path):
    name, cache = "final_distance_is_predicted", tmp_path / "cache"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    environment["XDG_CACHE_HOME"] = str(cache)
    words = ("reproduce", name, "--quick", "--out", str(tmp_path / "out"))
    without = real(*words, "--no-cache", env=environment)
    assert without.returncode == 0, without.stderr
    assert without.stdout.strip().endswith(f"Report: {tmp_path / 'out' / 'index.html'}")
    assert not (cache / "festina").exists()  # Matplotlib has a folder there, too
    kept = real(*words, "--json", env=environment)
    assert json.loads(kept.stdout)["kept"] == [name]
    again = real("reproduce", name, "--quick", "--out", str(tmp_path / "again"), env=environment)
    assert again.returncode == 0, again.stderr
    assert len(list((cache / "festina" / "jax").iterdir())) > 10
