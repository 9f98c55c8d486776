"""Skips, dropout, convolutions, Xavier starts and batches against PyTorch and against formulas by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs

torch = pytest.importorskip("torch")
F = torch.nn.functional

TASK = fs.tasks.from_arrays(
    np.linspace(-1, 1, 12).reshape(4, 3) ** 3, np.cos(np.linspace(-2, 1, 8)).reshape(4, 2), items=list("abcd")
)
ACTIVATIONS = {
    "leaky_relu": lambda h: F.leaky_relu(h, 0.01),
    "relu": F.relu,
    "elu": F.elu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "swish": F.silu,
    "gelu": F.gelu,
    "linear": lambda h: h,
}


def skipping(layers, h, act):
    seen = []
    for number, (w, b) in enumerate(layers[:-1]):
        h = act(h @ w.T + b)
        seen.append(h + seen[-2] if number >= 2 else h)
        h = seen[-1]
    return seen, h @ layers[-1][0].T + layers[-1][1]


def plain(layers, h, act):
    seen = []
    for w, b in layers[:-1]:
        h = act(h @ w.T + b)
        seen.append(h)
    return seen, h @ layers[-1][0].T + layers[-1][1]


def convolving(layers, h, act):
    (w, b), *kernels = layers[:-1]
    seen = [act(h @ w.T + b)[:, None]]
    for w, b in kernels:
        seen.append(act(F.conv1d(seen[-1], w, b)))
    return [h.flatten(1) for h in seen], seen[-1].flatten(1) @ layers[-1][0].T + layers[-1][1]


RIVALS = [
    *((fs.nets.MLP((5, 4), name, bias=True), plain) for name in ACTIVATIONS),
    (fs.nets.MLP((5,) * 5, "tanh", bias=True, skip=True), skipping),
    (fs.nets.MLP((5,) * 5, "leaky_relu", bias=True, skip=True), skipping),
    (fs.nets.Convolutional(14, channels=3, convolutions=4, kernel=3, activation="tanh"), convolving),
    (fs.nets.Convolutional(14, channels=2, convolutions=2, kernel=5), convolving),
]


@pytest.mark.parametrize(("net", "rival"), RIVALS, ids=lambda value: repr(value) if isinstance(value, fs.Net) else "")
def test_training_is_that_of_pytorch(net, rival):
    lr, steps = 0.05, 7
    rule = fs.rules.GradientDescent(lr)
    setup = fs.Setup(TASK, net, fs.inits.Xavier(0.9), rule, times=lr * np.arange(steps))
    names = ["loss", "outputs", "representation", "distance", "output_distance", "output_alignment", "mean_gap"]
    trained = fs.simulate(setup, [3], names)
    layers = [[torch.tensor(np.asarray(part), requires_grad=True) for part in layer] for layer in setup.weights(3)]
    x, y = torch.tensor(TASK.x), torch.tensor(TASK.y)
    optimiser = torch.optim.SGD([part for layer in layers for part in layer], lr)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for step in range(steps):
        hidden, outputs = rival(layers, x, ACTIVATIONS[net.activation])
        loss = 0.5 * ((outputs - y) ** 2).sum(dim=1).mean()
        apart = np.array([(outputs[j] - outputs[i]).detach().numpy() for i, j in pairs])
        targets = np.array([TASK.y[j] - TASK.y[i] for i, j in pairs])
        means = np.array([((outputs[i] + outputs[j] - y[i] - y[j]) / 2).detach().numpy() for i, j in pairs])
        wanted = {
            "loss": loss.item(),
            "outputs": outputs.detach().numpy(),
            "representation": hidden[-1].detach().numpy(),
            "distance": [[((h[j] - h[i]) ** 2).sum().item() for i, j in pairs] for h in hidden],
            "output_distance": np.sum(apart**2, axis=1),
            "output_alignment": np.sum(apart**2, axis=1) - np.sum(apart * targets, axis=1),
            "mean_gap": np.sum(means**2, axis=1),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(trained[name][0, step], value, rtol=1e-10, atol=1e-13, err_msg=name)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def test_pairs_are_chosen_and_named():
    setup = fs.Setup(TASK, fs.nets.DeepLinear((4, 6)), fs.inits.SmallRandom(0.4), times=[0.0, 1.0])
    every = fs.simulate(setup, 2, ["distance", "output_distance"])
    some = fs.simulate(setup, 2, ["distance", "output_distance"], pairs=[(3, 1), (0, 2)])
    assert every["distance"].shape == (2, 2, 2, 6)
    assert list(some.coordinates["pair"]) == ["3-1", "0-2"]
    assert some.provenance["input_gap"] == pytest.approx(
        [np.sum((TASK.x[i] - TASK.x[j]) ** 2) for i, j in ((3, 1), (0, 2))]
    )
    np.testing.assert_allclose(some["distance"][..., 1], every["distance"][..., 1], rtol=1e-12)
    np.testing.assert_allclose(some["output_distance"][..., 0], every["output_distance"][..., 4], rtol=1e-12)


def test_distances_of_wide_linear_layers_are_those_of_the_weights():
    # Such layers are trained in fewer units than they have.
    setup = fs.Setup(
        TASK, fs.nets.DeepLinear((30, 20)), fs.inits.SmallRandom(0.2), fs.rules.GradientDescent(0.1), times=[0.0, 2.0]
    )
    seen = fs.simulate(setup, 1, "distance")["distance"][0, 0]
    first, second, _ = setup.weights(0)
    hidden = [TASK.x @ first.T, TASK.x @ first.T @ second.T]
    wanted = [[np.sum((h[j] - h[i]) ** 2) for i in range(4) for j in range(i + 1, 4)] for h in hidden]
    np.testing.assert_allclose(seen, wanted, rtol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (dict(observe="distance", pairs=[(0, 4)]), "pair (0, 4) and 4 inputs"),
        (dict(observe="distance", pairs=[(1, 1)]), "pair (1, 1)"),
        (dict(observe="distance", pairs="all"), "pairs = 'all'"),
        (dict(observe="loss", pairs=[(0, 1)]), "no observable of pairs"),
    ],
)
def test_wrong_pairs_are_refused(call, words):
    setup = fs.Setup(TASK, fs.nets.MLP(4), fs.inits.SmallRandom(0.4), fs.rules.GradientDescent(0.1), times=[0.0])
    with pytest.raises(fs.BadInput) as refusal:
        fs.simulate(setup, **call)
    assert words in str(refusal.value)


def test_distances_need_points_and_layers():
    def refused(task, net, name="distance"):
        with pytest.raises(fs.BadInput) as refusal:
            fs.simulate(fs.Setup(task, net, fs.inits.SmallRandom(0.1), until=1.0), observe=name)
        return str(refusal.value)

    assert "no hidden layer" in refused(TASK, fs.nets.DeepLinear(()))
    assert "a graph of nodes" in refused(TASK, fs.nets.Gated.pathways([{"width": 3}]), "output_distance")
    assert "moments and no samples" in refused(fs.tasks.from_moments(np.eye(2), np.eye(2)), fs.nets.DeepLinear(3))
    many = fs.tasks.from_arrays(np.random.default_rng(0).normal(size=(101, 2)), np.ones((101, 1)))
    assert "101 inputs and no pairs" in refused(many, fs.nets.DeepLinear(3))
    twice = fs.tasks.from_arrays(np.ones((2, 2)), np.eye(2))
    assert "inputs 0 and 1 of pair (0, 1) are the same" in refused(twice, fs.nets.DeepLinear(3))


@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_xavier_starts_have_their_variance(law):
    net = fs.nets.Convolutional(400, channels=30, convolutions=3, kernel=7)
    task = fs.tasks.from_arrays(np.ones((2, 50)), np.ones((2, 1)))
    start = fs.Setup(task, net, fs.inits.Xavier(1.5, law)).weights(0)
    for (w, b), fans in zip(start, (450, 31 * 7, 60 * 7, 31 * 7, 383), strict=True):
        assert not np.any(b)
        wanted = 1.5**2 * 2 / fans
        assert np.var(w) == pytest.approx(wanted, abs=4 * wanted * np.sqrt(2 / w.size))
        if law == "uniform":
            assert np.abs(w).max() <= np.sqrt(3 * wanted)
    wide = np.abs(np.asarray(start[0][0])).max() / np.sqrt(1.5**2 * 2 / 450)
    assert (wide > 3) == (law == "normal")


def test_dropout_silences_inputs_of_every_layer_in_training_only(double):
    net = fs.nets.MLP((3000,), "linear", dropout=0.25)
    weights = (jnp.eye(3000), jnp.eye(3000))
    x = jnp.ones((2, 3000))
    np.testing.assert_array_equal(net.apply(weights, x), x)
    dropped = np.asarray(net.apply(weights, x, jax.random.key(1)))
    assert set(np.unique(dropped.round(9))) == {0.0, round(1 / 0.75**2, 9)}
    assert np.mean(dropped > 0) == pytest.approx(0.75**2, abs=0.03)  # two layers, each with its own draw
    assert not np.array_equal(dropped[0], dropped[1])


def test_dropout_draws_anew_at_every_step_and_for_every_seed():
    # One layer of equal weights, one sample: which weights have moved shows what was silenced.
    task = fs.tasks.from_arrays(np.ones((1, 40)), [[1.0]])
    net, lr = fs.nets.MLP((), "linear", dropout=0.5), 1e-3
    setup = fs.Setup(
        task, net, fs.inits.Given([np.zeros((1, 40))]), fs.rules.GradientDescent(lr), times=[0, lr, 2 * lr]
    )
    probes = fs.tasks.from_arrays(np.eye(40), np.zeros((40, 1)))

    def weights(seed, steps):
        trained = fs.simulate(setup.replace(times=[steps * lr]), [seed], "loss")
        return np.asarray(net.apply(jax.tree.map(lambda w: w[0], trained.weights), probes.x))[:, 0]

    first, second, other = weights(0, 1), weights(0, 2), weights(1, 1)
    moved = first != 0
    assert 8 < moved.sum() < 32
    np.testing.assert_allclose(first[moved], lr * 2.0)
    assert not np.array_equal(moved, (second - first) != 0)
    assert not np.array_equal(moved, other != 0)
    np.testing.assert_array_equal(weights(0, 2), second)


def test_dropout_has_no_flow():
    with pytest.raises(fs.BadInput, match="has no flow"):
        fs.Setup(TASK, fs.nets.MLP(4, dropout=0.1), fs.inits.SmallRandom(0.1))


def test_adam_on_batches_takes_the_batches_of_sgd_and_the_steps_of_adam():
    def seen(rule, task=TASK):
        setup = fs.Setup(task, fs.nets.MLP(4, "tanh"), fs.inits.SmallRandom(0.5), rule, times=0.01 * np.arange(9))
        return fs.simulate(setup, 2, "outputs")["outputs"]

    # A batch of all samples is the whole gradient, whatever the order.
    np.testing.assert_allclose(seen(fs.rules.Adam(0.01, batch=4)), seen(fs.rules.Adam(0.01)), rtol=1e-9)
    by_halves = seen(fs.rules.Adam(0.01, batch=2))
    assert np.abs(by_halves - seen(fs.rules.Adam(0.01))).max() > 1e-4
    # With β₁ = β₂ = 0 a step is lr·sign of the batch's gradient: the same batches as SGD show as the same signs.
    signs = np.sign(np.diff(weights_of(fs.rules.Adam(0.01, beta1=0.0, beta2=0.0, batch=2)), axis=0))
    np.testing.assert_array_equal(signs[0], np.sign(np.diff(weights_of(fs.rules.SGD(0.01, 2)), axis=0))[0])


def weights_of(rule):
    """The map of a shallow net before and after one step."""
    setup = fs.Setup(TASK, fs.nets.DeepLinear(()), fs.inits.SmallRandom(0.5), rule, times=[0.0, 0.01])
    return fs.simulate(setup, 1, "map")["map"][0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.nets.MLP((4, 5), skip=True), "skip in hidden layers of widths (4, 5)"),
        (lambda: fs.nets.MLP(4, skip=1), "skip = 1"),
        (lambda: fs.nets.MLP(4, dropout=1.0), "dropout = 1.0"),
        (lambda: fs.nets.MLP(4, dropout=-0.1), "dropout = -0.1"),
        (lambda: fs.nets.Convolutional(10, convolutions=5, kernel=3), "5 convolutions of kernel 3 on 10 units"),
        (lambda: fs.nets.Convolutional(kernel=0), "kernel = 0"),
        (lambda: fs.nets.Convolutional(activation="rleu"), "unknown activation 'rleu'"),
        (lambda: fs.inits.Xavier(0.0), "gain = 0.0"),
        (lambda: fs.inits.Xavier(1.0, "cauchy"), "unknown law 'cauchy'"),
        (lambda: fs.rules.Adam(0.1, batch=0), "batch = 0"),
    ],
)
def test_impossible_parts_are_refused(make, words):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in str(refusal.value)


def test_gates_are_refused_where_they_do_not_say_all():
    for net in (fs.nets.MLP((4, 4, 4), skip=True), fs.nets.MLP(4, dropout=0.1)):
        setup = fs.Setup(TASK, net, fs.inits.SmallRandom(0.1), fs.rules.GradientDescent(0.1), until=1.0)
        with pytest.raises(fs.BadInput, match="no chain of gated layers"):
            fs.simulate(setup, observe="gates")


def test_theories_of_layers_predict_distances():
    task = fs.tasks.regression(4, 3, seed=1)
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Balanced(0.2, 0.1), times=np.linspace(0, 6, 7))
    names = ["distance", "output_distance", "output_alignment", "mean_gap"]
    pairs = [(0, 1), (5, 2)]
    theory = fs.solve(setup, "BalancedRiccati", observe=names, pairs=pairs)
    trained = fs.simulate(setup, 1, names, pairs=pairs)
    assert list(theory.coordinates["pair"]) == ["0-1", "5-2"]
    assert theory.provenance["target_gap"] == trained.provenance["target_gap"]
    for name in names:
        np.testing.assert_allclose(theory[name], trained[name][0], rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_are_those_of_pytorch_also_at_zero(name, double):
    from festina.nets._activations import ACTIVATIONS as OURS

    points = np.array([-2.0, -1e-3, 0.0, 1e-3, 2.0])
    theirs = torch.tensor(points, requires_grad=True)
    ACTIVATIONS[name](theirs).sum().backward()
    ours = jax.vmap(jax.grad(OURS[name]))(jnp.asarray(points))
    np.testing.assert_allclose(ours, np.asarray(theirs.grad), rtol=1e-12)
