"""Tasks one after another: the same weights go on, in theory and in training."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs

FIRST, SECOND = (fs.tasks.regression(5, 3, samples=12, seed=k) for k in (1, 2))
NET = fs.nets.DeepLinear(4)
NAMES = ["loss", "map", "input_representation", "output_representation", "kernel_distance", "task_loss", "forgetting"]


def setup(rule=None, **grid):
    task = fs.tasks.sequence([FIRST, SECOND, FIRST], 3.0)
    return fs.Setup(task, NET, fs.inits.Balanced(-0.7, 0.3), rule, **(grid or {"points": 40}))


def test_theory_and_flow_agree_over_all_tasks():
    predicted, flow = fs.solve(setup(), observe=NAMES), fs.simulate(setup(), observe=NAMES)
    assert predicted.source == "BalancedRiccati"
    for name, error in fs.compare(predicted, flow).errors().items():
        assert error < 1e-8, name
    assert set(NAMES) <= set(fs.compare(predicted, flow).names)


def test_descent_tends_to_theory_over_a_sequence_at_first_order():
    errors = []
    for lr in (0.02, 0.01, 0.005):
        one = setup(fs.rules.GradientDescent(lr), times=np.arange(0, 9.01, 0.5))
        errors.append(fs.compare(fs.solve(one), fs.simulate(one, observe=["map"])).error("map"))
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / errors[1:]), 1, atol=0.1)


def test_a_sequence_is_its_stages_one_by_one():
    whole = fs.simulate(setup(times=[1.0, 2.0, 3.0, 4.5]), 2, ["map", "loss"])
    for seed in range(2):
        alone = fs.Setup(FIRST, NET, fs.inits.Balanced(-0.7, 0.3), times=[1.0, 2.0, 3.0])
        np.testing.assert_allclose(whole["map"][seed, :2], fs.simulate(alone, [seed], "map")["map"][0, :2], atol=1e-9)
        # At the time of the switch the map is that of the first task, the loss that of the second.
        ended = fs.simulate(alone, [seed], "map")["map"][0, 2]
        np.testing.assert_allclose(whole["map"][seed, 2], ended, atol=1e-8)
        error = SECOND.y - SECOND.x @ ended.T
        np.testing.assert_allclose(whole["loss"][seed, 2], 0.5 * np.mean(np.sum(error**2, axis=1)), rtol=1e-7)


def test_the_weights_at_the_end_are_those_of_the_last_stage():
    names = ["map", "task_loss"]
    predicted, trained = fs.solve(setup(), observe=names), fs.simulate(setup(), 2, observe=names)
    np.testing.assert_allclose(NET.map(predicted.weights), predicted["map"][-1], atol=1e-12)
    for seed in range(2):
        np.testing.assert_allclose(NET.map([w[seed] for w in trained.weights]), trained["map"][seed, -1], atol=1e-12)


def test_forgetting_is_the_loss_above_the_one_that_was_left():
    seen = fs.simulate(setup(times=[0.0, 2.9, 3.0, 5.9, 6.0, 8.0]), 2, ["task_loss", "forgetting"])
    losses, forgotten = seen["task_loss"], seen["forgetting"]
    assert (forgotten[:, :2] == 0).all()
    assert (forgotten[..., 2] == 0).all()  # the last task is never left
    np.testing.assert_allclose(forgotten[:, 2:, 0], losses[:, 2:, 0] - losses[:, 2:3, 0], atol=1e-9)
    np.testing.assert_allclose(forgotten[:, 4:, 1], losses[:, 4:, 1] - losses[:, 4:5, 1], atol=1e-9)


def test_forgetting_between_converged_tasks_needs_no_training():
    tasks = [fs.tasks.regression(4, 4, samples=16, seed=k) for k in range(3)]
    one = fs.Setup(fs.tasks.sequence(tasks, 200.0), fs.nets.DeepLinear(4), fs.inits.Balanced(1.0, 0.1), times=[600.0])
    forgotten = fs.solve(one)["forgetting"][-1]
    targets = [task.target() for task in tasks]

    def between(i, j):
        return 0.5 * np.sum((targets[i] - targets[j]) ** 2)

    np.testing.assert_allclose(forgotten, [between(2, 0), between(2, 1), 0], atol=1e-9)


def kernel_distance(start, now, cov_x):
    """1 − cos of the tangent kernels x·x′ W₂W₂ᵀ + (x·W₁ᵀW₁x′) I over independent inputs x, x′ of this covariance."""

    def overlap(one, other):
        (first, last), (first_too, last_too) = one, other
        return (
            np.trace(last @ last_too) * np.trace(cov_x @ cov_x)
            + np.trace(last) * np.trace(cov_x @ first_too @ cov_x)
            + np.trace(last_too) * np.trace(cov_x @ first @ cov_x)
            + len(last) * np.trace(first @ cov_x @ first_too @ cov_x)
        )

    return 1 - overlap(start, now) / np.sqrt(overlap(start, start) * overlap(now, now))


def test_inputs_that_are_not_white_and_change_with_the_task():
    rng = np.random.default_rng(5)
    left, right, hidden = (np.linalg.qr(rng.normal(size=(n, 3)))[0] for n in (4, 3, 5))

    def task(values, variances):
        return fs.tasks.from_moments(left * values @ right.T, right * variances @ right.T)

    first, second = task([2.0, 1.0, 0.4], [0.5, 1.0, 2.0]), task([0.7, 1.5, 1.0], [2.0, 0.3, 1.0])
    start = [hidden * [0.3, 0.1, 0.2] @ right.T, left * [0.2, 0.6, 0.1] @ hidden.T]
    names = ["loss", "map", "input_representation", "output_representation", "kernel_distance", "task_loss"]
    one = fs.Setup(
        fs.tasks.sequence([first, second], 4.0),
        fs.nets.DeepLinear(5),
        fs.inits.Given([start[0], start[1]]),
        times=[0.0, 1.0, 3.9, 4.0, 5.0, 8.0],
    )
    predicted, flow = fs.solve(one, observe=names), fs.simulate(one, observe=names)
    assert predicted.source == "UnbalancedModes"
    errors = fs.compare(predicted, flow).errors()
    assert set(names) <= set(errors)
    for name, error in errors.items():
        assert error < 1e-7, name
    # Kernels are compared on the inputs of the first task: a switch alone does not move them.
    sides = list(zip(predicted["input_representation"], predicted["output_representation"], strict=True))
    by_first = [kernel_distance(sides[0], now, first.cov_x) for now in sides]
    np.testing.assert_allclose(predicted["kernel_distance"], by_first, atol=1e-9)
    by_second = kernel_distance(sides[0], sides[-1], second.cov_x)
    assert abs(by_second - by_first[-1]) > 0.01


def test_any_net_can_be_trained_on_a_sequence():
    one = setup(fs.rules.Adam(0.01), times=np.arange(0, 9, 1.0)).replace(
        net=fs.nets.MLP(6, "tanh", bias=True), init=fs.inits.SmallRandom(0.3)
    )
    seen = fs.simulate(one, 2, ["loss", "task_loss", "forgetting", "parameter_distance"])
    assert seen["task_loss"].shape == (2, 9, 3)
    np.testing.assert_allclose(seen["loss"][:, 4], seen["task_loss"][:, 4, 1], rtol=1e-12)
    assert list(seen.to_xarray()["task"].values) == ["task 1", "task 2", "task 3"]


def test_a_grid_may_end_before_the_last_task_and_goes_on_after_the_last_switch():
    assert len(fs.simulate(setup(times=[0.5, 3.5]))["loss"][0]) == 2
    assert len(fs.solve(setup(times=[0.5, 3.5, 100.0]))["loss"]) == 3
    np.testing.assert_allclose(setup().times[-1], 9.0)
    np.testing.assert_allclose(fs.tasks.sequence([FIRST, SECOND]).durations[0], 12 / FIRST.spectrum()[-1])


def test_a_sequence_is_written_and_read():
    one = setup()
    assert fs.Setup.from_json(one.to_json()) == one
    seen = fs.simulate(setup(times=[1.0, 4.0]), observe=["loss", "forgetting"])
    assert seen.provenance["setup"]["task"].keys() == {"sequence"}


def test_a_theory_that_fails_at_a_later_task_says_which():
    white, other = fs.tasks.regression(4, 4, seed=0), fs.tasks.regression(4, 4, seed=1, whiten=False)
    one = fs.Setup(fs.tasks.sequence([white, other], 1.0), fs.nets.DeepLinear(4), fs.inits.Balanced(0.0, 0.1))
    with pytest.raises(fs.NoTheory, match="white input"):
        fs.solve(one, "BalancedRiccati")
    frozen = setup()
    with pytest.raises(fs.NoTheory, match="does not know the weights that task 1 ends with"):
        fs.solve(frozen, "FrozenKernel")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fs.tasks.sequence([]), "tasks = []"),
        (lambda: fs.tasks.sequence([FIRST, 3]), "tasks = ["),
        (lambda: fs.tasks.sequence([FIRST, fs.tasks.ring(5)]), "(d_in, d_out) = (5, 3), (5, 5)"),
        (lambda: fs.tasks.sequence([FIRST, SECOND], [1.0]), "1 durations for 2 tasks"),
        (lambda: fs.tasks.sequence([FIRST, SECOND], -1.0), "durations = -1.0"),
        (lambda: fs.simulate(setup(), observe="saddle_distance"), "no one set of saddles"),
        (
            lambda: fs.simulate(fs.Setup(FIRST, NET, fs.inits.SmallRandom(0.1)), observe="task_loss"),
            "not a sequence of tasks",
        ),
    ],
)
def test_impossible_sequences_are_refused_in_three_parts(make, words):
    with pytest.raises(fs.BadInput) as refusal:
        make()
    assert words in refusal.value.seen
    assert refusal.value.needed
    assert refusal.value.do
