"""The laws of every net, init and rule."""

from __future__ import annotations

import itertools
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import festina as fs
from festina._figures.comparison import clock_of
from festina._foundation.nouns import noun, static
from festina.nets.base import Net
from festina.rules.base import Discrete

# A new member is in the laws by its example; what it can be besides may be listed here.
NETS = [getattr(fs.nets, name).example() for name in fs.nets.__all__]
VARIANTS = [
    fs.nets.DeepLinear(()),
    fs.nets.DeepLinear(6),
    fs.nets.MLP(6),
    fs.nets.MLP((6, 3), "tanh"),
    fs.nets.MLP((6, 6, 6, 6), "relu", skip=True),
    fs.nets.MLP(6, "tanh", dropout=0.2),
]
RULES = [getattr(fs.rules, name).example() for name in fs.rules.__all__]
every_net = pytest.mark.parametrize("net", [*NETS, *VARIANTS], ids=repr)
every_init = pytest.mark.parametrize("name", fs.inits.__all__)
every_rule = pytest.mark.parametrize("rule", RULES, ids=repr)
TASK = fs.tasks.hierarchy(levels=3)


def test_examples_are_of_their_own_kind():
    assert [type(net).__name__ for net in NETS] == fs.nets.__all__
    assert [type(rule).__name__ for rule in RULES] == fs.rules.__all__
    assert [type(getattr(fs.inits, name).example()[2]).__name__ for name in fs.inits.__all__] == fs.inits.__all__


@every_net
def test_what_it_computes_from_doubles_is_double(net):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1)).weights(1)
    x = np.asarray(TASK.x)
    outputs = net.apply(weights, x)
    with jax.enable_x64(True):
        wanted = np.asarray(net.apply(jax.tree.map(jnp.asarray, weights), jnp.asarray(x)))
    assert outputs.dtype == wanted.dtype == np.float64
    # Sums of at most 15 products in another order: rounding, where float32 would leave 1e-7.
    np.testing.assert_allclose(outputs, wanted, rtol=0, atol=1e-14 * np.abs(wanted).max())
    hidden = net.representation(weights, x)
    assert hidden is None or hidden.dtype == np.float64
    single = jax.tree.map(np.float32, weights)
    assert net.apply(single, np.float32(x)).dtype == np.float32
    assert jax.jit(net.apply)(weights, x).dtype == np.float32, "as the caller's own program"


@every_net
def test_shapes_of_weights_outputs_and_representation(net, double):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1)).weights(1)
    wanted = net.shapes(8, 15)
    leaves = jax.tree.leaves(wanted, is_leaf=lambda n: isinstance(n, tuple) and all(isinstance(i, int) for i in n))
    assert [w.shape for w in jax.tree.leaves(weights)] == leaves
    x = jnp.asarray(TASK.x)
    assert net.apply(weights, x).shape == (8, 15)
    hidden = net.representation(weights, x)
    # Of a graph, all hidden nodes side by side; of layers, the last one.
    width = sum(net.hidden) if net.has_paths else next(reversed(net.hidden), None)
    assert hidden is None if not net.hidden else hidden.shape == (8, width)
    wanted = [] if net.has_paths else [(8, width) for width in net.hidden]
    assert [h.shape for h in net.representations(weights, x)] == wanted


