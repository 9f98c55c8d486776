"""Shapes are checked while tests run, warnings are errors, compiled code is shared between workers."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

# Set before JAX starts: workers then compile each function once between them.
CACHE = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("MPLBACKEND", "agg")

import jax  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

# On few cores XLA can wait for itself: a program that runs on one of its own threads needs the others.
jax.config.update("jax_cpu_enable_async_dispatch", False)

NUMERICS = ["_chain", "_linalg", "_objective", "_observables", "_integrate", "_run"]
install_import_hook([f"festina.{name}" for name in NUMERICS], "beartype.beartype")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

# Compilation makes the first example slow, and machines differ; examples are the same every time.
hypothesis.settings.register_profile("festina", deadline=None, derandomize=True, max_examples=20)
hypothesis.settings.load_profile("festina")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run full-size reproductions")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--slow"):
        wait = pytest.mark.skip(reason="full-size reproduction; run with --slow")
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(wait)


@pytest.fixture
def double():
    """Float64 for JAX code of the test itself; the library needs no such help."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def room_for_compiled_programs():
    """A worker compiles thousands of programs, and would be ended at the system's limit on memory maps."""
    yield
    from festina._compiled import make_room

    make_room()


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
