"""Programs compiled with little effort: the same numbers to rounding, and usable wherever `jax.jit` is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina._foundation import program_effort
from festina._foundation.program_effort import Program
from festina._verbs.covering import members

RULES = [fs.rules.GradientDescent(0.02), fs.rules.SGD(0.02, 3), fs.rules.GradientFlow()]


def losses(kind, name):
    """What a theory says of its example, or training by a rule does, with the effort of this process."""
    if kind == "theory":
        return fs.solve(members()[name].example(), name)["loss"]
    task, net = fs.tasks.hierarchy(levels=2), fs.nets.MLP(4, "tanh")
    rule = next(rule for rule in RULES if repr(rule) == name)
    setup = fs.Setup(task, net, fs.inits.SmallRandom(0.3), rule, until=2.0, points=3)
    return fs.simulate(setup, 2)["loss"]


CASES = [*(("theory", name) for name in sorted(members())), *(("rule", repr(rule)) for rule in RULES)]
FULL = """
    import json
    from test_programs import CASES, losses

    print(json.dumps([losses(*case).tolist() for case in CASES]))
"""


@pytest.fixture(scope="module")
def full_effort():
    """The same of a process without the flags of tests, and so with full effort."""
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "XLA_FLAGS": "", "PYTHONPATH": paths}
    command = [sys.executable, "-c", textwrap.dedent(FULL)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[1])
def test_both_efforts_give_the_same_losses(case, full_effort, monkeypatch):
    monkeypatch.setattr(program_effort._Process, "effort", "little")
    np.testing.assert_allclose(losses(*case), full_effort[case], rtol=1e-9, atol=1e-13)


def test_a_program_of_little_effort_is_part_of_other_programs():
    program = Program(lambda x: jnp.sin(x) * 2, "little")
    x = jnp.arange(3.0)
    wanted = np.sin(np.arange(3.0)) * 2
    for answer in (program(x), jax.vmap(program)(x), jax.jit(program)(x), jax.jit(lambda: program(x))()):
        np.testing.assert_allclose(answer, wanted, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(program))(x), 2 * np.cos(np.arange(3.0)), rtol=1e-6)


def test_a_version_of_xla_without_these_options_compiles_with_full_effort(monkeypatch):
    monkeypatch.setattr(program_effort, "LITTLE", {"xla_no_such_option": True})
    program_effort._understood_options.cache_clear()
    try:
        assert program_effort._understood_options() is None
        assert Program(lambda x: x + 1, "little")(1) == 2
    finally:
        program_effort._understood_options.cache_clear()


def test_options_of_little_effort_are_known_here():
    assert program_effort._understood_options()


def test_float32_programs_get_full_effort_since_their_rounding_shows(monkeypatch):
    program = Program(lambda x: x + 1, "little")
    program(np.float32(1))
    assert "_quick" not in vars(program)
    program(np.float64(1))
    assert "_quick" in vars(program)
