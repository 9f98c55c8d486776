"""The laws of every net, init and rule."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import festina as fs

NETS = {
    "DeepLinear": [fs.nets.DeepLinear(()), fs.nets.DeepLinear(6), fs.nets.DeepLinear((6, 3))],
    "MLP": [fs.nets.MLP(6), fs.nets.MLP((6, 3), "tanh"), fs.nets.MLP((6, 3), "leaky_relu", bias=True)],
}
INITS = {
    "Aligned": fs.inits.Aligned(0.1),
    "SmallRandom": fs.inits.SmallRandom(0.3),
    "Orthogonal": fs.inits.Orthogonal(0.7),
    "Given": fs.inits.Given([np.ones((6, 8)), np.ones((15, 6))]),
}
RULES = {
    "GradientFlow": fs.rules.GradientFlow(),
    "GradientDescent": fs.rules.GradientDescent(0.1),
    "SGD": fs.rules.SGD(0.1, 3),
    "Adam": fs.rules.Adam(0.1),
}
every_net = pytest.mark.parametrize("net", [n for nets in NETS.values() for n in nets], ids=repr)
TASK = fs.tasks.hierarchy(levels=3)


def test_every_member_has_an_example_here():
    assert set(NETS) == set(fs.nets.__all__)
    assert set(INITS) == set(fs.inits.__all__)
    assert set(RULES) == set(fs.rules.__all__)


@every_net
def test_shapes_of_weights_outputs_and_representation(net, double):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5)).weights(1)
    wanted = net.shapes(8, 15)
    leaves = jax.tree.leaves(wanted, is_leaf=lambda n: isinstance(n, tuple) and all(isinstance(i, int) for i in n))
    assert [w.shape for w in jax.tree.leaves(weights)] == leaves
    x = jnp.asarray(TASK.x)
    assert net.apply(weights, x).shape == (8, 15)
    hidden = net.representation(weights, x)
    assert hidden is None if not net.hidden else hidden.shape == (8, net.hidden[-1])


@every_net
def test_a_linear_net_is_its_map(net, double):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5)).weights(1)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 8)))
    if net.linear:
        np.testing.assert_allclose(net.apply(weights, x), x @ net.map(weights).T, rtol=1e-12)
    else:
        assert not np.allclose(net.apply(weights, 2 * x), 2 * net.apply(weights, x)) or net.activation in (
            "relu",
            "leaky_relu",
        )


def test_mlp_is_the_hand_written_formula(double):
    net = fs.nets.MLP((4, 3), "relu", bias=True)
    rng = np.random.default_rng(0)
    weights = [(rng.normal(size=s), rng.normal(size=s[0])) for s in ((4, 8), (3, 4), (15, 3))]
    h = TASK.x
    for w, b in weights[:-1]:
        h = np.maximum(h @ w.T + b, 0)
    np.testing.assert_allclose(
        net.apply(weights, jnp.asarray(TASK.x)), h @ weights[-1][0].T + weights[-1][1], rtol=1e-12
    )


@given(strength=st.floats(1e-6, 3.0), depth=st.integers(1, 4), seed=st.integers(0, 100), sign=st.sampled_from([1, -1]))
def test_aligned_starts_have_their_strength_and_are_balanced(strength, depth, seed, sign):
    from festina._linalg import alignment_defect, balance_defect

    setup = fs.Setup(TASK, fs.nets.DeepLinear((9,) * (depth - 1)), fs.inits.Aligned(sign * strength))
    weights = setup.weights(seed)
    start = setup.net.map(weights)
    np.testing.assert_allclose(TASK.modes().strengths(start), sign * strength, rtol=1e-9)
    assert alignment_defect(TASK.modes(), weights) < 1e-7  # rounding, relative to the faintest mode
    assert balance_defect(TASK.modes(), weights) < 1e-7


def test_random_starts_have_their_variance():
    setup = fs.Setup(TASK, fs.nets.DeepLinear((300, 300)), fs.inits.SmallRandom(0.2))
    middle = setup.weights(0)[1]
    # The variance of n samples has a relative standard error √(2/n).
    assert abs(np.var(middle) / 0.04 - 1) < 5 * np.sqrt(2 / middle.size)
    assert not np.array_equal(middle, setup.weights(1)[1])
    assert np.array_equal(middle, setup.weights(0)[1])


@pytest.mark.parametrize("hidden", [4, 8, 20])
def test_orthogonal_layers_are(hidden):
    weights = fs.Setup(TASK, fs.nets.DeepLinear(hidden), fs.inits.Orthogonal(0.7)).weights(3)
    for w in weights:
        small = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(small, 0.49 * np.eye(len(small)), atol=1e-12)


def one_step(rule, net=None, seeds=1):
    net = fs.nets.DeepLinear(4) if net is None else net
    setup = fs.Setup(TASK, net, fs.inits.SmallRandom(0.4), rule, times=[0.0, rule.lr])
    return setup, fs.simulate(setup, seeds, ["outputs", "loss"])


def hand_gradient(weights, x, y):
    w1, w2 = weights
    error = (x @ w1.T @ w2.T - y) / len(x)
    return [w2.T @ error.T @ x, error.T @ (x @ w1.T)]


def outputs(weights):
    return TASK.x @ weights[0].T @ weights[1].T


def test_gradient_descent_is_its_formula():
    setup, seen = one_step(fs.rules.GradientDescent(0.3))
    weights = setup.weights(0)
    after = [w - 0.3 * g for w, g in zip(weights, hand_gradient(weights, TASK.x, TASK.y), strict=True)]
    np.testing.assert_allclose(seen["outputs"][0, 1], outputs(after), rtol=1e-12, atol=1e-14)


def test_adam_is_its_formula():
    lr, beta1, beta2, epsilon = 0.05, 0.8, 0.95, 1e-6
    setup = fs.Setup(
        TASK,
        fs.nets.DeepLinear(4),
        fs.inits.SmallRandom(0.4),
        fs.rules.Adam(lr, beta1, beta2, epsilon),
        times=lr * np.arange(4),
    )
    weights = list(setup.weights(0))
    mean, square = [0 * w for w in weights], [0 * w for w in weights]
    seen = fs.simulate(setup, observe="outputs")["outputs"][0]
    for count in range(1, 4):
        for i, g in enumerate(hand_gradient(list(weights), TASK.x, TASK.y)):
            mean[i] = beta1 * mean[i] + (1 - beta1) * g
            square[i] = beta2 * square[i] + (1 - beta2) * g**2
        for i in range(2):
            corrected = mean[i] / (1 - beta1**count), square[i] / (1 - beta2**count)
            weights[i] = weights[i] - lr * corrected[0] / (np.sqrt(corrected[1]) + epsilon)
        np.testing.assert_allclose(seen[count], outputs(weights), rtol=1e-11, atol=1e-13)


def test_sgd_visits_every_sample_once_per_pass():
    # With orthogonal inputs a shallow net's row for an item moves only when the item is drawn.
    setup = fs.Setup(
        TASK,
        fs.nets.DeepLinear(()),
        fs.inits.Given([np.zeros((15, 8))]),
        fs.rules.SGD(0.1, 2),
        times=0.1 * np.arange(9),
    )
    maps = fs.simulate(setup, seeds=3, observe="map")["map"]
    moved = np.abs(np.diff(maps, axis=1)).max(axis=2) > 0  # (seed, step, item)
    assert (moved.sum(axis=2) == 2).all()
    for first in (0, 4):
        assert (moved[:, first : first + 4].sum(axis=1) == 1).all()
    assert not np.array_equal(moved[0], moved[1])
    # The size of a move is lr times the gradient of the batch's mean.
    np.testing.assert_allclose(np.abs(np.diff(maps, axis=1)).max(), 0.1 / 2)


def test_flow_is_the_limit_of_descent():
    flow = fs.Setup(TASK, fs.nets.MLP(6, "tanh"), fs.inits.SmallRandom(0.4), times=[4.0])
    true = fs.simulate(flow, observe="outputs")["outputs"]
    errors = [
        np.abs(fs.simulate(flow.replace(rule=fs.rules.GradientDescent(lr)), observe="outputs")["outputs"] - true).max()
        for lr in (0.04, 0.02, 0.01)
    ]
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 1, atol=0.1)


@pytest.mark.parametrize("rule", [r for r in RULES.values() if hasattr(r, "lr")], ids=repr)
def test_a_stepping_rule_owns_its_clock(rule):
    setup = fs.Setup(TASK, fs.nets.DeepLinear(4), fs.inits.SmallRandom(0.4), rule, times=[0.0, 0.26, 0.51])
    np.testing.assert_allclose(setup.times, [0.0, 0.3, 0.5])
    assert np.array_equal(fs.simulate(setup).times, setup.times)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.nets.DeepLinear(-3), "hidden = -3"),
        (lambda: fs.nets.DeepLinear((4, 0)), "hidden = 0"),
        (lambda: fs.nets.DeepLinear("8"), "hidden = '8'"),
        (lambda: fs.nets.DeepLinear(2.5), "hidden = 2.5"),
        (lambda: fs.nets.MLP(8, "rleu"), "unknown activation 'rleu'"),
        (lambda: fs.rules.GradientDescent(0.0), "lr = 0.0"),
        (lambda: fs.rules.GradientDescent(-1), "lr = -1"),
        (lambda: fs.rules.GradientDescent(np.nan), "lr has 1 value"),
        (lambda: fs.rules.GradientDescent("fast"), "lr is str"),
        (lambda: fs.rules.SGD(0.1, 0), "batch = 0"),
        (lambda: fs.rules.Adam(0.1, beta1=1.0), "beta1 = 1.0"),
        (lambda: fs.rules.GradientFlow(rtol=0), "rtol = 0"),
        (lambda: fs.inits.SmallRandom(-1), "scale = -1"),
        (lambda: fs.inits.Aligned([[1.0]]), "strength has shape"),
        (lambda: fs.inits.Aligned("1e-3"), "strength is str"),
        (lambda: fs.inits.Given("abc"), "weights is str"),
        (lambda: fs.inits.Given(["abc"]), "weights[0] is str"),
        (lambda: fs.nets.MLP(4, bias="no"), "bias = 'no'"),
        (lambda: fs.rules.GradientDescent("0.1"), "lr is str"),
        (lambda: fs.inits.Orthogonal(np.inf), "gain has 1 value"),
        (lambda: fs.inits.Given([np.ones((2, 2)), [[np.nan]]]), "weights[1]"),
        (
            lambda: fs.Setup(TASK, fs.nets.DeepLinear(4), fs.inits.Given([np.ones((2, 2))])).weights(),
            "Given weights of shapes",
        ),
        (
            lambda: fs.Setup(TASK, fs.nets.DeepLinear(4), fs.inits.Aligned([1.0, 2.0])).weights(),
            "strength has 2 values",
        ),
        (lambda: fs.Setup(TASK, fs.nets.MLP(4), fs.inits.Aligned(1.0)).weights(), "Aligned with MLP"),
        (
            lambda: fs.simulate(
                fs.Setup(TASK, fs.nets.MLP(4), fs.inits.SmallRandom(1.0), fs.rules.SGD(0.1, 9), until=1.0)
            ),
            "batch = 9",
        ),
    ],
)
def test_impossible_parts_are_refused_in_three_parts(make, words):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in refusal.value.seen
    assert refusal.value.needed
    assert refusal.value.do
