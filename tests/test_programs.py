"""Programs compiled with little effort: the same numbers to rounding, and usable wherever `jax.jit` is."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina._foundation import program_effort
from festina._foundation.program_effort import Program
from festina._verbs.covering import members


@pytest.fixture
def effort(monkeypatch):
    """A way to say with how much effort the programs of this process are compiled."""
    return lambda effort: monkeypatch.setattr(program_effort._Process, "effort", effort)


@pytest.mark.parametrize("name", sorted(members()))
def test_both_efforts_give_the_same_answer_of_every_theory(name, effort):
    answers = {}
    for how in ("full", "little"):
        effort(how)
        answers[how] = fs.solve(members()[name].example(), name)["loss"]
    np.testing.assert_allclose(answers["little"], answers["full"], rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "rule", [fs.rules.GradientDescent(0.02), fs.rules.SGD(0.02, 3), fs.rules.GradientFlow()], ids=repr
)
def test_both_efforts_train_alike(rule, effort):
    task, net = fs.tasks.hierarchy(levels=2), fs.nets.MLP(4, "tanh")
    setup = fs.Setup(task, net, fs.inits.SmallRandom(0.3), rule, until=2.0, points=3)
    losses = {}
    for how in ("full", "little"):
        effort(how)
        losses[how] = fs.simulate(setup, 2)["loss"]
    np.testing.assert_allclose(losses["little"], losses["full"], rtol=1e-9)


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
