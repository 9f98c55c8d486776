"""Where festina is called from: threads, JAX functions of the user, an interpreter without the libraries of flows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs

SETUP = fs.Setup(
    fs.tasks.hierarchy(2),
    fs.nets.DeepLinear(4),
    fs.inits.Aligned(0.05),
    fs.rules.GradientDescent(0.05),
    times=[0.0, 4.0],
)


def answers():
    return fs.solve(SETUP)["loss"], fs.simulate(SETUP, 2)["loss"]


def test_threads_have_the_same_bytes():
    alone, seen = answers(), []
    threads = [threading.Thread(target=lambda: seen.append(answers())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert len(seen) == 2
    for found in seen:
        assert [one.tobytes() for one in found] == [one.tobytes() for one in alone]


def test_concrete_setups_are_solved_and_trained_inside_a_users_own_transformations():
    alone = answers()

    def inside(factor):
        found = answers()
        assert [one.tobytes() for one in found] == [one.tobytes() for one in alone]
        return factor * found[1][0, -1]

    end = alone[1][0, -1]
    for transformed in (jax.jit(inside), jax.vmap(inside), jax.jit(jax.vmap(inside))):
        np.testing.assert_allclose(transformed(jnp.ones(1)), end, rtol=1e-6)  # the user's own float32
    np.testing.assert_allclose(jax.jit(jax.grad(inside))(2.0), end, rtol=1e-6)


def test_traced_setups_are_refused_in_words():
    def until(end):
        return fs.solve(SETUP.replace(until=end, times=None))["loss"]

    def start(strength):
        return fs.simulate(SETUP.replace(init=fs.inits.Aligned(strength)))["loss"]

    with pytest.raises(fs.BadInput, match="a traced until"):
        jax.jit(until)(4.0)
    with pytest.raises(fs.BadInput, match=r"(?s)a traced setup.*call simulate outside jit, grad and vmap"):
        jax.jit(start)(0.1)


def test_all_but_flows_do_without_equinox_and_diffrax():
    code = """
        import sys

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in ("equinox", "diffrax", "optimistix", "lineax"):
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Blocked())
        import festina as fs

        for kind in (fs.tasks, fs.nets, fs.inits, fs.rules, fs.theories):
            assert all(getattr(kind, name) for name in kind.__all__)
        setup = fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear(4), fs.inits.Aligned(0.05),
                         fs.rules.GradientDescent(0.05), times=[0.0, 4.0])
        print(fs.compare(fs.solve(setup), fs.simulate(setup)).error("loss") < 0.05)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "True", done.stderr


def test_a_script_can_keep_its_compiled_programs(tmp_path):
    code = f"""
        import collections

        import jax

        import festina as fs

        events = collections.Counter()
        jax.monitoring.register_event_listener(lambda event, **facts: events.update([event.rsplit("/")[-1]]))
        assert str(fs.keep_compiled_programs({str(tmp_path)!r})) == {str(tmp_path)!r}
        setup = fs.Setup(fs.tasks.hierarchy(1), fs.nets.DeepLinear(2), fs.inits.Aligned(0.1), until=1.0, points=3)
        fs.solve(setup)["loss"]
        fs.simulate(setup)
        print(events["compile_requests_use_cache"], events["cache_hits"])
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    asked, found = [], []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        requests, hits = map(int, done.stdout.split())
        asked.append(requests)
        found.append(hits)
    assert found[0] < asked[0]
    assert found[1] == asked[1] == asked[0]  # a program that calls Python would not be kept


def test_a_folder_for_programs_that_cannot_be_made_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("no folder")
    before, wanted = jax.config.jax_compilation_cache_dir, tmp_path / "file" / "below"
    words = r"cannot be made: Not a directory\n  needed: a folder that .*\n  to do:  give .* another folder"
    with pytest.warns(UserWarning, match=words):
        assert fs.keep_compiled_programs(wanted) == wanted
    assert jax.config.jax_compilation_cache_dir == before


def test_asking_twice_for_kept_programs_adds_no_second_filter(tmp_path, monkeypatch):
    monkeypatch.setattr(jax.config, "update", lambda name, value: None)
    with warnings.catch_warnings():
        fs.keep_compiled_programs(tmp_path)
        once = list(warnings.filters)
        fs.keep_compiled_programs(tmp_path)
        assert warnings.filters == once
