"""Fits of many records at once, of trajectories from anywhere, and of the third rate."""

from __future__ import annotations

import numpy as np
import pytest

import festina as fs
from festina._verbs.fit.two_points import fit_all, fit_two_point
from festina.theories._fitting.two_point_records import Entry
from festina.theories.two_point import final_distance, trajectory

TIMES = np.arange(0.0, 4000.0, 20.0)
ETA = np.array([[6e-4, 0.04], [2e-3, 0.01], [5e-3, 5e-3]])  # of three layers
X, Y = 1.0, 0.5
P0, W0 = 1e-4, 1e-4 - 0.009 * np.sqrt(Y)


def curves(eta, distance0=1.2e-3, ts=TIMES, X=X, Y=Y):
    return trajectory(
        ts,
        distance0=distance0,
        output0=P0,
        alignment0=W0,
        input_gap=X,
        target_gap=Y,
        tau_h=1 / eta[0],
        tau_y=1 / eta[1],
    )


def noisy(rng, size=0.01, ts=TIMES):
    """H, P and w with noise of `size` of their swing in every record but the first."""
    truth = np.stack(curves(ETA[0], ts=ts))
    noise = size * np.ptp(truth, axis=1, keepdims=True) * rng.normal(size=truth.shape)
    noise[:, 0] = 0
    H, P, w = truth + noise
    return np.abs(H), np.abs(P), w


def test_one_percent_of_noise_leaves_a_tenth_of_a_percent():
    rng, ts = np.random.default_rng(0), np.arange(0.0, 4000.0, 4.0)
    fits = fit_all(ts, [Entry(*noisy(rng, ts=ts), X, Y) for _ in range(16)])
    errors = np.log([fit.rates for fit in fits]) - np.log(ETA[0])
    assert 1e-4 < np.sqrt(np.mean(errors**2)) < 1e-3
    assert np.abs(np.mean(errors, axis=0)).max() < 5e-4
    assert all(fit.applies for fit in fits)


@pytest.mark.parametrize("free_gap", [False, True])
def test_many_at_once_are_the_fits_one_by_one(free_gap):
    rng = np.random.default_rng(1)
    entries = [Entry(*noisy(rng, 0.02), X, Y) for _ in range(10)]  # more than one group
    together = fit_all(TIMES, entries, free_gap=free_gap)
    assert len(together) == 10
    for fit, entry in zip(together, entries, strict=True):
        alone = fit_two_point(TIMES, *entry[:5], free_gap=free_gap)
        np.testing.assert_allclose(fit.rates, alone.rates, rtol=1e-7)
        np.testing.assert_allclose(fit.sse, alone.sse, rtol=1e-12)
        np.testing.assert_allclose(fit.log_covariance, alone.log_covariance, rtol=1e-5)
        assert fit.applies.reasons == alone.applies.reasons


def test_records_that_cannot_be_fitted_leave_the_others_alone():
    good = Entry(*curves(ETA[0]), X, Y)
    flat = Entry(*(np.full(200, curve[0]) for curve in good[:3]), X, Y)
    bad = [good._replace(H=np.zeros(200)), good._replace(w=np.full(200, 3.0)), good._replace(P=np.full(200, np.nan))]
    fits = fit_all(TIMES, [good, *bad, flat, good])
    for found in (fits[0], fits[-1]):
        np.testing.assert_allclose(found.rates, ETA[0], rtol=1e-10)
    for found, words in zip(fits[1:4], ("H[0] = 0", "w[0] = 3", "P has 200"), strict=True):
        assert isinstance(found, fs.BadInput)
        assert words in found.seen
    assert "do not change" in fits[4].applies.reasons[0]


def test_long_records_are_fitted_on_all_their_times():
    """A long record is first polished on a part of it; here what the part does not see decides."""
    ts = np.linspace(0, 4000, 3001)
    truth = np.stack(curves(ETA[0], ts=ts))
    seen = np.unique(np.linspace(0, 3000, 256).round().astype(int))
    other = np.stack(curves(1.3 * ETA[0], ts=ts))
    mixed = np.where(np.isin(np.arange(3001), seen), other, truth)
    fit = fit_two_point(ts, *mixed, X, Y)
    # One record in twelve pulls towards rates 1.3 times as high.
    assert np.all(np.abs(np.log(fit.rates / ETA[0])) < 0.06)
    step = 1e-5
    for change in (step, -step):
        for moved in ([1 + change, 1], [1, 1 + change]):
            predicted = np.stack(curves(np.array(fit.rates) * moved, ts=ts))
            assert np.sum((predicted - mixed) ** 2) >= fit.sse