@every_net
def test_a_net_keeps_its_contract(net, double):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1)).weights(1)
    leaves = jax.tree.leaves(weights)
    x = jnp.asarray(TASK.x)
    np.testing.assert_array_equal(net.apply_in_training(weights, x, jax.random.key(0)).shape, (8, 15))
    if not net.noisy:
        np.testing.assert_array_equal(net.apply_in_training(weights, x, jax.random.key(0)), net.apply(weights, x))
    assert all(isinstance(width, int) and width > 0 for width in net.hidden)
    if net.is_chain:
        layers = [layer if isinstance(layer, tuple) else (layer,) for layer in weights]
        assert net.depth == len(net.hidden) + 1
        sizes = (8, *net.hidden, 15)
        assert [layer[0].shape for layer in layers] == list(zip(sizes[1:], sizes[:-1], strict=True))
        assert all(len(layer) == 1 + net.bias for layer in layers)
    for group in net.stacks:
        assert len({leaves[k].shape for k in group}) == 1
    for into, out_of in net.junctions:
        assert {leaves[k].shape[0] for k in into} == {leaves[k].shape[1] for k in out_of}
    if net.off_slope is not None:
        gates = net.gates(weights, x)
        assert gates.shape == (8, sum(net.hidden))
        assert gates.dtype == bool
    assert net.at_time(1.0) == net
    assert net.switch_times == ()
    assert (net.graph is None) == (net.path_names is None) == (net.paths() == ()) == (not net.has_paths)
    lifted, task = net.lifted(TASK)
    assert net.plan is None
    assert (lifted.plan is not None) == net.has_paths
    if lifted.plan is not None:
        reads, writes = dict(lifted.plan.reads), dict(lifted.plan.writes)
        assert (reads, writes) == net.columns(TASK.d_in, TASK.d_out)
        assert sum(len(reads[source]) for source, _ in lifted.plan.blocks) == task.d_in
        assert lifted.plan.d_out == task.d_out
    if lifted.linear:
        np.testing.assert_allclose(sum(lifted.maps_by_rank(weights)), lifted.map(weights), rtol=1e-14)
        assert lifted.map(weights).shape == (task.d_out, task.d_in)


def test_a_net_may_have_its_widths_as_a_field_without_a_default():
    @noun
    class Shallow(Net):
        hidden: int = static()  # pyright: ignore[reportIncompatibleMethodOverride]
        activation: str = static(default="relu")  # pyright: ignore[reportIncompatibleMethodOverride]

        def shapes(self, d_in, d_out):
            return ((self.hidden, d_in), (d_out, self.hidden))

        def apply(self, weights, x):
            return jnp.maximum(x @ weights[0].T, 0) @ weights[1].T

    setup = fs.Setup(TASK, Shallow(hidden=5), fs.inits.SmallRandom(0.1), fs.rules.GradientDescent(0.1), until=1.0)
    assert fs.simulate(setup)["loss"].shape[1] == len(setup.times)
    assert (setup.net.bias, setup.net.skip, setup.net.noisy, setup.net.is_chain) == (False, False, False, False)
    with pytest.raises(NotImplementedError, match="Shallow has no example"):
        Shallow.example()


@every_net
def test_a_linear_net_is_its_map(net, double):
    weights = fs.Setup(TASK, net, fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1)).weights(1)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 8)))
    if net.linear:
        np.testing.assert_allclose(net.apply(weights, x), x @ net.map(weights).T, rtol=1e-12)
    elif net.has_paths or net.activation is not None:
        scales = np.allclose(net.apply(weights, 2 * x), 2 * net.apply(weights, x))
        assert scales == (net.has_paths or net.activation in ("linear", "relu", "leaky_relu"))  # biases start at 0


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
    from festina._formulas.aligned_chain import alignment_defect, balance_defect

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


@every_init
def test_every_init_survives_json(name):
    setup = fs.Setup(*getattr(fs.inits, name).example())
    again = fs.Setup.from_json(setup.to_json())
    assert again == setup
    for one, other in zip(setup.weights(2), again.weights(2), strict=True):
        np.testing.assert_array_equal(one, other)


def random_task(d_in, d_out, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(2 * d_in, d_in))
    return fs.tasks.from_moments(rng.normal(size=(d_out, d_in)), inputs.T @ inputs / len(inputs))


def difference(weights):
    return weights[1].T @ weights[1] - weights[0] @ weights[0].T


SHAPES = [(4, 4, 4), (6, 3, 3), (3, 3, 6), (5, 4, 5), (3, 5, 6), (6, 5, 3), (4, 2, 4), (2, 7, 2), (5, 1, 1)]
LAMS = [-30.0, -1.0, -1e-9, 0.0, 1e-9, 1.0, 30.0]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "-".join(map(str, s)))


def possible(lam, shape):
    d_in, hidden, d_out = shape
    return lam == 0 or hidden <= (d_out if lam > 0 else d_in)


