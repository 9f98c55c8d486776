"""The laws of every way to train: whatever a descent is, it is the training of plain steps, and loses no weight."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import festina as fs
from festina._setup.loss import evidence_of
from festina._training import choice, thin_factors
from festina._training.plain_steps import PlainSteps

TASK = fs.tasks.regression(d_in=3, d_out=2, samples=4, seed=1)
NETS = {
    "a chain with wide layers": fs.nets.DeepLinear((9, 7)),
    "gated": fs.nets.Gated.pathways([{"width": 9}, {"width": 6, "on": [1, 0, 1, 0]}]),
    "biases": fs.nets.MLP((6, 6, 6), "tanh", bias=True),
    "skips": fs.nets.MLP((5, 5), "tanh", skip=True),
}
RULES = [fs.rules.GradientDescent(0.05), fs.rules.Adam(0.01), fs.rules.GradientFlow()]
STEPS = (0, 1, 13, 24)  # inside of blocks and at their ends
# A new descent that trains none of these brings a setup of its own.
SETUPS = {
    f"{name}, {type(rule).__name__}": fs.Setup(
        TASK, net, fs.inits.SmallRandom(0.6), rule, times=getattr(rule, "lr", 0.05) * np.array(STEPS)
    )
    for name, net in NETS.items()
    for rule in RULES
}
every_descent = pytest.mark.parametrize("kind", choice.DESCENTS, ids=lambda kind: kind.__name__)


@pytest.fixture(autouse=True)
def small_nets_too(monkeypatch):
    monkeypatch.setattr(thin_factors, "FEWEST_WEIGHTS", 0)


def of_its_own(kind):
    """The setups that a descent can train."""

    def applies(setup):
        lifted = setup.lifted()
        return kind.applies(
            lifted.net, evidence_of(lifted.net, lifted.task, full_batch=setup.rule.full_batch), setup.rule
        )

    setups = {name: setup for name, setup in SETUPS.items() if applies(setup)}
    assert setups, f"give a setup that {kind.__name__} trains"
    return setups


def trained(setup, kind, monkeypatch):
    """Losses and last weights of two seeds by one descent."""
    with monkeypatch.context() as patch:
        patch.setattr(choice, "DESCENTS", (kind,))
        seen = fs.simulate(setup, 2, "loss", progress=False)
    return [seen["loss"], *map(np.asarray, jax.tree.leaves(seen.weights))]


def gap(one, other):
    return max(np.abs(a - b).max() for a, b in zip(one, other, strict=True))


@every_descent
def test_every_descent_gives_back_the_weights_that_it_holds(kind):
    for name, setup in of_its_own(kind).items():
        weights = jax.tree.map(lambda *seeds: np.stack(seeds), setup.weights(0), setup.weights(1))
        descent, held = kind.hold(setup.lifted().net, weights)
        back = descent.weights(held)
        for given, found in zip(jax.tree.leaves(weights), jax.tree.leaves(back), strict=True):
            np.testing.assert_allclose(found, given, rtol=0, atol=1e-14, err_msg=name)


@every_descent
def test_every_descent_is_plain_training(kind, monkeypatch):
    for name, setup in of_its_own(kind).items():
        found = trained(setup, kind, monkeypatch)
        if hasattr(setup.rule, "lr"):
            plain = trained(setup, PlainSteps, monkeypatch)
            assert np.ptp(plain[0][0]) > 1e-2 * plain[0][0, 0], name  # it has learned
            assert gap(found, plain) < 1e-11, name
        else:
            # Steps tend to the flow, with an error that falls as their length.
            gaps = []
            for lr in (0.005, 0.0025):
                stepped = setup.replace(rule=fs.rules.GradientDescent(lr))
                gaps.append(gap(found, trained(stepped, PlainSteps, monkeypatch)))
            assert 1.8 < gaps[0] / gaps[1] < 2.2, (name, gaps)