class TestThirdRate:
    """The rate of the mean of the outputs."""

    eta, gap0 = 0.004, 0.9
    mean_gap = gap0 * np.exp(-2 * eta * TIMES)

    def test_it_comes_back(self):
        fit = fit_two_point(TIMES, *curves(ETA[0]), X, Y, mean_gap=self.mean_gap)
        np.testing.assert_allclose(fit.eta_mean, self.eta, rtol=1e-10)
        np.testing.assert_allclose([fit.tau_mean, fit.mean.r2], [1 / self.eta, 1.0], rtol=1e-10)
        assert "fitted   η_mean = 0.004 ±" in repr(fit)
        one = curves(ETA[0])
        expected = self.mean_gap / 2 + (2 * one.alignment + Y - one.output) / 8
        np.testing.assert_allclose(fit.loss, expected, rtol=1e-8, atol=1e-15)

    def test_noise_gives_the_error_that_is_stated(self):
        rng = np.random.default_rng(0)
        noise = 0.01 * self.gap0 * (TIMES > 0)
        gaps = [self.mean_gap + noise * rng.normal(size=200) for _ in range(40)]
        fits = fit_all(TIMES, [Entry(*curves(ETA[0]), X, Y, gap) for gap in gaps])
        etas = np.array([fit.eta_mean for fit in fits])
        np.testing.assert_allclose(np.std(etas), np.mean([fit.mean.error for fit in fits]), rtol=0.35)
        assert abs(np.mean(etas) / self.eta - 1) < 0.01

    def test_a_mean_that_was_right_or_not_recorded_has_no_rate(self):
        for gap in (None, np.zeros(200), np.full(200, 0.3)):
            fit = fit_two_point(TIMES, *curves(ETA[0]), X, Y, mean_gap=gap)
            assert fit.eta_mean is None
            assert fit.loss is None
            assert "η_mean" not in repr(fit)

    def test_the_loss_of_two_points_says_it_too(self):
        one = curves(ETA[0])
        loss = self.mean_gap / 2 + (2 * one.alignment + Y - one.output) / 8
        known = probed(loss=loss)
        np.testing.assert_allclose(fs.fit("TwoPoint", known).eta_mean, self.eta, rtol=1e-8)
        # The loss of more points is another one.
        assert fs.fit("TwoPoint", probed(loss=loss, samples=3)).eta_mean is None
        assert fs.fit("TwoPoint", probed(mean_gap=self.mean_gap[:, None], samples=3)).eta_mean is not None


def probed(seeds=None, samples=2, **more):
    """A trajectory of three layers and two pairs, the second with nine tenths of the start; seeds scale the rates."""
    values = {"distance": [], "output_distance": [], "output_alignment": []}
    for factor in 1.0 + 0.1 * np.arange(seeds or 1):
        layers = [[curves(factor * eta, scale * 1.2e-3) for scale in (1.0, 0.9)] for eta in ETA]
        values["distance"].append(np.stack([[c.distance for c in pairs] for pairs in layers]).transpose(2, 0, 1))
        values["output_distance"].append(np.stack([c.output for c in layers[0]], axis=1))
        values["output_alignment"].append(np.stack([c.alignment for c in layers[0]], axis=1))
    lead = ("time",) if seeds is None else ("seed", "time")
    values = {name: value[0] if seeds is None else np.stack(value) for name, value in values.items()}
    axes = dict.fromkeys(values, (*lead, "pair")) | {"distance": (*lead, "layer", "pair")}
    for name, value in more.items():
        values[name] = np.repeat(value, 2, axis=1) if value.ndim == 2 else value
        axes[name] = ("time", "pair")[: value.ndim]
    facts = {"input_gap": [X, X], "target_gap": [Y, Y], "samples": samples}
    coordinates = {"layer": ["a", "b", "c"], "pair": ["0-1", "0-2"]}
    coordinates |= {} if seeds is None else {"seed": np.arange(seeds) + 5}
    return fs.Trajectory(TIMES, values, axes, "test", facts, coordinates)


