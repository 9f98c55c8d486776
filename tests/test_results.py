"""Trajectory and Comparison: labels, files, one grid."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import festina as fs


@pytest.fixture(scope="module")
def setup():
    return fs.Setup(
        fs.tasks.hierarchy(2),
        fs.nets.DeepLinear(4),
        fs.inits.Aligned(0.05),
        fs.rules.GradientDescent(0.05),
        until=8.0,
        points=9,
    )


@pytest.fixture(scope="module")
def theory(setup):
    return fs.solve(setup)


@pytest.fixture(scope="module")
def trained(setup):
    return fs.simulate(setup, seeds=2, observe=["loss", "modes", "map"])


@pytest.mark.parametrize("which", ["theory", "trained"])
def test_files_keep_everything(which, request, tmp_path):
    trajectory = request.getfixturevalue(which)
    trajectory.save(tmp_path / "run.nc")
    again = fs.Trajectory.load(tmp_path / "run.nc")
    assert set(again) == set(trajectory)
    assert again.source == trajectory.source
    assert again.provenance == trajectory.provenance
    np.testing.assert_array_equal(again.times, trajectory.times)
    for name in trajectory:
        np.testing.assert_array_equal(again[name], trajectory[name])
        assert again.axes[name] == trajectory.axes[name]
    assert fs.compare(again, again).errors() == dict.fromkeys(again, 0.0)
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_xarray_has_names_on_axes(theory, setup):
    data = theory.to_xarray()
    assert data["map"].dims == ("time", "feature", "input")
    assert list(data["feature"].values) == list(setup.task.features)
    assert float(data["map"].sel(feature="grow", input="canary").isel(time=-1)) > 0.9


def test_the_setup_travels_with_the_trajectory(theory, setup):
    import json

    assert fs.Setup.from_json(json.dumps(theory.provenance["setup"])) == setup


def test_the_weights_at_the_end(theory, trained, setup, tmp_path):
    predicted, learned = theory.weights, trained.weights
    assert [w.shape for w in predicted] == [(4, 4), (7, 4)]
    assert [w.shape for w in learned] == [(2, 4, 4), (2, 7, 4)]
    np.testing.assert_allclose(setup.net.map(predicted), theory["map"][-1], atol=1e-12)
    for seed in range(2):
        np.testing.assert_allclose(setup.net.map([w[seed] for w in learned]), trained["map"][seed, -1], atol=1e-12)
    trained.save(tmp_path / "run.nc")
    again = fs.Trajectory.load(tmp_path / "run.nc")
    assert again.weights is None
    assert again.setup == setup


def test_trained_trajectories_are_copied_and_pickled(trained):
    for again in (copy.copy(trained), copy.deepcopy(trained), pickle.loads(pickle.dumps(trained))):
        assert again.setup == trained.setup
        np.testing.assert_array_equal(again["loss"], trained["loss"])
        np.testing.assert_array_equal(again.weights[0], trained.weights[0])


def test_observables_of_a_theory_wait_until_asked(setup):
    fresh = fs.solve(setup)
    assert all(callable(value) for value in fresh._values.values())
    fresh["loss"]
    assert not callable(fresh._values["loss"])
    assert not callable(fs.solve(setup, observe=["map"])._values["map"])


def test_unknown_observables_suggest_the_nearest(theory):
    with pytest.raises(fs.UnknownName, match="did you mean 'loss'"):
        theory["los"]
    with pytest.raises(KeyError):
        theory["los"]


@pytest.mark.parametrize("content", [b"", b"not a file of numbers", b"\x89HDF\r\n\x1a\n broken"])
def test_unreadable_files_are_named(content, tmp_path):
    path = tmp_path / "x.nc"
    path.write_bytes(content)
    with pytest.raises(fs.BadInput, match="cannot be read as netCDF"):
        fs.Trajectory.load(path)


def test_foreign_and_missing_files_are_named(tmp_path):
    import xarray

    with pytest.raises(fs.BadInput, match="no file"):
        fs.Trajectory.load(tmp_path / "nothing.nc")
    xarray.Dataset({"loss": ("time", [1.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(fs.BadInput, match="not a festina trajectory"):
        fs.Trajectory.load(tmp_path / "other.nc")


def test_a_folder_that_is_missing_is_named(theory, tmp_path):
    with pytest.raises(fs.BadInput, match="no folder"):
        theory.save(tmp_path / "missing" / "run.nc")


def test_comparison_is_seed_by_seed(theory, trained):
    comparison = fs.compare(theory, trained)
    assert comparison.names == ("loss", "map", "modes") or set(comparison.names) == {"loss", "map", "modes"}
    np.testing.assert_array_equal(comparison["loss"], trained["loss"] - theory["loss"][None])
    assert comparison.error("loss") == pytest.approx(np.abs(comparison["loss"]).max() / theory["loss"].max())
    assert "largest relative difference" in repr(comparison)


def test_comparison_refuses_another_grid_by_value(theory, setup):
    other = setup.replace(times=setup.times + np.r_[np.zeros(8), 0.05])
    with pytest.raises(fs.BadInput, match=r"first at index 8: 8 and 8\.05"):
        fs.compare(theory, fs.simulate(other))
    with pytest.raises(fs.BadInput, match="the times differ"):
        fs.compare(theory, fs.simulate(setup.replace(times=setup.times[:4])))


def test_comparison_refuses_another_task(theory, setup):
    other = setup.replace(task=fs.tasks.hierarchy(1))
    with pytest.raises(fs.BadInput, match="'mode': 4"):
        fs.compare(theory, fs.simulate(other, observe="modes"))


def test_comparison_needs_something_in_common(theory, setup):
    with pytest.raises(fs.BadInput, match="training has gradient_norm"):
        fs.compare(theory, fs.simulate(setup, observe="gradient_norm"))
    with pytest.raises(fs.BadInput, match="trained is int"):
        fs.compare(theory, 3)


def test_the_plot_draws_training_below_theory(theory, trained):
    figure = fs.compare(theory, trained).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    panels = figure.axes
    assert [p.get_ylabel() for p in panels] == ["loss", "modes"]
    assert panels[0].get_xlabel() == "time (τ)"
    thick, dashed = panels[0].lines[0], panels[0].lines[-1]
    assert thick.get_linewidth() > dashed.get_linewidth()
    assert dashed.get_zorder() > thick.get_zorder()
    assert dashed.get_linestyle() != "-"
