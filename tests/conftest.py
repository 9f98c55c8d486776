"""Shapes are checked while tests run, warnings are errors, compiled code is shared between workers."""

from __future__ import annotations

import functools
import gc
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

# Set before JAX starts: workers then compile each function once between them.
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("MPLBACKEND", "agg")

# Most programs of tests run once, for milliseconds. test_programs.py compares them with those of full effort.
LITTLE_EFFORT = os.environ.get("FESTINA_TEST_EFFORT", "little") == "little"
if LITTLE_EFFORT and "XLA_FLAGS" not in os.environ:
    flags = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
    environment = {**os.environ, "XLA_FLAGS": flags}
    # A version of XLA without these flags ends the process that has them.
    asked = subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], env=environment, capture_output=True)
    os.environ["XLA_FLAGS"] = flags if asked.returncode == 0 else ""

import jax  # noqa: E402

# Of a long list beartype checks one entry, drawn at random: not from the generator whose state the probe must keep.
of_python, random.getrandbits = random.getrandbits, random.Random(0).getrandbits
import beartype  # noqa: E402

beartype.beartype(lambda entries: None)  # it takes the generator at its first use
random.getrandbits = of_python

# On few cores XLA can wait for itself: a program that runs on one of its own threads needs the others.
jax.config.update("jax_cpu_enable_async_dispatch", False)
# Lines of Python in every operation of a program help those who read programs, and cost a tenth of the time to make it.
jax.config.update("jax_include_full_tracebacks_in_locations", False)
jax.config.update("jax_traceback_in_locations_limit", 0)
# By default the collector looks at all young objects a thousand times a second while programs are traced.
gc.set_threshold(20_000, 20, 20)

from annotation_checks import check_annotations_of  # noqa: E402

# Rooms whose annotations, shapes among them, are checked in every test.
ROOMS = ["_formulas", "_setup", "observables", "theories", "_training"]
check_annotations_of([f"festina.{room}" for room in ROOMS])

if LITTLE_EFFORT:
    from festina._foundation.program_effort import spend_little_effort

    spend_little_effort()

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# Compilation makes the first example slow, and machines differ; examples are the same every time.
hypothesis.settings.register_profile("festina", deadline=None, derandomize=True, max_examples=20)
hypothesis.settings.load_profile("festina")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run full-size reproductions")


# What the tests of a file are about; every other file is about one theory, verb or part of the library.
KINDS = {
    "laws": {
        "test_theories",
        "test_certificates",
        "test_tasks",
        "test_networks",
        "test_observables",
        "test_curves",
        "test_descents",
        "test_gate_kinds",
    },
    "experiments": {"test_experiments", "test_essays"},
    "processes": {"test_browser", "test_cli", "test_interrupts", "test_reproduce", "test_site", "test_surroundings"},
    "house": {"test_docs", "test_house", "test_page", "test_bad_input"},
}
# Files that take longest begin first, so that no worker waits for the last of them.
LONGEST = ("test_certificates", "test_gated", "test_essays", "test_bad_input", "test_riccati", "test_race")
LAST = {"test_site"}  # its gallery shows the reports of all experiments


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups when its own hook runs
def pytest_collection_modifyitems(config, items):
    for item in items:
        file = item.path.stem
        kind = next((kind for kind, files in KINDS.items() if file in files), "parts")
        item.add_marker(getattr(pytest.mark, kind))
        item.add_marker(pytest.mark.xdist_group(_group(item, file)))
    rank = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)) + (item.path.stem in LAST))
    if not config.getoption("--slow"):
        wait = pytest.mark.skip(reason="full-size reproduction; run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(wait)


@pytest.fixture(scope="session")
def quick(tmp_path_factory, worker_id):
    """Quick reports by name with their folders, each run once for all tests and workers of a session."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "quick"

    @functools.cache
    def get(name):
        import festina as fs
        from festina._reporting.single import run_or_keep

        outcome = run_or_keep(name, quick=True, seed=0, out=shared, tell=print)
        assert not outcome.error, outcome.error
        return fs.Report.load(shared / name), shared / name

    return get


@pytest.fixture
def double():
    """Float64 for JAX code of the test itself; the library needs no such help."""
    with jax.enable_x64(True):
        yield


def _group(item, file):
    """Tests that share compiled programs run in one worker: those of a file, of one experiment, of one theory."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    if file in ("test_experiments", "test_essays") and "name" in parameters:
        return parameters["name"]
    if "after_float32" in item.fixturenames:
        return "after_float32"
    if file == "test_theories" and "theory" in parameters:
        return type(parameters["theory"]).__name__
    return file


@pytest.fixture(autouse=True, scope="module")
def room_for_compiled_programs():
    """A worker compiles thousands of programs, and would be ended at the system's limit on memory maps.

    The objects of programs that are kept are many, too: the garbage collector does not look at them again.
    """
    yield
    from festina._foundation.program_memory import make_room

    if make_room():
        gc.unfreeze()
        gc.collect()
    gc.freeze()


@pytest.fixture
def child():
    """Starts processes that hear Ctrl-C even if the tests run in the background, and end with their test."""
    started = []

    def start(*words, **options):
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a child inherits "ignored", not a handler
        try:
            started.append(subprocess.Popen(words, text=True, **options))
        finally:
            signal.signal(signal.SIGINT, before)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
