"""simulate(): the compiled loop, its records, its limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import festina as fs
from festina._training import loop

TASK = fs.tasks.hierarchy(levels=2)


def relu(**changes) -> fs.Setup:
    grid = {} if "times" in changes or "every" in changes else dict(until=6.0, points=7)
    options = dict(rule=fs.rules.GradientDescent(0.1)) | grid | changes
    return fs.Setup(TASK, fs.nets.MLP(6), fs.inits.SmallRandom(0.4), **options)


def in_fresh_python(code: str, **environment: str) -> str:
    """Run code in a new interpreter with warnings as errors; its output."""
    words = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("precision", "rounding"), [("float64", 1e-12), ("float32", 1e-6)])
def test_the_trained_weights_give_the_last_outputs(precision, rounding):
    trained = fs.simulate(relu(precision=precision), seeds=3, observe="outputs")
    assert [w.shape for w in trained.weights] == [(3, 6, 4), (3, 7, 6)]
    assert all(w.dtype == precision for w in trained.weights)
    for seed in range(3):
        outputs = relu().net.apply([np.asarray(w[seed], float) for w in trained.weights], TASK.x)
        np.testing.assert_allclose(
            trained["outputs"][seed, -1], outputs, atol=1e-12 if precision == "float64" else 1e-6
        )


def test_an_interrupt_is_answered_as_asked(monkeypatch):
    block = loop.Run.block
    blocks = []

    def interrupted(run):
        if len(blocks) == 2:
            raise KeyboardInterrupt
        blocks.append(block(run))
        return blocks[-1]

    monkeypatch.setattr(loop.Run, "block", interrupted)
    setup = relu(times=np.arange(1, 300) * 0.1)
    kept = fs.simulate(setup)
    assert kept.provenance["interrupted"]
    assert 0 < len(kept.times) == kept["loss"].shape[1] < 299
    assert np.isfinite(np.concatenate([w.ravel() for w in kept.weights])).all()
    blocks.clear()
    with pytest.raises(KeyboardInterrupt):
        fs.simulate(setup, interrupt="raise")
    with pytest.raises(fs.UnknownName, match="interrupt"):
        fs.simulate(setup, interrupt="stop")


def test_axes_and_shapes():
    seen = fs.simulate(relu(), seeds=3, observe=["loss", "outputs", "representation", "gradient_norm"])
    assert seen["loss"].shape == (3, 7)
    assert seen["outputs"].shape == (3, 7, 4, 7)
    assert seen["representation"].shape == (3, 7, 4, 6)
    assert seen.axes["outputs"] == ("seed", "time", "sample", "feature")
    assert list(seen.to_xarray()["sample"].values) == list(TASK.items)


def test_each_seed_is_the_run_it_would_be_alone():
    together = fs.simulate(relu(), seeds=3)["loss"]
    for seed in range(3):
        np.testing.assert_allclose(fs.simulate(relu(), seeds=[seed])["loss"][0], together[seed], rtol=1e-12)
    assert len(np.unique(together[:, -1])) == 3


def test_records_do_not_disturb_training():
    once = fs.simulate(relu(times=[6.0]), observe="outputs")["outputs"][:, -1]
    often = fs.simulate(relu(until=6.0, every=1), observe="outputs")["outputs"]
    assert often.shape[1] == 61
    np.testing.assert_array_equal(often[:, -1], once)


def test_the_recorded_loss_is_the_loss_of_the_recorded_outputs():
    seen = fs.simulate(relu(), seeds=2, observe=["loss", "outputs"])
    by_hand = 0.5 * np.mean(np.sum((seen["outputs"] - TASK.y) ** 2, axis=3), axis=2)
    np.testing.assert_allclose(seen["loss"], by_hand, rtol=1e-12)


def test_moments_train_like_samples():
    # A linear net sees moments only; an MLP with linear units sees the samples.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    task = fs.tasks.from_arrays(x, x @ rng.normal(size=(3, 2)) + rng.normal(size=(30, 2)))
    weights = [rng.normal(size=(4, 3)) / 4, rng.normal(size=(2, 4)) / 4]
    parts = dict(init=fs.inits.Given(weights), rule=fs.rules.GradientDescent(0.05), times=np.linspace(0, 3, 7))
    one = fs.simulate(fs.Setup(task, fs.nets.DeepLinear(4), **parts))["loss"]
    other = fs.simulate(fs.Setup(task, fs.nets.MLP(4, "linear"), **parts))["loss"]
    np.testing.assert_allclose(one, other, rtol=1e-11)


def test_a_vanishing_loss_keeps_its_digits():
    setup = fs.Setup(TASK, fs.nets.DeepLinear(5), fs.inits.Aligned(0.5), until=120.0, points=3)
    assert fs.simulate(setup)["loss"][0, -1] < 1e-20


def test_float32_by_choice():
    single = fs.simulate(relu(precision="float32"), seeds=2)
    double = fs.simulate(relu(), seeds=2)
    assert single["loss"].dtype == np.float32
    assert double["loss"].dtype == np.float64
    gap = np.abs(single["loss"] - double["loss"]).max()
    assert 0 < gap < 1e-5


def test_flow_in_float32_runs_to_what_it_can_hold():
    setup = fs.Setup(TASK, fs.nets.DeepLinear(5), fs.inits.Aligned(0.1), until=10.0, points=5)
    gap = np.abs(fs.simulate(setup.replace(precision="float32"))["loss"] - fs.simulate(setup)["loss"]).max()
    assert 0 < gap < 1e-4


def test_long_runs_and_dense_records_cross_block_borders():
    # More marks than one block holds, and stretches longer than the first budget of steps.
    setup = relu(times=np.r_[np.arange(1, 150) * 0.1, 400.0])
    seen = fs.simulate(setup, observe=["loss"])
    assert seen["loss"].shape == (1, 150)
    alone = fs.simulate(relu(times=[400.0]))["loss"][0, 0]
    np.testing.assert_allclose(seen["loss"][0, -1], alone, rtol=1e-12)


def test_divergence_stops_with_step_loss_and_a_rate_that_works():
    # Shallow: the largest stable rate is exactly 2 / largest variance = 8.
    setup = fs.Setup(
        TASK, fs.nets.DeepLinear(()), fs.inits.SmallRandom(0.1), fs.rules.GradientDescent(9.0), until=9e4, points=5
    )
    with pytest.raises(fs.Diverged) as stop:
        fs.simulate(setup, seeds=2)
    error = stop.value
    assert error.step > 0
    assert error.loss > 1e6
    np.testing.assert_allclose(error.stable_rate, 8.0, rtol=1e-3)
    assert f"step {error.step}" in error.seen
    assert "lr below about 8" in error.needed
    assert error.trajectory["loss"].shape[1] == len(error.trajectory.times)
    fs.simulate(setup.replace(rule=fs.rules.GradientDescent(0.99 * error.stable_rate), times=[1e3]))


@pytest.mark.parametrize("size", [0.0, 1e-5])
def test_a_start_far_above_the_task_is_no_divergence(size):
    task = fs.tasks.from_arrays(np.eye(4), size * np.ones((4, 2)))
    setup = fs.Setup(task, fs.nets.DeepLinear(5), fs.inits.SmallRandom(0.5), fs.rules.GradientDescent(0.1), until=5.0)
    assert fs.simulate(setup, seeds=(seed for seed in range(2)))["loss"].shape[0] == 2
    assert fs.simulate(setup.replace(rule=fs.rules.GradientFlow()))["loss"][0, -1] < 1.0


def test_a_rate_that_is_far_too_large_is_answered_with_one_that_is_not():
    task = fs.tasks.from_arrays(np.eye(3), np.eye(3))
    setup = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Aligned(0.1), fs.rules.GradientDescent(1e7), until=1e9)
    with pytest.raises(fs.Diverged) as stop:
        fs.simulate(setup)
    np.testing.assert_allclose(stop.value.stable_rate, 2 / (2 / 3), rtol=0.01)  # curvature 2 s at the solution


def test_a_rate_that_only_the_start_is_too_steep_for_is_not_recommended():
    # At the solution 2 / (2 s) = 1.5 would do; the start is 30 times as steep, and lr = 1 diverges there.
    setup = fs.Setup(TASK, fs.nets.DeepLinear(5), fs.inits.Aligned(25.0), fs.rules.GradientDescent(1.0), until=100.0)
    with pytest.raises(fs.Diverged) as stop:
        fs.simulate(setup)
    rate = stop.value.stable_rate
    assert rate < 0.25
    fs.simulate(setup.replace(rule=fs.rules.GradientDescent(rate)))


def test_divergence_of_a_deep_net_is_estimated_at_its_solution():
    # Aligned, two layers: the curvature at the solution is 2 a λ = 2 s at most.
    setup = fs.Setup(
        TASK, fs.nets.DeepLinear(5), fs.inits.Aligned(0.1), fs.rules.GradientDescent(5.0), until=5e4, points=5
    )
    with pytest.raises(fs.Diverged) as stop:
        fs.simulate(setup)
    np.testing.assert_allclose(stop.value.stable_rate, 2 / (2 * np.sqrt(7) / 4), rtol=0.05)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fs.simulate(relu(), observe=["lss"]), "unknown observable 'lss'"),
        (lambda: fs.simulate(relu(), observe=["map"]), "MLP is not linear"),
        (
            lambda: fs.simulate(
                fs.Setup(TASK, fs.nets.DeepLinear(()), fs.inits.SmallRandom(1.0)), observe="representation"
            ),
            "no hidden layer",
        ),
        (lambda: fs.simulate(relu(), observe=[]), "observe is empty"),
        (lambda: fs.simulate("setup"), "setup is 'setup'"),
        (lambda: fs.simulate(relu(rule=fs.rules.GradientDescent(1e-9), times=[100.0])), "1e+11 steps"),
        (lambda: fs.simulate(relu(), seeds=0), "seeds = 0"),
        (lambda: fs.simulate(relu(), seeds=[]), "seeds = []"),
        (lambda: fs.simulate(relu(), seeds=[-1]), "seeds = -1"),
        (lambda: fs.simulate(relu().replace(task=fs.tasks.from_moments([[1.0]], [[1.0]]))), "a task without samples"),
    ],
)
def test_impossible_requests_are_refused_in_three_parts(call, words):
    with pytest.raises(fs.BadInput) as refusal:
        call()
    assert words in refusal.value.seen
    assert refusal.value.needed
    assert refusal.value.do


def test_many_devices_give_the_numbers_of_one():
    code = """
        import jax, numpy as np
        jax.config.update("jax_num_cpu_devices", {devices})
        import festina as fs
        for rule in (fs.rules.GradientDescent(0.1), fs.rules.SGD(0.1, batch=2)):
            setup = fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.MLP(6), fs.inits.SmallRandom(0.4), rule,
                             until=6.0, points=7)
            seen = fs.simulate(setup, seeds=5)
            assert seen["loss"].shape == (5, 7) and len(jax.devices()) == {devices}
            print(np.round(seen["loss"], 12).tolist())
    """
    assert in_fresh_python(code.format(devices=1)) == in_fresh_python(code.format(devices=2))


def test_nouns_closed_forms_and_simulator_work_without_equinox():
    in_fresh_python("""
        import sys
        for name in ("equinox", "diffrax", "optimistix", "lineax", "sklearn"):
            sys.modules[name] = None  # importing it now fails
        import festina as fs
        setup = fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.DeepLinear(4), fs.inits.Aligned(0.1),
                         fs.rules.GradientDescent(0.05), until=5.0, points=5)
        comparison = fs.compare(fs.solve(setup), fs.simulate(setup))
        assert comparison.error("loss") < 0.1
    """)


def test_import_has_no_side_effects():
    out = in_fresh_python("""
        import sys
        import festina
        assert "jax" not in sys.modules and "matplotlib" not in sys.modules
        import jax
        before = dict(jax.config.values)
        from festina import tasks, nets, inits, rules, theories, simulate, solve, compare, run
        assert dict(jax.config.values) == before
        setup = festina.Setup(tasks.hierarchy(2), nets.DeepLinear(3), inits.Aligned(0.1), until=1.0, points=3)
        solve(setup)["loss"], simulate(setup)
        assert dict(jax.config.values) == before
        print("clean")
    """)
    assert out.strip() == "clean"


def test_it_is_silent_away_from_a_terminal(capfd):
    fs.simulate(relu())
    seen = capfd.readouterr()
    assert seen.out == ""
    assert seen.err == ""


LONG_RUN = """
    import festina as fs
    from festina._training.loop import Run

    advance = Run.block

    def block(run):
        records = advance(run)
        print("block", flush=True)
        return records

    Run.block = block
    setup = fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.MLP(64), fs.inits.SmallRandom(0.1),
                     fs.rules.GradientDescent(1e-4), until=1e5, points=2000)
    seen = fs.simulate(setup)
    assert 0 < len(seen.times) < 2000 and seen["loss"].shape == (1, len(seen.times)), len(seen.times)
    assert seen.provenance["interrupted"]
    seen.save("finished.nc")
    print("kept", len(seen.times), len(fs.Trajectory.load("finished.nc").times))
"""


def test_ctrl_c_returns_what_is_finished(child, tmp_path):
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process = child(sys.executable, "-c", textwrap.dedent(LONG_RUN), cwd=tmp_path, **pipes)
    for _ in range(3):  # the whole run would take many minutes
        assert process.stdout.readline().strip() == "block"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    kept, saved = out.splitlines()[-1].split()[1:]
    assert int(kept) == int(saved) > 0


def test_a_terminal_sees_loss_and_time_left(child, tmp_path):
    import pty

    leader, follower = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    words = sys.executable, "-c", textwrap.dedent(LONG_RUN)
    child(*words, stdout=subprocess.DEVNULL, stderr=follower, cwd=tmp_path, env=terminal)
    os.close(follower)
    seen, end = "", time.monotonic() + 60
    try:
        while time.monotonic() < end and not ("loss" in seen and "%" in seen):
            seen += os.read(leader, 4096).decode(errors="replace")
    finally:
        os.close(leader)
    assert "MLP × 1" in seen
    assert "loss" in seen
    assert ":" in seen  # time left