@every_shape
@pytest.mark.parametrize("aligned", [False, True])
def test_balanced_starts_have_their_balance_and_their_map(shape, aligned):
    d_in, hidden, d_out = shape
    task, net = random_task(d_in, d_out), fs.nets.DeepLinear(hidden)
    count = min(shape)
    several = np.array([0.7, 0.0, 1e-6, 2.0])[:count]  # in no order
    modes = task.modes()
    for lam, scale in itertools.product(LAMS, [several] if aligned else [0.3, several]):
        setup = fs.Setup(task, net, fs.inits.Balanced(lam, scale, aligned))
        if not possible(lam, shape):
            with pytest.raises(fs.BadInput) as refusal:
                setup.weights(3)
            assert f"lam = {lam:g} in a network {d_in}-{hidden}-{d_out}" in refusal.value.seen
            assert f"hidden <= {d_out if lam > 0 else d_in}" in refusal.value.needed
            assert f"all {hidden} hidden directions" in refusal.value.needed
            assert "lam = 0" in refusal.value.do
            assert ("lam < 0" in refusal.value.do) == (lam > 0 and hidden <= d_in)
            assert ("lam > 0" in refusal.value.do) == (lam < 0 and hidden <= d_out)
            continue
        weights = setup.weights(3)
        product, size = net.map(weights), sum(np.sum(w**2) for w in weights)
        assert np.linalg.norm(difference(weights) - lam * np.eye(hidden)) <= 1e-13 * size
        wanted = np.zeros(min(d_in, d_out))
        wanted[:count] = np.sort(np.broadcast_to(scale, count))[::-1]
        np.testing.assert_allclose(np.linalg.svd(product, compute_uv=False), wanted, atol=1e-14 * size)
        if aligned:
            along = modes.matrix(np.pad(scale, (0, min(d_in, d_out) - count)))
            np.testing.assert_allclose(product, along, atol=1e-14 * size)


def test_the_smaller_layer_of_a_balanced_start_keeps_its_digits():
    # (√(lam² + 4s²) − lam)/2 is 0 in float64 here; its root is s/√lam = 1e-5 to 1e-20 relative.
    w1, w2 = fs.Setup(random_task(4, 4), fs.nets.DeepLinear(4), fs.inits.Balanced(1e4, 1e-3)).weights()
    np.testing.assert_allclose(np.linalg.svd(w1, compute_uv=False), 1e-5, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.svd(w2, compute_uv=False), 1e2, rtol=1e-12)


def test_balanced_starts_are_random_in_every_part():
    setup = fs.Setup(random_task(3, 3), fs.nets.DeepLinear(3), fs.inits.Balanced(0.0, 0.5))
    maps = np.array([setup.net.map(setup.weights(seed)) for seed in range(40)])
    signs = np.sign(np.linalg.det(maps))
    assert 8 <= np.sum(signs > 0) <= 32  # 40 fair coins leave this range once in 10⁴
    # A uniform direction has no mean: each entry of the mean of n unit vectors has variance 1/(3n).
    assert np.abs(maps.mean(axis=0) / 0.5).max() < 5 / np.sqrt(3 * 40)
    aligned = setup.replace(init=fs.inits.Balanced(0.0, 0.5, aligned=True))
    assert not np.allclose(aligned.weights(0)[0], aligned.weights(1)[0])
    np.testing.assert_allclose(setup.net.map(aligned.weights(0)), setup.net.map(aligned.weights(1)), atol=1e-14)
    # Where the aligned start has hidden directions to spare, these are random too.
    spare = fs.Setup(random_task(2, 5), fs.nets.DeepLinear(4), fs.inits.Balanced(1.0, 0.5, aligned=True))
    grams = [w[1] @ w[1].T for w in (spare.weights(0), spare.weights(1))]
    assert not np.allclose(*grams)