class TestTrajectories:
    """The names and axes of probes, simulate and solve."""

    def test_seeds_are_chosen(self):
        run = probed(seeds=2)
        for number, seed in enumerate((5, 6)):
            fit = fs.fit("TwoPoint", run, layer="a", seed=seed)
            np.testing.assert_allclose(fit.rates, (1 + 0.1 * number) * ETA[0], rtol=1e-8)
            assert repr(fit).startswith(f"TwoPointFit, layer a, pair 0-1, seed {seed}, fitted to")
        only = probed(seeds=1)
        fit = fs.fit("TwoPoint", only, layer=0, pair=(0, 2))
        np.testing.assert_allclose(fit.rates, ETA[0], rtol=1e-8)
        assert (fit.layer, fit.pair, fit.seed) == ("a", "0-2", 5)

    @pytest.mark.parametrize(
        ("seeds", "seed", "words"),
        [
            (2, None, r"a trajectory of 2 seeds, and no seed\n  needed: one of its seeds: 5, 6\n.*give seed=5, or fit"),
            (2, 3, r"seed = 3\n  needed: one of the recorded seeds: 5, 6"),
            (2, "5", "seed = '5'"),
            (None, 0, "seed = 0, and a trajectory without seeds"),
        ],
    )
    def test_seeds_that_are_not_there(self, seeds, seed, words):
        with pytest.raises(fs.BadInput, match=words):
            fs.fit("TwoPoint", probed(seeds=seeds), seed=seed)

    def test_another_alignment_is_not_taken_for_this_one(self):
        run = probed()
        values = {**run, "alignment": np.ones((200, 2))}
        axes = {**run.axes, "alignment": ("time", "side")}
        both = fs.Trajectory(TIMES, values, axes, "test", run.provenance, run.coordinates)
        np.testing.assert_allclose(fs.fit("TwoPoint", both, layer=0).rates, ETA[0], rtol=1e-8)
        del values["output_alignment"]
        lacking = fs.Trajectory(TIMES, values, axes, "test", run.provenance, run.coordinates)
        with pytest.raises(fs.BadInput, match=r"to distance, output_distance, alignment\n.*output_alignment of pairs"):
            fs.fit("TwoPoint", lacking)
        axes["output_distance"] = ("time", "side")
        with pytest.raises(fs.BadInput, match=r"needed: a trajectory with .*\n.*festina\.probe\.curves"):
            fs.fit("TwoPoint", fs.Trajectory(TIMES, {**run}, axes, "test", run.provenance, run.coordinates))

    def test_solved_and_trained_networks_have_the_rates_of_gradient_flow(self):
        half, target = np.array([[0.6, -0.3]]), np.array([0.8])
        task = fs.tasks.from_arrays(np.concatenate([-half, half]), np.stack([-target, target]))
        hidden = 0.05 * np.array([1.0, -2.0, 0.5])
        weights = [np.outer(hidden, half) / np.sum(half**2), 0.2 * hidden[None]]
        setup = fs.Setup(task, fs.nets.DeepLinear(hidden=3), fs.inits.Given(weights), until=40.0, points=200)
        solved = fs.solve(setup, "TwoPoint", observe=["loss", "distance", "output_distance", "output_alignment"])
        fit = fs.fit("TwoPoint", solved)
        np.testing.assert_allclose(fit.rates, [0.5, 0.5], rtol=1e-6)
        assert fit.eta_mean is None  # the mean of opposite points is right at all times
        names = ["distance", "output_distance", "output_alignment", "mean_gap"]
        trained = fs.simulate(setup, 2, names, progress=False)
        fit = fs.fit("TwoPoint", trained, seed=1)
        np.testing.assert_allclose(fit.rates, [0.5, 0.5], rtol=1e-4)
        assert fit.applies
        found = fs.probe.scan(trained)
        assert found.eta_h.dims == ("seed", "layer", "pair")
        np.testing.assert_allclose(found.eta_h, 0.5, rtol=1e-4)


