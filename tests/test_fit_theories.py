"""fit() of whatever theory declares how it is fitted: the start of a mode, and a theory of one's own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina.theories._fitting.base import Fitting
from festina.theories._fitting.records import FitRecord, checked_times, seed_number, seeded, seeds_of


def chain(depth=2, start=1e-2, **changed):
    """A balanced linear network that starts along the modes of a tree."""
    until = {2: 30.0, 3: 60.0}[depth]
    setup = fs.theories.AlignedModes.example().replace(
        net=fs.nets.DeepLinear(hidden=(5,) * (depth - 1)), init=fs.inits.Aligned(start), until=until, points=121
    )
    return setup.replace(**changed) if changed else setup


class TestStartOfAMode:
    """AlignedModes: a₀ of one mode from its recorded strength."""

    @pytest.mark.parametrize("depth", [2, 3])
    @pytest.mark.parametrize("mode", [0, 2])
    def test_it_comes_back_from_the_closed_form(self, depth, mode):
        theory = fs.solve(chain(depth), "AlignedModes")
        fit = fs.fit("AlignedModes", theory, mode=mode)
        np.testing.assert_allclose(fit.numbers["start"], theory["modes"][0, mode], rtol=1e-10)
        assert fit.applies
        assert fit.converged
        assert fit.names == {"mode": mode, "seed": None}
        assert repr(fit).startswith(f"AlignedModes fitted to mode {mode}, 121 records from record 0 on")

    def test_training_approaches_it_at_order_one(self):
        errors = []
        for lr in (0.08, 0.04, 0.02):
            setup = fs.theories.AlignedModes().example_at(lr)
            trained = fs.simulate(setup, 1, ["modes"], progress=False)
            start = fs.fit("AlignedModes", trained).numbers["start"]
            errors.append(abs(np.log(start / trained["modes"][0, 0, 0])))
        np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 1, atol=0.2)

    def test_a_later_record_has_the_strength_of_that_time(self):
        theory = fs.solve(chain(), "AlignedModes")
        fit = fs.fit(fs.theories.AlignedModes, theory, mode=1, start=20)
        np.testing.assert_allclose(fit.numbers["start"], theory["modes"][20, 1], rtol=1e-8)
        assert len(fit.times) == 101

    def test_noise_gives_the_error_that_is_stated(self):
        theory, rng = fs.solve(chain(), "AlignedModes"), np.random.default_rng(0)
        logs, errors = [], []
        for _ in range(40):
            noisy = theory["modes"] + 0.02 * rng.normal(size=theory["modes"].shape)
            run = fs.Trajectory(theory.times, {"modes": noisy}, {"modes": ("time", "mode")}, "test", setup=theory.setup)
            fit = fs.fit("AlignedModes", run)
            logs.append(np.log(fit.numbers["start"]))
            errors.append(fit.errors["start"] / fit.numbers["start"])
        np.testing.assert_allclose(np.std(logs), np.mean(errors), rtol=0.35)

    def test_a_figure_has_a_panel_for_the_curve(self):
        figure = fs.fit("AlignedModes", fs.solve(chain(), "AlignedModes")).plot()
        assert [panel.get_title(loc="left") for panel in figure.axes] == ["modes: R² = 1.0000"]

    @pytest.mark.parametrize(
        ("call", "words"),
        [
            (lambda: fs.fit("AlignedModes", 3), "to int"),
            (lambda: fs.fit("AlignedModes", fs.solve(chain(), "AlignedModes"), mode=9), "mode = 9"),
            (lambda: fs.fit("AlignedModes", fs.solve(chain(), "AlignedModes"), layer=0), "argument of a fit"),
            (lambda: fs.fit("AlignedModes", fs.solve(chain(), "AlignedModes"), seed=0), "without seeds"),
            (lambda: fs.fit("AlignedModes", fs.solve(chain(net=fs.nets.DeepLinear()))), "DeepLinear(hidden=())"),
        ],
    )
    def test_records_that_do_not_tell_it_are_refused(self, call, words):
        with pytest.raises(fs.BadInput) as refusal:
            call()
        assert words in refusal.value.seen
        assert refusal.value.do


class DecayFitting(Fitting):
    """One rate, of a loss that falls as e^(−ηt)."""

    free, curves = ("rate",), ("loss",)

    def record(self, trajectory, *, seed, start):
        loss = seeded(trajectory, "loss")
        which = seed_number(seed, seeds_of(trajectory, "loss", len(loss)))
        times, first = checked_times(trajectory.times, start)
        return FitRecord(times[first:], loss[which, None, first:], np.float64(loss[which, first]), first)

    def guesses(self, record):
        return np.linspace(-5, 5, 40)[:, None]

    def predicted(self, x, times, known):
        return known * jnp.exp(-jnp.exp(x[0]) * times)[None]

    def units(self, record):
        return np.array([1 / record.duration])


class Decaying(fs.Theory):
    """A theory of the test: no more than what a fit asks of one."""

    fitting = DecayFitting()


class Unfitted(fs.Theory):
    """A theory that declares nothing."""


def decay(rate):
    times = np.linspace(0, 10, 50)
    return fs.Trajectory(times, {"loss": 3 * np.exp(-rate * times)}, {"loss": ("time",)}, "test")


@pytest.mark.parametrize("rate", [0.2, 1.5])
def test_a_theory_of_ones_own_is_fitted_as_it_declares(rate):
    fit = fs.fit(Decaying, decay(rate), start=5)
    np.testing.assert_allclose(fit.numbers["rate"], rate, rtol=1e-10)
    assert fit.theory == "Decaying"
    assert fit.applies
    assert fit.start == 5


def test_a_curve_that_does_not_change_is_named():
    fit = fs.fit(Decaying, decay(0.0))
    assert not fit.applies
    assert "does not change" in fit.applies.reasons[0]


@pytest.mark.parametrize("theory", [Unfitted, "UnbalancedModes", fs.theories.UnbalancedModes()])
def test_a_theory_that_declares_nothing_is_refused_with_those_that_do(theory):
    with pytest.raises(fs.UnknownName) as refusal:
        fs.fit(theory, decay(1.0))
    assert "theory with something to fit" in refusal.value.seen
    assert refusal.value.needed == "one of: AlignedModes, TwoPoint"
    assert refusal.value.do