def test_a_family_of_balanced_starts_is_one_draw(double):
    task, net, key = random_task(4, 4), fs.nets.DeepLinear(3), jax.random.key(5)
    lams, scales = jnp.array([-2.0, -1e-3, 0.0, 0.5, 30.0]), jnp.array([1e-3, 0.7])

    def draw(lam, scale):
        return fs.inits.Balanced(lam, scale).draw(key, net, task)

    family = jax.jit(jax.vmap(jax.vmap(draw, (None, 0)), (0, None)))(lams, scales)
    for i, lam in enumerate(lams):
        for j, scale in enumerate(scales):
            for many, one in zip(family, draw(float(lam), float(scale)), strict=True):
                np.testing.assert_allclose(many[i, j], one, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(4, 3, 4), (2, 4, 5), (5, 4, 2)], ids=str)
def test_balanced_starts_have_slopes_in_their_numbers(shape, double):
    d_in, hidden, d_out = shape
    task, net, key = random_task(d_in, d_out), fs.nets.DeepLinear(hidden), jax.random.key(5)
    marks = [np.random.default_rng(i).normal(size=s) for i, s in enumerate(net.shapes(d_in, d_out))]

    def probe(lam, scale):
        weights = fs.inits.Balanced(lam, scale).draw(key, net, task)
        return sum(jnp.sum(m * w) for m, w in zip(marks, weights, strict=True))

    grid = [(lam, s) for lam in (-3.0, -0.1, 0.0, 0.1, 3.0) for s in (0.0, 0.4) if possible(lam, shape)]
    # At lam = 0 a direction without a product has the slope of √lam.
    grid = jnp.array([(lam, s) for lam, s in grid if lam != 0 or (s > 0 and hidden <= min(d_in, d_out))])
    slopes = jax.jit(jax.vmap(jax.grad(probe, argnums=(0, 1))))(*grid.T)
    probes = jax.jit(jax.vmap(probe))
    for argument, slope in enumerate(slopes):
        step = 1e-5 * jnp.eye(2)[argument]
        numeric = (probes(*(grid + step).T) - probes(*(grid - step).T)) / 2e-5
        np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def test_a_traced_lam_that_the_shape_does_not_allow_gives_no_numbers(double):
    key = jax.random.key(0)
    for d_in, hidden, d_out, bad, good in ((3, 5, 6, -1.0, 1.0), (6, 5, 3, 1.0, -1.0), (2, 7, 2, 1.0, 0.0)):
        task, net = random_task(d_in, d_out), fs.nets.DeepLinear(hidden)
        draw = jax.jit(jax.vmap(lambda lam, t=task, n=net: fs.inits.Balanced(lam, 0.5).draw(key, n, t)))
        sizes = sum(jnp.sum(w**2, axis=(1, 2)) for w in draw(jnp.array([bad, good])))
        assert np.isnan(sizes[0])
        assert np.isfinite(sizes[1])


@pytest.mark.parametrize("hidden", [(), 4, (7, 3), (5, 6, 4)], ids=str)
def test_zero_balanced_starts_are_gaussian_maps_with_balanced_layers(hidden):
    net = fs.nets.DeepLinear(hidden)
    setup = fs.Setup(random_task(5, 6), net, fs.inits.ZeroBalanced(0.4))
    gaussian = setup.replace(init=fs.inits.SmallRandom(0.4))
    for seed in range(3):
        weights = setup.weights(seed)
        product = net.map(weights)
        np.testing.assert_allclose(product, net.map(gaussian.weights(seed)), atol=1e-14)
        values = np.linalg.svd(product, compute_uv=False)
        narrowest = min(5, *net.hidden) if net.hidden else 5
        for w in weights:
            wanted = np.append(values[:narrowest], np.zeros(min(w.shape) - narrowest)) ** (1 / net.depth)
            np.testing.assert_allclose(np.linalg.svd(w, compute_uv=False), wanted, atol=1e-13)
        if net.depth > 1:
            assert np.max(fs.balance(weights).residual) < 1e-13
            assert np.max(np.abs(fs.balance(weights).lam)) < 1e-14
            assert np.min(fs.balance(gaussian.weights(seed)).residual) > 0.01