class TestCurves:
    """Curves of one's own."""

    def given(self, **changed):
        """Two pairs in two layers that follow the theory."""
        both = [curves(ETA[0]), curves(ETA[0], 1e-3)]
        H, P, w = (np.stack(curve, axis=1) for curve in zip(*both, strict=True))
        known = dict(
            distance={"a": H, "b": 2 * H}, output_distance=P, output_alignment=w, input_gap=X, target_gap=[Y, Y]
        )
        return {"times": TIMES, **known, **changed}

    def single(self, **changed):
        H, P, w = curves(ETA[0])
        known = dict(distance=H, output_distance=P, output_alignment=w, input_gap=X, target_gap=Y)
        return fs.probe.curves(**{"times": TIMES, **known, **changed})

    def test_the_rates_come_back_and_files_keep_them(self, tmp_path):
        seen = self.single()
        fit = fs.fit("TwoPoint", seen)
        np.testing.assert_allclose(fit.rates, ETA[0], rtol=1e-8)
        assert (fit.layer, fit.pair, bool(fit.applies)) == ("hidden", "0-1", True)
        seen.save(tmp_path / "seen.nc")
        loaded = fs.Trajectory.load(tmp_path / "seen.nc")
        assert fs.fit("TwoPoint", loaded).rates == fit.rates
        assert fs.compare(loaded, seen).errors() == dict.fromkeys(seen, 0.0)
        for measured, curve in zip(fit.measured, curves(ETA[0]), strict=True):
            np.testing.assert_array_equal(measured, curve)

    def test_layers_and_pairs(self):
        seen = fs.probe.curves(**self.given(), pairs=[(0, 4), (4, 1)])
        assert seen.axes["distance"] == ("time", "layer", "pair")
        assert seen["distance"].shape == (200, 2, 2)
        assert seen.provenance["samples"] == 3
        found = fs.probe.scan(seen)
        # Distances twice as large learn at twice the rate, and are those of a decoder of half the rate.
        np.testing.assert_allclose(found.eta_h.sel(layer="a"), ETA[0, 0], rtol=1e-8)
        np.testing.assert_allclose(found.eta_h.sel(layer="b"), 2 * ETA[0, 0], rtol=1e-8)
        np.testing.assert_allclose(found.eta_y.sel(layer="b"), ETA[0, 1] / 2, rtol=1e-8)
        assert fs.fit("TwoPoint", seen, pair=(1, 4)).pair == "4-1"
        assert fs.probe.curves(**self.given()).coordinates["pair"].tolist() == ["0-1", "2-3"]

    def test_the_third_rate_from_the_mean_or_the_loss(self):
        one, gap = curves(ETA[0]), TestThirdRate.mean_gap
        loss = gap / 2 + (2 * one.alignment + Y - one.output) / 8
        for more in (dict(mean_gap=gap), dict(loss=loss)):
            np.testing.assert_allclose(fs.fit("TwoPoint", self.single(**more)).eta_mean, TestThirdRate.eta, rtol=1e-8)

    def test_noise_of_a_percent_is_accepted(self):
        H, P, w = noisy(np.random.default_rng(0))
        assert (np.abs(P - w) > np.sqrt(P * Y)).any()
        fit = fs.fit("TwoPoint", self.single(distance=H, output_distance=P, output_alignment=w))
        np.testing.assert_allclose(fit.rates, ETA[0], rtol=0.02)

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"times": TIMES[::-1]}, r"times = .*[\s\S]*increasing\n.*sort"),
            (
                {"times": TIMES[:5]},
                r"output_distance has shape \(200, 2\), for 5 times\n.*\(time, pair\)\n.*time first",
            ),
            ({"distance": np.ones(200)}, r"distance has shape \(200,\), for 200 times and 2 pairs\n"),
            ({"distance": {"a": np.ones((2, 200))}}, r"distance\['a'\] has shape \(2, 200\), for 200 times"),
            ({"distance": {}}, r"distance = \{\}\n.*at least one layer"),
            ({"distance": -np.ones((200, 2))}, r"distance of 'hidden' down to -1\n.*>= 0\n.*squared"),
            ({"output_distance": np.full((200, 2), np.nan)}, r"output_distance has 400 value\(s\) that are NaN"),
            ({"output_alignment": np.ones((200, 1))}, r"output_alignment has shape \(200, 1\)"),
            ({"target_gap": [Y]}, r"1 values of target_gap, and 2 pair"),
            ({"target_gap": -1.0}, r"target_gap down to -1"),
            ({"input_gap": 0.0}, r"input_gap = 0\n.*> 0\n.*identical inputs"),
            ({"pairs": [(0, 1)]}, r"1 pairs, and curves of 2"),
            ({"pairs": [(0, 1), (2, 2)]}, r"pair \(2, 2\)\n.*two different"),
            ({"pairs": [(0, 1), (-1, 2)]}, r"pair \(-1, 2\)\n.*from 0 on"),
            ({"mean_gap": -np.ones((200, 2))}, "mean_gap down to -1"),
            ({"loss": np.ones((200, 2))}, r"loss has shape \(200, 2\)\n.*1 dimension"),
            ({"loss": np.ones(5)}, r"loss has 5 values, for 200 times\n.*one for every time"),
        ],
    )
    def test_bad_input(self, changed, words):
        with pytest.raises(fs.BadInput, match=words):
            fs.probe.curves(**self.given(**changed))

    @pytest.mark.parametrize("wrong", ["w of ten outputs", "root of P"])
    def test_no_two_vectors_have_these_products(self, wrong):
        _, P, w = curves(ETA[0])
        changed = {"output_alignment": 10 * w} if wrong == "w of ten outputs" else {"output_distance": np.sqrt(P)}
        words = r"output_alignment = .* at record \d+: dy·Δy\* = .*\n.*as for any two vectors\n.*squared distances"
        with pytest.raises(fs.BadInput, match=words):
            self.single(**changed)


