"""Wide hidden layers of linear nets are trained in fewer units; nothing may be seen of it."""

import jax
import numpy as np
import pytest

import festina as fs
from festina._training.narrow_layers import narrowed, widened

TASK = fs.tasks.regression(d_in=3, d_out=2, samples=12, seed=1)
NETS = {
    "one wide layer": fs.nets.DeepLinear(40),
    "a wide layer between others": fs.nets.DeepLinear((4, 30, 5)),
    "two wide layers": fs.nets.DeepLinear((20, 25)),
    "gated, alike and not": fs.nets.Gated.pathways([{"width": 9}, {"width": 9, "on": [1, 0] * 6}, {"width": 20}]),
    "gated, sequential": fs.nets.Gated.pathways([{"width": 9}, {"width": (8, 30)}], training="sequential"),
}
NAMES = ["loss", "map", "outputs", "representation", "similarity", "parameter_distance", "gradient_norm"]


def training_loss(setup, steps):
    """Weights after plain descent in all units, by the gradient of the path form or by hand."""
    weights = [np.array(w) for w in setup.weights(0)]
    for _ in range(steps):
        if isinstance(setup.net, fs.nets.Gated):
            slopes = setup.net.gradient(setup.task, weights)
        else:
            error = np.linalg.multi_dot(weights[::-1]) @ setup.task.cov_x - setup.task.cov_yx
            slopes = []
            for k in range(len(weights)):
                after, before = np.eye(2), np.eye(3)
                for w in weights[k + 1 :][::-1]:
                    after = after @ w
                for w in weights[:k]:
                    before = w @ before
                slopes.append(after.T @ error @ before.T)
        weights = [w - setup.rule.lr * slope for w, slope in zip(weights, slopes, strict=True)]
    return weights


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_training_is_that_of_all_units(net):
    setup = fs.Setup(TASK, net, fs.inits.SmallRandom(0.4), fs.rules.GradientDescent(0.05), times=[0.0, 1.0])
    seen = fs.simulate(setup, observe=NAMES)
    end = training_loss(setup, 20)
    known = setup.lifted()
    x = known.task.x
    with jax.enable_x64(True):
        matrix, outputs = np.asarray(known.net.map(end)), known.net.apply(end, x)
        hidden = np.asarray(known.net.representation(end, x))
    np.testing.assert_allclose(seen["map"][0, 1], matrix, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(seen["outputs"][0, 1], outputs, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(seen["representation"][0, 1], hidden, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(seen["similarity"][0, 1], hidden @ hidden.T, rtol=1e-10, atol=1e-12)
    for trained, by_hand in zip(seen.weights, end, strict=True):
        np.testing.assert_allclose(trained[0], by_hand, rtol=1e-10, atol=1e-12)
    moved = np.sqrt(sum(np.sum((w - v) ** 2) for w, v in zip(end, setup.weights(0), strict=True)))
    np.testing.assert_allclose(seen["parameter_distance"][0], [0, moved], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "widths"),
    [("one wide layer", [5]), ("a wide layer between others", [4, 9, 5]), ("two wide layers", [20, 22])],
)
def test_a_layer_keeps_as_many_units_as_its_sides_span(name, widths):
    net = NETS[name]
    starts = [np.asarray(w)[None] for w in fs.Setup(TASK, net, fs.inits.SmallRandom(1.0), times=[1.0]).weights(0)]
    held, bases = narrowed(net.junctions, starts)
    assert [w.shape[1] for w in held[:-1]] == widths
    for restored, start in zip(widened(net.junctions, held, bases), starts, strict=True):
        np.testing.assert_allclose(restored, start, atol=1e-14)


def test_a_narrow_start_of_zeros_stays_one():
    zeros = fs.inits.Given([np.zeros((9, 3)), np.zeros((2, 9))])
    setup = fs.Setup(TASK, fs.nets.DeepLinear(9), zeros, fs.rules.GradientDescent(0.1), times=[1.0])
    assert not fs.simulate(setup, observe="map")["map"].any()


def test_rules_that_see_single_weights_train_all_units():
    """Adam's steps are no gradient: its weights leave the span, and must be trained as they are."""
    setup = fs.Setup(TASK, fs.nets.DeepLinear(40), fs.inits.SmallRandom(0.4), fs.rules.Adam(0.01), times=[0.01, 0.3])
    first, last = setup.weights(0)
    slopes = jax.grad(lambda w: 0.5 * ((TASK.y - TASK.x @ w[0].T @ w[1].T) ** 2).sum() / 12)((first, last))
    step = [w - 0.01 * np.sign(s) for w, s in zip((first, last), slopes, strict=True)]
    np.testing.assert_allclose(fs.simulate(setup, observe="map")["map"][0, 0], step[1] @ step[0], rtol=1e-5)
