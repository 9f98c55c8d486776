"""The λ-balanced solution against integration of all weights, and against itself where integration is too slow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import festina as fs
from festina._formulas import balanced_flow, interpolation
from festina._verbs import evaluation
from festina.theories._constants import constants_of

SHAPES = [(4, 4, 4), (6, 3, 3), (3, 3, 6), (5, 4, 5), (3, 5, 6), (6, 5, 3), (4, 2, 4), (5, 1, 1)]  # in, hidden, out
CASES = [
    (shape, lam)
    for shape in SHAPES
    for lam in (-5.0, -1e-9, 0.0, 0.5, 5.0)
    if (lam <= 0 or shape[1] <= shape[2]) and (lam >= 0 or shape[1] <= shape[0])
]


def balanced_setup(shape, lam, scale=0.4, *, task=None, **grid):
    d_in, hidden, d_out = shape
    task = fs.tasks.regression(d_in, d_out, samples=3 * d_in, seed=hidden) if task is None else task
    return fs.Setup(task, fs.nets.DeepLinear(hidden), fs.inits.Balanced(lam, scale), **grid)


def integrated(setup, times):
    """Map and both representations by direct integration of the weights."""
    (hidden, d_in), d_out = setup.weights(0)[0].shape, setup.task.d_out
    cov_yx, cov_x = setup.task.cov_yx, setup.task.cov_x

    def parted(flat):
        return flat[: hidden * d_in].reshape(hidden, d_in), flat[hidden * d_in :].reshape(d_out, hidden)

    def slope(_, flat):
        first, last = parted(flat)
        error = cov_yx - last @ first @ cov_x
        return np.concatenate([(last.T @ error).ravel(), (error @ first.T).ravel()])

    begin = np.concatenate([w.ravel() for w in setup.weights(0)])
    done = solve_ivp(slope, (0, times[-1]), begin, "DOP853", times, rtol=1e-12, atol=1e-14)
    ends = [parted(column) for column in done.y.T]
    return {
        "map": np.stack([last @ first for first, last in ends]),
        "input_representation": np.stack([first.T @ first for first, _ in ends]),
        "output_representation": np.stack([last @ last.T for _, last in ends]),
    }


def stepped(target, weights, lam, time):
    """[W₁ᵀ; W₂] at a late time by many short exact steps in NumPy: slow, and accurate whatever the time."""
    d_out, d_in = target.shape
    generator = np.block([[-lam / 2 * np.eye(d_in), target.T], [target, lam / 2 * np.eye(d_out)]])
    rates, basis = np.linalg.eigh(generator)
    count = int(np.ceil(np.abs(rates).max() * time / 2))
    short = time / count
    spent = np.where(rates == 0, short, np.expm1(2 * rates * short) / np.where(rates == 0, 1, 2 * rates))
    rows = basis.T @ np.concatenate([weights[0].T, weights[1]])
    for _ in range(count):
        factor = np.linalg.cholesky(np.eye(rows.shape[1]) + (rows.T * spent) @ rows)
        rows = np.linalg.solve(factor, (np.exp(rates * short)[:, None] * rows).T).T
    return basis @ rows


@pytest.mark.parametrize(("shape", "lam"), CASES, ids=str)
def test_every_shape_and_balance_agrees_with_integration(shape, lam):
    times = np.array([0.1, 0.5, 1.0, 2.5, 6.0])
    setup = balanced_setup(shape, lam, times=times)
    predicted = fs.solve(setup, "BalancedRiccati")
    for name, true in integrated(setup, times).items():
        # As far as the integrator goes.
        np.testing.assert_allclose(predicted[name], true, atol=1e-9 * max(1, np.abs(true).max()))


@pytest.mark.parametrize("time", [30.0, 300.0, 3000.0])
@pytest.mark.parametrize(("shape", "lam"), [((4, 4, 4), 0.7), ((6, 3, 3), -2.0), ((5, 4, 5), 0.0), ((3, 5, 6), 3.0)])
def test_late_times_agree_with_many_short_steps(shape, lam, time):
    setup = balanced_setup(shape, lam, 1e-3, times=[time])
    predicted = fs.solve(setup, "BalancedRiccati")
    state = stepped(setup.task.cov_yx, setup.weights(0), lam, time)
    d_in = setup.task.d_in
    np.testing.assert_allclose(predicted["map"][0], state[d_in:] @ state[:d_in].T, atol=1e-10)
    np.testing.assert_allclose(predicted["input_representation"][0], state[:d_in] @ state[:d_in].T, atol=1e-10)


def test_the_exact_way_to_factor_is_taken_when_the_start_is_steep(double):
    target = np.asarray(balanced_setup((4, 4, 4), 0.0, times=[1.0]).task.cov_yx)
    left, _, right = np.linalg.svd(target)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    draw = np.random.default_rng(1).normal(size=(4, 4))
    # The first mode starts upside down but for 1e-5: its growing part is that much smaller than its fading one.
    weights = (basis.T @ np.diag([-1.0, 1.0, 1.0, 1.0]) @ expm(1e-5 * (draw - draw.T)) @ right, left @ basis)
    flow = balanced_flow.flow(target, weights, 0.0)
    assert not flow.gentle
    times = jnp.asarray([2.0, 8.0, 22.0, 26.0, 30.0])  # it has the right sign by t = 22
    true = np.stack([state[4:] @ state[:4].T for state in (stepped(target, weights, 0.0, float(t)) for t in times)])

    def errors(states):
        lower, upper = balanced_flow.weights(flow, states)
        return np.abs(np.asarray(upper @ lower) - true).max(axis=(1, 2))

    by_qr, by_cholesky = (
        errors(jax.lax.map(lambda t, way=way: balanced_flow.factored(way, balanced_flow.grown_start(flow, t)), times))
        for way in (balanced_flow.inverse_factor_by_qr, balanced_flow.inverse_factor)
    )
    assert by_qr.max() < 1e-9
    assert errors(balanced_flow.states(flow, times)).max() < 1e-9
    # Cholesky squares the small part and loses digits that the other keeps.
    assert np.median(by_cholesky[2:] / by_qr[2:]) > 5


@pytest.mark.parametrize("hidden", [balanced_flow.FEW, balanced_flow.NARROW, balanced_flow.NARROW + 1, 40])
def test_narrow_and_wide_nets_take_different_ways_to_one_solution(hidden, double):
    rng = np.random.default_rng(hidden)
    target = rng.normal(size=(hidden, hidden)) / np.sqrt(hidden)
    setup = balanced_setup((hidden,) * 3, 0.4, task=fs.tasks.from_moments(target, np.eye(hidden)), times=[1.0])
    flow = balanced_flow.flow(target, setup.weights(0), 0.4)
    for time in (0.5, 5.0, 50.0):
        grown = balanced_flow.grown_start(flow, jnp.asarray(time))
        together = balanced_flow.orthonormalised(grown)
        for way in (balanced_flow.inverse_factor, balanced_flow.inverse_factor_by_qr):
            np.testing.assert_allclose(together, balanced_flow.factored(way, grown), atol=1e-9)
    state = stepped(target, setup.weights(0), 0.4, 5.0)
    lower, upper = balanced_flow.weights(flow, balanced_flow.states(flow, jnp.asarray([5.0])))
    np.testing.assert_allclose(upper[0] @ lower[0], state[hidden:] @ state[:hidden].T, atol=1e-10)


def test_white_inputs_of_any_variance():
    task = fs.tasks.regression(5, 3, samples=15, seed=2)
    wide = fs.tasks.from_arrays(1.7 * task.x, task.y)
    times = np.array([0.2, 1.0, 3.0])
    setup = balanced_setup((5, 3, 3), -0.6, task=wide, times=times)
    predicted = fs.solve(setup, "BalancedRiccati")
    true = integrated(setup, times)["map"]
    np.testing.assert_allclose(predicted["map"], true, atol=1e-9)
    losses = [0.5 * np.mean(np.sum((wide.y - wide.x @ m.T) ** 2, axis=1)) for m in true]
    np.testing.assert_allclose(predicted["loss"], losses, atol=1e-9)


@pytest.mark.parametrize("lam", [-3.0, 0.0, 3.0])
def test_it_ends_at_the_stated_representations(lam):
    task = fs.tasks.contrasts()
    setup = balanced_setup((8, 8, 8), lam, 1e-2, task=task, times=[1e4])
    tries = (fs.solve(setup, "BalancedRiccati", seed=seed) for seed in range(10))
    predicted = next(tried for tried in tries if not tried.provenance["note"])  # at λ = 0 half of them lack a mode
    left, values, right = np.linalg.svd(task.target())
    root = np.sqrt(lam**2 + 4 * values**2)
    np.testing.assert_allclose(predicted["input_representation"][0], right.T * (root - lam) / 2 @ right, atol=1e-11)
    np.testing.assert_allclose(predicted["output_representation"][0], left * (root + lam) / 2 @ left.T, atol=1e-11)
    np.testing.assert_allclose(predicted["map"][0], task.target(), atol=1e-11)


@pytest.mark.parametrize(
    ("shape", "rank", "lam"),
    [
        ((5, 4, 3), 3, -2.0),
        ((6, 4, 2), 2, -0.7),
        ((3, 4, 5), 3, 2.0),
        ((2, 4, 6), 2, 0.7),
        ((5, 4, 5), 2, -2.0),  # as many modes as the task has: both signs are allowed
        ((5, 4, 5), 2, 2.0),
    ],
    ids=str,
)
def test_the_larger_layer_keeps_lambda_where_no_mode_is(shape, rank, lam):
    (d_in, hidden, d_out), rng = shape, np.random.default_rng(0)
    target = rng.normal(size=(d_out, rank)) @ rng.normal(size=(rank, d_in))
    setup = balanced_setup(shape, lam, 0.1, task=fs.tasks.from_moments(target, np.eye(d_in)), times=[1e4])
    predicted = fs.solve(setup, "BalancedRiccati")
    left, values, right = np.linalg.svd(target)
    left, values, right = left[:, :rank], values[:rank], right[:rank].T
    root = np.sqrt(lam**2 + 4 * values**2)
    of_modes = {
        "input_representation": (right * (root - lam) / 2 @ right.T, right),
        "output_representation": (left * (root + lam) / 2 @ left.T, left),
    }
    larger, smaller = sorted(of_modes, reverse=lam > 0)
    np.testing.assert_allclose(predicted[smaller][0], of_modes[smaller][0], atol=1e-10)
    rest, used = predicted[larger][0] - of_modes[larger][0], of_modes[larger][1]
    # |λ| times a projection onto as many directions as there are units beyond the modes, and orthogonal to these.
    wanted = [0.0] * (len(rest) - (hidden - rank)) + [abs(lam)] * (hidden - rank)
    np.testing.assert_allclose(np.linalg.eigvalsh(rest), wanted, atol=1e-10)
    np.testing.assert_allclose(rest @ used, 0, atol=1e-10)
    np.testing.assert_allclose(predicted["map"][0], target, atol=1e-10)


def test_the_wrong_sign_of_the_determinant_ends_at_a_saddle_for_ever():
    task = fs.tasks.from_moments(np.diag([3.0, 2.0, 1.0]), np.eye(3), np.diag([9.0, 4.0, 1.0]))
    for seed in range(6):
        setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Balanced(0.0, 0.1), times=[20.0, 1e3, 1e4])
        weights = setup.weights(seed)
        predicted = fs.solve(setup, "BalancedRiccati", seed=seed)
        if np.linalg.det(weights[1] @ weights[0]) > 0:
            assert predicted["loss"][-1] < 1e-20
            assert predicted.provenance["note"] == ""
        else:
            np.testing.assert_allclose(predicted["loss"][1:], 0.5, rtol=1e-9)  # s_min²/2
            assert "never learned: mode 3 (s = 1)" in predicted.provenance["note"]
            assert "rounding" in repr(predicted)


def test_a_reversed_task_is_never_learned_from_a_balanced_solution():
    task = fs.tasks.regression(4, 4, samples=16, seed=1)
    back = fs.tasks.from_arrays(task.x, -task.y)
    solution = balanced_setup((4, 6, 4), 0.0, task=task, times=[1e3])
    tries = (fs.solve(solution, "BalancedRiccati", seed=seed) for seed in range(10))
    layers = next(tried for tried in tries if not tried.provenance["note"]).weights  # half of the starts lack a mode
    setup = fs.Setup(back, fs.nets.DeepLinear(6), fs.inits.Given(layers), times=[1.0, 1e2, 1e4])
    predicted = fs.solve(setup, "BalancedRiccati")
    left, values, right = np.linalg.svd(back.cov_yx)
    # Every mode falls from −s to 0, and no further: a' = 2|a|(s − a).
    fallen = -values * np.exp(-2 * values) / (2 - np.exp(-2 * values))
    np.testing.assert_allclose(predicted["map"][0], left * fallen @ right, atol=1e-9)
    np.testing.assert_allclose(predicted["map"][-1], 0, atol=1e-12)
    assert predicted.provenance["note"].count("(s =") == 4


@pytest.mark.parametrize("rank", [1, 2])
def test_tasks_and_starts_without_full_rank(rank):
    rng = np.random.default_rng(0)
    target = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 5))
    task = fs.tasks.from_moments(target, np.eye(5))
    times = np.array([0.3, 1.0, 4.0])
    start = [np.zeros((3, 5)), np.zeros((4, 3))]
    start[0][0], start[1][:, 0] = 0.6 * np.eye(5)[0], 0.6 * np.eye(4)[1]  # λ = 0, one hidden direction
    for init in (fs.inits.Balanced(0.0, 0.4), fs.inits.Given(start)):
        setup = fs.Setup(task, fs.nets.DeepLinear(3), init, times=times)
        predicted = fs.solve(setup, "BalancedRiccati")
        np.testing.assert_allclose(predicted["map"], integrated(setup, times)["map"], atol=1e-9)
        late = fs.solve(setup.replace(times=[1e4]), "BalancedRiccati")
        assert all(np.isfinite(late[name]).all() for name in late)


def test_a_tiny_start_keeps_its_digits():
    task = fs.tasks.regression(4, 4, samples=12, seed=5)
    values = np.linalg.svd(task.cov_yx, compute_uv=False)
    begin = 1e-12
    when = np.log(values / begin - 1) / (2 * values)
    setup = fs.Setup(task, fs.nets.DeepLinear(4), fs.inits.Balanced(0.0, begin, aligned=True), times=np.sort(when))
    strengths = np.sort(fs.solve(setup, "BalancedRiccati")["modes"], axis=1)
    wanted = fs.theories.aligned_modes.mode(np.sort(when), singular_value=values, start=begin)
    np.testing.assert_allclose(strengths, np.sort(wanted, axis=1), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("aligned", [False, True])
def test_a_family_of_starts_is_one_batched_call(aligned):
    task = fs.tasks.regression(3, 2, samples=6, seed=0)
    lams, scales, names = [-2.0, 0.0, 2.0], [0.1, 1.0], ["loss", "map", "kernel_distance", "input_representation"]
    many = fs.theories.balanced_riccati.family(
        task, 2, lam=lams, scale=scales, seeds=3, times=[0.5, 3.0], observe=names, aligned=aligned
    )
    assert dict(many.sizes) == {"lam": 3, "scale": 2, "seed": 3, "time": 2, "feature": 2, "input": 3, "input_": 3}
    for lam, scale, seed in [(-2.0, 0.1, 0), (0.0, 1.0, 1), (2.0, 0.1, 2)]:
        setup = fs.Setup(task, fs.nets.DeepLinear(2), fs.inits.Balanced(lam, scale, aligned), times=[0.5, 3.0])
        alone = fs.solve(setup, "BalancedRiccati", seed=seed, observe=names)
        for name in names:
            one = many[name].sel(lam=lam, scale=scale, seed=seed)
            np.testing.assert_allclose(one, alone[name], atol=1e-10, err_msg=name)


def test_a_family_is_refused_where_one_of_its_members_would_be():
    task = fs.tasks.regression(3, 2, samples=6, seed=0)
    with pytest.raises(fs.BadInput, match="hidden"):
        fs.theories.balanced_riccati.family(task, 3, lam=[-1.0, 1.0], scale=0.1, times=[1.0])
    bent = fs.tasks.regression(3, 2, samples=6, seed=0, whiten=False)
    with pytest.raises(fs.NoTheory, match="white input"):
        fs.theories.balanced_riccati.family(bent, 2, lam=1.0, scale=0.1, times=[1.0])


def test_derivatives_in_the_start_are_right_and_those_in_the_task_are_refused(double):
    rng = np.random.default_rng(0)
    full, poor = rng.normal(size=(3, 4)), np.outer(rng.normal(size=3), rng.normal(size=4))
    first, last = (jnp.asarray(rng.normal(size=s)) for s in ((3, 4), (3, 3)))

    def by_exponentials(target, lam, first):
        """The formula as it stands, through matrix exponentials and a sum over time."""
        generator = jnp.block([[-lam / 2 * jnp.eye(4), target.T], [target, lam / 2 * jnp.eye(3)]])
        begin = jnp.concatenate([first.T, last])
        nodes, shares = np.polynomial.legendre.leggauss(24)
        grams = [
            begin.T @ jax.scipy.linalg.expm(2 * generator * (n + 1) / 2) @ begin * w / 2
            for n, w in zip(nodes, shares, strict=True)
        ]
        end = jax.scipy.linalg.expm(generator) @ begin
        return jnp.sum(jnp.sin(end @ jnp.linalg.solve(jnp.eye(3) + sum(grams), end.T)))

    def closed(target, lam, first):
        flow = balanced_flow.flow(target, (first, last), lam)
        one, two = balanced_flow.weights(flow, balanced_flow.states(flow, jnp.asarray([1.0])))
        whole = jnp.concatenate([jnp.swapaxes(one, -1, -2), two], axis=1)[0]
        return jnp.sum(jnp.sin(whole @ whole.T))

    for target in (full, poor):
        for lam in (0.0, 0.8, -0.8):
            for argument in (1, 2):
                slope, true = (
                    jax.grad(f, argument)(jnp.asarray(target), lam, first) for f in (closed, by_exponentials)
                )
                np.testing.assert_allclose(slope, true, rtol=1e-7, atol=1e-9)
    with pytest.raises(fs.BadInput, match=r"derivative .* with respect to the task"):
        jax.grad(closed)(jnp.asarray(full), 0.8, first)


@pytest.mark.parametrize(
    ("setup", "words"),
    [
        (
            lambda: balanced_setup((4, 4, 4), 0.0, times=[1.0]).replace(init=fs.inits.SmallRandom(0.5)),
            ["fitted λ = ", "balanced: measured", "residual", "rules.GradientFlow()"],
        ),
        (
            lambda: balanced_setup(
                (4, 4, 4), 0.0, task=fs.tasks.regression(4, 4, samples=9, whiten=False), times=[1.0]
            ),
            ["Σˣ = κI (nearest κ = ", "white input: measured"],
        ),
        (lambda: balanced_setup((4, 4, 4), 0.0, times=[1e12]), ["float64 means something", "horizon: measured"]),
        (
            lambda: fs.Setup(fs.tasks.hierarchy(2), fs.nets.DeepLinear((4, 4)), fs.inits.SmallRandom(0.1)),
            ["two layers: measured 3 layers"],
        ),
    ],
)
def test_what_it_does_not_cover_it_refuses_with_numbers(setup, words):
    with pytest.raises(fs.NoTheory) as refusal:
        fs.solve(setup(), "BalancedRiccati")
    for word in words:
        assert word in str(refusal.value)


GRIDS = {
    "log from 0": np.concatenate([[0.0], np.geomspace(2e-3, 20, 799)]),
    "linear": np.linspace(0, 12, 800),
    "random": np.sort(np.random.default_rng(0).uniform(0, 15, 800)),
    "late": np.concatenate([np.geomspace(1e-2, 30, 400), np.geomspace(31, 1e4, 400)]),
}


@pytest.fixture(scope="module")
def wide_nets():
    """A net that is wide enough for a time to be costly, its constants, by λ; of two tasks one has no floor."""
    width = balanced_flow.NARROW + 2
    target = np.random.default_rng(7).normal(size=(width, width)) / np.sqrt(width)
    theory, nets = fs.theories.BalancedRiccati(), {}
    for lam, power in ((-1.5, None), (0.0, 4.0 * np.eye(width)), (2.0, 4.0 * np.eye(width))):
        task = fs.tasks.from_moments(target, np.eye(width), power)
        setup = balanced_setup((width,) * 3, lam, 0.1, task=task, times=[1.0])
        nets[lam] = setup, constants_of(theory, setup, 0)
    return nets


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("lam", [-1.5, 0.0, 2.0])
def test_a_dense_grid_is_the_closed_form_to_rounding(wide_nets, lam, grid):
    (setup, constants), times = wide_nets[lam], GRIDS[grid]
    names = ("loss", "map", "input_representation", "output_representation", "kernel_distance")
    theory = fs.theories.BalancedRiccati()
    assert theory.costly(constants)
    true = evaluation.in_chunks(theory, names, constants, times)
    dense = fs.solve(setup.replace(times=times), theory)
    for name, values in true.items():
        size = np.abs(values).reshape(len(times), -1).max(axis=1).reshape(-1, *(1,) * (values.ndim - 1))
        assert (np.abs(dense[name] - values) <= 3e-13 * size).all(), name
    assert not np.array_equal(dense["map"], true["map"])  # it was not evaluated at every time


def counted(curve):
    """A closed form of one readout, and the times at which it was evaluated."""
    asked = []

    def evaluate(times):
        asked.append(times)
        return {"curve": curve(times)}

    return evaluate, asked


def test_a_panel_that_resolves_costs_its_nodes_alone():
    evaluate, asked = counted(lambda t: np.exp(-t)[:, None] * [1.0, 2.0])
    times = np.sort(np.random.default_rng(1).uniform(0, 3, 5000))
    answer = interpolation.at_times(evaluate, times)["curve"]
    np.testing.assert_allclose(answer, evaluate(times)["curve"], rtol=1e-13)
    assert [len(times) for times in asked[:-1]] == [interpolation.TOGETHER]


@pytest.mark.parametrize(
    "curve",
    [
        lambda t: 2 + np.cos(3e3 * t),
        # At the nodes it is 3 − 2t: nothing but the times of the panel tells them apart.
        lambda t: 2 + np.cos((2 * interpolation.NODES - 1) * np.arccos(np.clip(2 * t - 1, -1, 1))),
        lambda t: 2 + (1e9 * t) % 1,
        lambda t: np.where(np.abs(t - 0.5) < 0.4, np.nan, 1.0),
        lambda t: np.exp(-80 * t),  # resolved against its largest value, and not against its smallest
    ],
    ids=["fast", "aliased", "noise", "nan", "falling"],
)
def test_what_the_nodes_do_not_resolve_is_evaluated_at_every_time(curve):
    times = np.linspace(0, 1, 700)
    evaluate, asked = counted(curve)
    np.testing.assert_array_equal(interpolation.at_times(evaluate, times)["curve"], curve(times))
    assert np.isin(times, np.concatenate(asked)).all()
    assert sum(map(len, asked)) <= 5 / 3 * len(times)


def test_what_resolves_in_part_is_evaluated_in_part():
    evaluate, asked = counted(lambda t: np.hypot(t - 0.6, 1e-3))  # a bend at 0.6
    times = np.linspace(0, 1, 1600)
    answer = interpolation.at_times(evaluate, times)["curve"]
    np.testing.assert_allclose(answer, np.hypot(times - 0.6, 1e-3), rtol=2e-13)
    assert sum(map(len, asked)) < 0.8 * len(times)
    assert max(map(len, asked)) == interpolation.TOGETHER