def test_the_figure_of_a_fit_says_what_was_fitted_and_whether_it_applies():
    fit = fs.fit("TwoPoint", probed(), layer="a")
    figure = fit.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    title = figure.get_suptitle()
    assert title.startswith("TwoPoint fitted to layer a, pair 0-1: η_h = 0.0006, η_y = 0.04\nnothing speaks against")
    for panel, measured, fitted in zip(figure.axes, fit.measured, fit.predicted, strict=True):
        thick, dashed = panel.lines
        np.testing.assert_array_equal(thick.get_ydata(), measured)
        np.testing.assert_array_equal(dashed.get_ydata(), fitted)
        assert thick.get_linewidth() > dashed.get_linewidth()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["measured", "fitted"]
    run = probed()
    begun = {name: values[:60] for name, values in run.items()}
    short = fs.fit("TwoPoint", fs.Trajectory(TIMES[:60], begun, run.axes, "test", run.provenance, run.coordinates))
    assert not short.applies
    assert "the theory does not apply: learning is not over" in short.plot().get_suptitle()


class TestScan:
    """All layers in one call."""

    def test_it_is_the_fits_of_every_layer_and_pair(self):
        run = probed(mean_gap=TestThirdRate.mean_gap[:, None])
        found = fs.probe.scan(run)
        assert found.eta_h.dims == ("layer", "pair")
        for i, layer in enumerate("abc"):
            for pair in ("0-1", "0-2"):
                one, fit = found.sel(layer=layer, pair=pair), fs.fit("TwoPoint", run, layer=layer, pair=pair)
                assert bool(one.applies) == bool(fit.applies)
                assert one.reasons.item() == "; ".join(fit.applies.reasons)
                if fit.condition < 1e3:
                    np.testing.assert_allclose([one.eta_h, one.eta_y], fit.rates, rtol=1e-6)
                    np.testing.assert_allclose([one.sse, *one.r2], [fit.sse, *fit.r2], rtol=1e-6, atol=1e-12)
                    errors = np.sqrt(np.diag(fit.covariance)[:2])
                    np.testing.assert_allclose([one.eta_h_error, one.eta_y_error], errors, rtol=1e-3, atol=1e-12)
                np.testing.assert_allclose(
                    one.measured_final_distance, run["distance"][-2, i, int(pair[-1]) - 1], rtol=1e-3
                )
        np.testing.assert_allclose(found.eta_mean, TestThirdRate.eta, rtol=1e-8)
        assert found.eta_mean.dims == ("pair",)
        # Only the first layer has the outputs of its own curves.
        assert found.best.values.tolist() == ["a", "a"]
        assert found.attrs["best"] == "a"
        first = found.sel(layer="a", pair="0-1")
        np.testing.assert_allclose([first.eta_h, first.eta_y], ETA[0], rtol=1e-8)
        np.testing.assert_allclose(first.final_distance, first.measured_final_distance, rtol=1e-3)

    def test_seeds_are_an_axis(self, tmp_path):
        found = fs.probe.scan(probed(seeds=2))
        assert dict(found.sizes) == {"seed": 2, "layer": 3, "pair": 2, "curve": 3}
        assert found.seed.values.tolist() == [5, 6]
        np.testing.assert_allclose(found.eta_h.sel(layer="a", pair="0-1"), ETA[0, 0] * np.array([1, 1.1]), rtol=1e-8)
        np.testing.assert_allclose(found.kappa, found.eta_h / found.eta_y)
        found.to_netcdf(tmp_path / "scan.nc", engine="h5netcdf")

    def test_a_layer_that_cannot_be_fitted_leaves_the_others_alone(self):
        run = probed()
        distance = run["distance"].copy()
        distance[:, 1] = 0
        values = {**run, "distance": distance}
        found = fs.probe.scan(fs.Trajectory(TIMES, values, run.axes, "test", run.provenance, run.coordinates))
        whole = fs.probe.scan(run)
        np.testing.assert_allclose(found.eta_h.sel(layer=["a", "c"]), whole.eta_h.sel(layer=["a", "c"]), rtol=1e-6)
        dead = found.sel(layer="b")
        assert np.isnan(dead.eta_h).all()
        assert not dead.applies.any()
        assert all("cannot be fitted: H[0] = 0" in reason for reason in dead.reasons.values)
        assert all(dead.advice.values)

    def test_rates_that_were_not_found_are_no_numbers(self):
        """H falls while outputs part, which no rates do: the search runs off to 1e-18, and is not identified."""
        run = probed()
        distance = run["distance"].copy()
        distance[:, 1] = 0.1 * np.exp(-TIMES / 500)[:, None]
        values = {**run, "distance": distance}
        seen = fs.Trajectory(TIMES, values, run.axes, "test", run.provenance, run.coordinates)
        fit, found = fs.fit("TwoPoint", seen, layer="b"), fs.probe.scan(seen).sel(layer="b")
        assert fit.rates.eta_h < 1e-15
        assert not fit.has_rates
        for name in ("eta_h", "eta_y", "kappa", "eta_h_error", "eta_y_error", "kappa_error", "final_distance"):
            assert np.isnan(found[name]).all(), name
        assert np.isfinite(found.sse).all()
        assert "not identified" in found.reasons.values[0]
        assert "record more often while the outputs change" in found.advice.values[0]

    def test_the_slope_is_one_where_the_theory_is_exact_and_balanced(self):
        """In a balanced chain of four, H ∝ p^(l/2): slopes ½, 1 and 3/2."""
        along = 0.7 / (1 + np.exp(-(TIMES - 1500) / 100))
        distance = np.stack([along ** (k / 2) for k in (1, 2, 3)], axis=1)[:, :, None]
        seen = fs.probe.curves(
            TIMES,
            distance={k: distance[:, k] for k in range(3)},
            output_distance=along**2,
            output_alignment=along**2 - 0.7 * along,
            input_gap=1.0,
            target_gap=0.49,
        )
        found = fs.probe.scan(seen)
        np.testing.assert_allclose(found.slope[:, 0], [0.5, 1, 1.5], rtol=0.01)
        assert found.attrs["best"] == "1"