def test_orthogonal_starts_choose_the_sign_of_their_determinant():
    for task_seed in range(4):
        task = random_task(4, 4, task_seed)
        target = np.sign(np.linalg.det(task.target()))
        for hidden in (4, (4, 4)):
            net = fs.nets.DeepLinear(hidden)
            for determinant, sign in (("same", 1), ("opposite", -1)):
                setup = fs.Setup(task, net, fs.inits.Orthogonal(0.7, determinant))
                maps = [net.map(setup.weights(seed)) for seed in range(4)]
                np.testing.assert_array_equal(np.sign(np.linalg.det(maps)), sign * target)
                for w in setup.weights(0):
                    np.testing.assert_allclose(w @ w.T, 0.49 * np.eye(4), atol=1e-14)


@pytest.mark.parametrize(("determinant", "left"), [("same", 0.0), ("opposite", 0.5)])
def test_the_wrong_determinant_leaves_the_faintest_mode_unlearned(determinant, left):
    task = fs.tasks.from_moments(np.diag([3.0, 2.0, 1.0]), np.eye(3))
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Orthogonal(1.0, determinant), times=[8.0])
    np.testing.assert_allclose(fs.simulate(setup, seeds=2)["loss"], left, atol=1e-3)  # s²/2 of the faintest
    assert fs.Setup.from_json(setup.to_json()) == setup


@pytest.mark.parametrize("delta", [-1e8, -2.0, -1e-9, 0.0, 0.3, 1e8])
@pytest.mark.parametrize("net", [fs.nets.DeepLinear(5), fs.nets.MLP(5, "relu", bias=True)], ids=repr)
def test_single_neurons_have_their_sizes(net, delta):
    scale = 0.3
    setup = fs.Setup(random_task(3, 2), net, fs.inits.SingleNeuron(scale, delta))
    weights = setup.weights(1)
    if net.hidden and not net.linear:
        assert all(np.all(b == 0) for _, b in weights)
        weights = [w for w, _ in weights]
    w, a = np.linalg.norm(weights[0], axis=1), np.linalg.norm(weights[1], axis=0)
    np.testing.assert_allclose(a * w, scale**2, rtol=1e-13)
    np.testing.assert_allclose(a**2 - w**2, delta, rtol=1e-13, atol=1e-15)
    if delta <= 0:  # the printed formula keeps its digits on this side
        ratio = delta / scale**2
        alpha = np.sqrt((np.sqrt(4 + ratio**2) - ratio) / 2)
        np.testing.assert_allclose(w, scale * alpha, rtol=1e-13)
        np.testing.assert_allclose(a, scale / alpha, rtol=1e-13)
    assert np.linalg.matrix_rank(weights[0]) == 3


def test_one_neuron_with_one_output_has_a_random_sign():
    setup = fs.Setup(random_task(3, 1), fs.nets.DeepLinear(1), fs.inits.SingleNeuron(0.5, 1.0))
    assert {float(np.sign(setup.weights(seed)[1][0, 0])) for seed in range(12)} == {-1.0, 1.0}


@pytest.mark.parametrize("net", [fs.nets.DeepLinear(6), fs.nets.MLP(6), fs.nets.MLP(6, "tanh", bias=True)], ids=repr)
def test_mirrored_starts_are_silent_and_have_the_kernel_of_their_halves(net, double):
    weights = fs.Setup(TASK, net, fs.inits.Mirrored(0.8, 0.5)).weights(2)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 8)))
    np.testing.assert_allclose(net.apply(weights, x), 0, atol=1e-15)
    assert np.abs(net.representation(weights, x)).max() > 0.1

    def kernel(weights):
        slopes = jax.jacobian(net.apply)(weights, x)
        rows = jnp.concatenate([s.reshape(5 * 15, -1) for s in jax.tree.leaves(slopes)], axis=1)
        return rows @ rows.T

    into, out = weights
    if isinstance(into, tuple):
        half, shared = ((into[0][:3], into[1][:3]), (out[0][:, :3], out[1])), np.kron(np.ones((5, 5)), np.eye(15))
    else:
        half, shared = (into[:3], out[:, :3]), 0.0  # the bias of the outputs is in no half
    np.testing.assert_allclose(kernel(weights) - shared, 2 * (kernel(half) - shared), atol=1e-12)