class TestStructure:
    """Predictions for all pairs of a data set."""

    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 5)), rng.normal(size=(7, 2))
    hidden = {"first": rng.normal(size=(7, 4)), "second": 0.1 * rng.normal(size=(7, 2, 3))}
    outputs = rng.normal(size=(7, 2))

    def predicted(self, **changed):
        given = {"inputs": self.x, "targets": self.y, "hidden": self.hidden, "outputs": self.outputs, **changed}
        if not given.keys() & {"kappa", "tau_h", "tau_y", "rates"}:
            given["kappa"] = 0.3
        return fs.probe.structure(**given)

    def test_every_pair_is_the_closed_form(self):
        found = self.predicted(tau_h=10.0, tau_y=3.0, depth=3)
        for k, (name, h) in enumerate(self.hidden.items()):
            for i in range(7):
                for j in range(7):
                    one = found.sel(layer=name).isel(sample=i, sample_=j)
                    if i == j:
                        assert [one.distance, one.final_distance, one.verdict, one.depth_law] == [0, 0, 0, 0]
                        continue
                    dx, dy, df = (rows[j] - rows[i] for rows in (self.x, self.y, self.outputs))
                    H, gaps = np.sum((h[j] - h[i]) ** 2), dict(input_gap=dx @ dx, target_gap=dy @ dy)
                    start = dict(distance0=H, output0=df @ df, alignment0=df @ df - df @ dy)
                    final = final_distance(**start, **gaps, tau_h=10.0, tau_y=3.0)
                    A = H - 0.3 * (dx @ dx) * (df @ df) / H
                    np.testing.assert_allclose([one.distance, one.final_distance], [H, final], rtol=1e-10)
                    np.testing.assert_allclose(one.regime, abs(A) / np.sqrt(0.3 * (dx @ dx) * (dy @ dy)), rtol=1e-10)
                    np.testing.assert_allclose(
                        one.depth_law, (dx @ dx) ** (1 - (k + 1) / 3) * (dy @ dy) ** ((k + 1) / 3)
                    )
                    # Which way a pair goes is the same in every layer and for all rates: H∞ > H where Y > P.
                    assert one.verdict == np.sign(final - H) == np.sign(dy @ dy - df @ df)
        assert {-1, 1} <= set(found.verdict.values.ravel().tolist())

    @pytest.mark.parametrize("miss", [0.0, 1e-8, -1e-8, 1e-4, -1e-4])
    def test_what_differs_by_rounding_stays(self, miss):
        """Outputs that are learned already: H∞ − H is noise in some layer or other, up to large hidden distances."""
        hidden = {size: size * self.hidden["first"] for size in (1e-3, 1.0, 1e6)}
        found = self.predicted(hidden=hidden, outputs=(1 + miss) * self.y)
        apart = ~np.eye(7, dtype=bool)
        assert (found.verdict.values[:, apart] == (-np.sign(miss) if abs(miss) > 1e-6 else 0)).all()
        np.testing.assert_allclose(found.final_distance, found.distance, rtol=1e-3)

    def test_a_start_that_ends_at_the_saddle_merges(self):
        """Between passing through zero and turning before it: balanced, and opposite to the target."""
        x, h = np.array([[0.0], [1.0]]), np.array([[0.0], [0.5]])
        # r² = κX v² and v against the target: with κ = X = 1, r = 0.5 and v = −0.5.
        for target in (1.0, 0.25):
            found = fs.probe.structure(x, target * x, h, -0.25 * x, kappa=1.0)
            assert found.final_distance[0, 0, 1] == 0
            assert found.verdict[0, 0, 1] == -1

    def test_the_rates_of_a_scan_are_given_by_layer(self):
        import xarray

        kappa = xarray.DataArray([[0.3, 0.3, np.nan], [3.0, 2.0, 4.0]], dims=("layer", "pair"))
        scanned = xarray.Dataset({"kappa": kappa})
        with pytest.raises(fs.BadInput, match=r"(?s)kappa \(layer, pair\), as of a scan.*one for every layer") as error:
            self.predicted(rates=scanned)
        assert error.value.do == "give kappa=rates.kappa.median(['pair']).values instead of rates"
        found = self.predicted(kappa=scanned.kappa.median(["pair"]).values)
        np.testing.assert_array_equal(found.kappa, [0.3, 3.0])

    def test_only_the_ratio_of_the_rates_matters(self):
        fit = fit_two_point(TIMES, *curves(ETA[0]), X, Y)
        ways = [
            dict(kappa=fit.kappa),
            dict(rates=fit),
            dict(tau_h=7.0, tau_y=7.0 * fit.kappa),
            dict(kappa=[fit.kappa] * 2),
        ]
        found = [self.predicted(**way).final_distance for way in ways]
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-9)
        apart = self.predicted(kappa=[0.3, 3.0])
        np.testing.assert_array_equal(apart.final_distance[1], self.predicted(kappa=3.0).final_distance[1])

    def test_close_points_far_from_the_origin_keep_their_digits(self):
        far = 1e6 + self.x
        far[1] = far[0] + 2.0**-20  # exact in float64
        found = self.predicted(hidden=far)
        np.testing.assert_allclose(found.distance[0, 0, 1], 5 * 2.0**-40, rtol=1e-12)

    def test_what_has_no_prediction_is_named(self):
        x, y, h = self.x.copy(), self.y.copy(), self.hidden["first"].copy()
        f = self.outputs.copy()
        x[1], h[1], f[1] = x[0], h[0], f[0]  # the same input twice, with two targets
        x[3], y[3], h[3], f[3] = x[2], y[2], h[2], f[2]  # the same point twice
        h[5] = h[4]  # a layer that sees no difference
        found = self.predicted(inputs=x, targets=y, hidden=h, outputs=f)
        assert "1 pairs of identical inputs with different targets, the first 0 and 1" in found.attrs["note"]
        assert "1 pairs that a layer does not tell apart" in found.attrs["note"]
        final, verdict = found.final_distance[0].values, found.verdict[0].values
        assert np.argwhere(np.isnan(final)).tolist() == [[0, 1], [1, 0], [4, 5], [5, 4]]
        assert final[2, 3] == verdict[2, 3] == verdict[0, 1] == 0
        assert "note" not in self.predicted().attrs

    def test_equal_targets_merge_and_others_separate_from_small_starts(self):
        """XOR from a small balanced start: what the theory says of figure 6."""
        x, y = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), np.array([0.0, 1, 1, 0])[:, None]
        h = 1e-2 * x @ np.random.default_rng(0).normal(size=(2, 10))
        found = fs.probe.structure(x, y, h, 2e-2 * x @ np.array([[1.0], [1.5]]), kappa=1.0)
        same = y == y.T
        assert (found.verdict[0].values[same & ~np.eye(4, dtype=bool)] == -1).all()
        assert (found.verdict[0].values[~same] == 1).all()

    def test_numbered_layers_have_their_place_in_the_depth_law(self):
        some = self.predicted(hidden={2: self.hidden["first"]}, depth=4)
        gap = np.sum((self.x[1] - self.x[0]) ** 2) ** 0.25 * np.sum((self.y[1] - self.y[0]) ** 2) ** 0.75
        np.testing.assert_allclose(some.depth_law[0, 0, 1], gap)

    def test_memory_is_that_of_the_answer(self):
        import tracemalloc

        rng = np.random.default_rng(0)
        x, h = rng.normal(size=(300, 200)), {k: rng.normal(size=(300, 200)) for k in range(4)}
        y, f = rng.normal(size=(300, 3)), 0.1 * rng.normal(size=(300, 3))
        fs.probe.structure(x, y, h, f, kappa=1.0)
        tracemalloc.start()
        found = fs.probe.structure(x, y, h, f, kappa=1.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # All differences of one layer would be 300 × 300 × 200 numbers, 144 MB.
        assert peak < 2.5 * found.nbytes + 8 * 5 * 300 * 200

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            (dict(kappa=None, tau_h=1.0), r"tau_h\n  needed: tau_h and tau_y, or kappa, or rates"),
            (dict(tau_h=None), "neither tau_h and tau_y, nor kappa"),
            (dict(kappa=1.0, tau_h=1.0, tau_y=1.0), "tau_h and tau_y and kappa"),
            (dict(kappa=0.0), "kappa = 0"),
            (dict(kappa=[1.0, 2.0, 3.0]), r"3 values of kappa, and 2 layer\(s\)"),
            (dict(rates=3.0), "rates is float"),
            (dict(targets=y[:5]), "5 rows of targets, and 7 inputs"),
            (dict(hidden={"a": x[:5]}), r"5 rows of hidden\['a'\]"),
            (dict(hidden={}), "hidden = {}"),
            (dict(hidden=3.0), "hidden = 3"),
            (dict(outputs=outputs[:, :1]), r"targets of shape \(7, 2\), and outputs of shape \(7, 1\)"),
            (dict(depth=4), r"depth = 4 and the hidden layer\(s\) first, second"),
            (dict(hidden={3: x}, depth=4), r"numbers from 0 to 2"),
            (dict(depth=1), "depth = 1"),
            (dict(inputs=np.full((7, 5), np.nan)), "inputs has 35 value"),
        ],
    )
    def test_bad_input(self, changed, words):
        with pytest.raises(fs.BadInput, match=words) as error:
            self.predicted(**changed)
        assert error.value.do

    def test_one_point_is_no_pair(self):
        with pytest.raises(fs.BadInput, match="1 input\n"):
            fs.probe.structure(np.ones((1, 2)), np.ones(1), np.ones((1, 3)), np.ones(1), kappa=1.0)