def test_mirrored_starts_have_their_variance():
    wide = fs.Setup(TASK, fs.nets.DeepLinear(4000), fs.inits.Mirrored(0.8, 0.5)).weights(0)
    for w, wanted in zip(wide, (0.8, 0.5), strict=True):
        assert abs(np.std(w) / wanted - 1) < 5 / np.sqrt(w.size)  # half the entries, each with 1/√(2n)


def test_balance_is_what_gradient_flow_conserves(double):
    rng = np.random.default_rng(0)
    task = random_task(4, 5)
    weights = [jnp.asarray(rng.normal(size=s)) for s in ((3, 4), (3, 3), (5, 3))]

    def loss(weights):
        product = fs.nets.DeepLinear((3, 3)).map(weights)
        return 0.5 * jnp.trace(product @ task.cov_x @ product.T) - jnp.sum(product * task.cov_yx)

    flow = [-g for g in jax.grad(loss)(weights)]
    assert max(float(jnp.abs(g).max()) for g in flow) > 0.1
    for below in (0, 1):
        pair = weights[below : below + 2], flow[below : below + 2]
        _, change = jax.jvp(difference, (pair[0],), (pair[1],))
        np.testing.assert_allclose(change, 0, atol=1e-12)
    # The other sign is not conserved, so that this test can fail.
    _, change = jax.jvp(lambda w: w[1].T @ w[1] + w[0] @ w[0].T, (weights[:2],), (flow[:2],))
    assert np.abs(change).max() > 0.1
    _, change = jax.jvp(lambda w: fs.balance(w), (weights,), (flow,))
    np.testing.assert_allclose(change.lam, 0, atol=1e-12)
    np.testing.assert_allclose(change.residual, 0, atol=1e-12)


def test_balance_is_the_nearest_multiple_of_the_identity():
    rng = np.random.default_rng(0)
    w1, w2, w3 = rng.normal(size=(3, 4)), rng.normal(size=(2, 3)), rng.normal(size=(5, 2))
    seen = fs.balance([w1, w2])
    rest = difference((w1, w2))
    grid = seen.lam + np.linspace(-1, 1, 201)
    residuals = [np.linalg.norm(rest - lam * np.eye(3)) for lam in grid]
    assert np.argmin(residuals) == 100
    np.testing.assert_allclose(seen.residual, residuals[100], rtol=1e-14)
    assert isinstance(seen.lam, float)
    deep = fs.balance((w1, w2, w3))
    np.testing.assert_allclose(deep.lam, [seen.lam, fs.balance([w2, w3]).lam], rtol=1e-15)
    np.testing.assert_allclose(deep.residual, [seen.residual, fs.balance([w2, w3]).residual], rtol=1e-15)
    assert repr(fs.balance([np.eye(2), 2 * np.eye(2)])) == "Balance(lam=3, residual=0)"
    assert "residual=[" in repr(deep)
    compiled = jax.jit(fs.balance)([w1, w2])
    np.testing.assert_allclose(compiled.lam, seen.lam, rtol=1e-5)
    np.testing.assert_allclose(compiled.residual, seen.residual, rtol=1e-5)


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


@every_init
def test_an_init_draws_weights_of_the_shapes_of_the_net(name):
    task, net, init = getattr(fs.inits, name).example()
    weights = fs.Setup(task, net, init).weights(3)
    shapes = jax.tree.map(lambda leaf: leaf.shape, weights)
    assert shapes == net.shapes(task.d_in, task.d_out)
    other = fs.Setup(task, net, init).weights(4)
    pairs = zip(jax.tree.leaves(weights), jax.tree.leaves(other), strict=True)
    assert init.random == any(not np.array_equal(drawn, again) for drawn, again in pairs)


@every_rule
def test_a_rule_has_a_state_at_the_times_of_its_clock(rule):
    times = rule.on_clock(np.array([0.0, 0.26, 0.51]))
    assert np.array_equal(rule.on_clock(times), times)
    if isinstance(rule, Discrete):
        assert np.array_equal(rule.time_of_steps(rule.steps(times)), times)
        assert np.array_equal(rule.steps(times), np.round(rule.steps(times)))


def test_a_rule_may_have_another_clock_than_lr_times_steps():
    @noun
    class PerEpoch(Discrete):
        """Gradient descent whose unit of time is a step, whatever its rate."""

        lr: float = 0.1
        clock: ClassVar[str] = "epochs"

        def steps(self, times):
            return np.round(times)

        def time_of_steps(self, steps):
            return steps * 1.0

        def step(self, gradient, weights, state):
            loss, slope = gradient(weights, None)
            return jax.tree.map(lambda w, g: w - self.lr * g, weights, slope), state, loss

    parts = TASK, fs.nets.DeepLinear(4), fs.inits.SmallRandom(0.4)
    epochs, usual = fs.Setup(*parts, PerEpoch(), until=6.0, every=2), fs.rules.GradientDescent(0.1)
    assert epochs.times.tolist() == [0.0, 2.0, 4.0, 6.0]
    wanted = fs.simulate(fs.Setup(*parts, usual, times=0.1 * epochs.times))
    counted = fs.simulate(epochs)
    np.testing.assert_array_equal(counted["loss"], wanted["loss"])
    assert (clock_of(counted), clock_of(wanted)) == ("epochs", "time (τ)")
    assert not counted.is_recorded
    assert "unit_of_time" not in wanted.provenance
    panel = fs.compare(counted, counted).plot().axes[0]
    assert panel.get_xlabel() == "epochs"
    for grid in ({}, {"points": 5}, {"every": 2}):
        with pytest.raises(fs.BadInput) as refused:
            fs.Setup(*parts, PerEpoch(), **grid)
        assert "PerEpoch(lr=0.1), a step of which lasts 1, without an end" in refused.value.seen
        assert "an end on the clock of the rule" in refused.value.needed
        assert refused.value.do == "give until=, or times="
    assert fs.Setup(*parts, PerEpoch(), times=[1.0, 2.0]).times.tolist() == [1.0, 2.0]
    with pytest.raises(fs.Diverged) as failure:
        fs.simulate(fs.Setup(*parts, PerEpoch(1e4), until=50.0, every=1))
    assert failure.value.step > 0


@pytest.mark.parametrize("rule", [rule for rule in RULES if isinstance(rule, Discrete)], ids=repr)
def test_a_stepping_rule_owns_its_clock(rule):
    asked, step = np.array([0.0, 0.26, 0.51]), rule.time_of_steps(1)
    setup = fs.Setup(TASK, fs.nets.DeepLinear(4), fs.inits.SmallRandom(0.4), rule, times=asked)
    np.testing.assert_allclose(setup.times, step * np.round(asked / step))
    assert np.array_equal(fs.simulate(setup).times, setup.times)


def drawn(net, init, task=TASK):
    return fs.Setup(task, net, init).weights()


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
        (lambda: fs.inits.Balanced("big", 1.0), "lam is str"),
        (lambda: fs.inits.Balanced([1.0], 1.0), "lam has shape"),
        (lambda: fs.inits.Balanced(1.0, [0.5, -0.1]), "scale = -0.1"),
        (lambda: fs.inits.Balanced(1.0, [[0.5]]), "scale has shape"),
        (lambda: fs.inits.Balanced(1.0, 0.5, aligned="yes"), "aligned = 'yes'"),
        (lambda: drawn(fs.nets.DeepLinear(4), fs.inits.Balanced(0.0, [1.0, 2.0])), "scale has 2 values"),
        (lambda: drawn(fs.nets.DeepLinear((4, 4)), fs.inits.Balanced(0.0, 1.0)), "Balanced with 3 layer(s)"),
        (lambda: drawn(fs.nets.DeepLinear(()), fs.inits.Balanced(0.0, 1.0)), "Balanced with 1 layer(s)"),
        (lambda: drawn(fs.nets.MLP(4), fs.inits.Balanced(0.0, 1.0)), "Balanced with MLP"),
        (lambda: fs.inits.ZeroBalanced(0), "scale = 0"),
        (lambda: drawn(fs.nets.MLP(4), fs.inits.ZeroBalanced(1.0)), "ZeroBalanced with MLP"),
        (lambda: fs.inits.Orthogonal(1.0, "equal"), "determinant = 'equal'"),
        (lambda: drawn(fs.nets.DeepLinear(8), fs.inits.Orthogonal(1.0, "same")), "a network 8-8-15"),
        (lambda: drawn(fs.nets.MLP(8), fs.inits.Orthogonal(1.0, "same")), "Orthogonal with MLP"),
        (
            lambda: drawn(
                fs.nets.DeepLinear(3),
                fs.inits.Orthogonal(1.0, "opposite"),
                fs.tasks.from_moments(np.diag([2.0, 1.0, 0.0]), np.eye(3)),
            ),
            "a singular target: singular values from 2 to 0",
        ),
        (lambda: fs.inits.SingleNeuron(0.0, 1.0), "scale = 0.0"),
        (lambda: fs.inits.SingleNeuron(1.0, np.inf), "delta has 1 value"),
        (lambda: drawn(fs.nets.DeepLinear(()), fs.inits.SingleNeuron(1.0, 0.0)), "SingleNeuron with DeepLinear"),
        (lambda: drawn(fs.nets.MLP((4, 4)), fs.inits.SingleNeuron(1.0, 0.0)), "SingleNeuron with MLP"),
        (lambda: fs.inits.Mirrored(1.0, -1.0), "last = -1.0"),
        (lambda: drawn(fs.nets.MLP(5), fs.inits.Mirrored(1.0, 1.0)), "Mirrored with hidden width 5"),
        (lambda: drawn(fs.nets.MLP((4, 4), bias=True), fs.inits.Mirrored(1.0, 1.0)), "Mirrored with MLP"),
        (lambda: fs.balance([np.eye(2)]), "weights is 1 layer(s)"),
        (lambda: fs.balance(np.eye(2)), "weights is ndarray"),
        (lambda: fs.balance([np.ones((3, 2)), np.ones((3, 2))]), "weights of shapes [(3, 2), (3, 2)]"),
        (lambda: fs.balance([np.ones((1, 3, 2)), np.ones((1, 2, 3))]), "weights[0] has shape"),
        (lambda: fs.balance([[[np.nan]], [[1.0]]]), "weights[0] has 1 value(s)"),
        (lambda: jax.vmap(fs.balance)([np.ones((4, 3)), np.ones((4, 3))]), "weights of shapes [(3,), (3,)]"),
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


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (64,), (3, 100)])
def test_normal_numbers_are_those_of_jax(shape):
    from festina.inits._pieces import normal

    with jax.enable_x64(True):
        key = jax.random.key(5)
        np.testing.assert_allclose(normal(key, shape), jax.random.normal(key, shape), rtol=1e-14)


def test_a_layer_of_gated_units_trains_as_its_pathways_do(double):
    task = fs.tasks.contextual(4, 3)
    off = np.asarray((task.labels or {})["context"])[:, None] == np.arange(3)
    sees = np.array([1.0] * 4 + [0.0] * (task.d_in - 4))
    units = fs.nets.GatedUnits(np.repeat(~off, 2, axis=1), np.tile(sees, (6, 1)))
    paths = fs.nets.Gated.pathways([{"on": 1.0 - off[:, k], "sees": range(4), "width": 2} for k in range(3)])
    setup = fs.Setup(task, units, fs.inits.SmallRandom(0.2), fs.rules.GradientDescent(0.05), until=4.0, points=5)
    first, last = setup.weights(0)
    layers = [layer for k in (0, 2, 4) for layer in (first[k : k + 2, :4], last[:, k : k + 2])]
    same = setup.replace(net=paths, init=fs.inits.Given(layers))
    one, other = (fs.simulate(each, 1, ["loss", "outputs"]) for each in (setup, same))
    for name, array in one.items():
        np.testing.assert_allclose(array, other[name], rtol=0, atol=1e-10)
    by_batches = setup.replace(rule=fs.rules.SGD(0.05, batch=4))
    assert fs.simulate(by_batches)["loss"][0, -1] < fs.simulate(by_batches)["loss"][0, 0]
    with pytest.raises(fs.BadInput, match="a row of gates for each sample"):
        setup.replace(task=fs.tasks.hierarchy(levels=2))
    with pytest.raises(fs.BadInput, match="a row for each of 6 units"):
        fs.nets.GatedUnits(units.on, sees[None])
