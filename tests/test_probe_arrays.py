"""probe.arrays and probe.jax: the same numbers from recorded arrays and from a JAX loop; a festina without torch."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina import probe
from festina._figures.comparison import clock_of
from festina.observables import FROM_ACTIVITY
from festina.probe._backend import Backend

PROBE = Path(probe.__file__).parent
X = np.sin(np.arange(12.0)).reshape(4, 3)
Y = np.cos(np.arange(8.0)).reshape(4, 2)


def activities(params, x):
    """A network of two hidden layers as a function that shows them."""
    one = jnp.tanh(x @ params["w"])
    two = jnp.tanh(one @ params["v"])
    return two @ params["out"], {"one": one, "two": two}


def start():
    rng = np.random.default_rng(0)
    return {
        "w": jnp.asarray(rng.standard_normal((3, 5)) / 2),
        "v": jnp.asarray(rng.standard_normal((5, 4)) / 2),
        "out": jnp.asarray(rng.standard_normal((4, 2)) / 2),
    }


@jax.jit
def update(params):
    def loss(p):
        return jnp.mean((activities(p, X)[0] - Y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def trained(steps=5, **options):
    """A probe of a JAX loop, and the parameters before every step and at the end."""
    params, history = start(), []
    with probe.jax(activities, inputs=X, targets=Y, **options) as seen:
        for _ in range(steps):
            seen.step(params)
            history.append(params)
            params = update(params)
        seen.step(params)
    return seen, [*history, params]


def test_a_jax_loop_gives_what_arrays_give_and_what_a_hand_computation_gives():
    names = list(FROM_ACTIVITY)
    seen, history = trained(observe=names, pairs=[(0, 3), (2, 1)])
    looks = [activities(params, X) for params in history]
    hidden = {layer: np.stack([np.asarray(look[1][layer]) for look in looks]) for layer in ("one", "two")}
    outputs = np.stack([np.asarray(look[0]) for look in looks])
    again = probe.arrays(range(6), hidden, outputs, inputs=X, targets=Y, pairs=[(0, 3), (2, 1)], observe=names)
    assert list(again) == list(seen.trajectory)
    for name in again:
        np.testing.assert_array_equal(again[name], seen.trajectory[name], err_msg=name)
        assert again.axes[name] == seen.trajectory.axes[name]
    h, f = hidden["two"].astype(float), outputs.astype(float)
    dh, dy = h[:, 3] - h[:, 0], f[:, 3] - f[:, 0]
    np.testing.assert_allclose(again["distance"][:, 1, 0], np.sum(dh**2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(again["output_distance"][:, 0], np.sum(dy**2, axis=1), rtol=1e-12)
    np.testing.assert_allclose(again["output_alignment"][:, 0], np.sum(dy * (dy - Y[3] + Y[0]), axis=1), rtol=1e-12)
    np.testing.assert_allclose(again["loss"], np.mean(np.sum((f - Y) ** 2, axis=2), axis=1) / 2, rtol=1e-12)
    np.testing.assert_array_equal(seen.representations["two"], h)
    assert np.ptp(again["loss"]) > 0.01
    assert again.provenance["input_gap"] == seen.trajectory.provenance["input_gap"]
    assert again.source == "probe.arrays"
    assert seen.trajectory.source == "probe.jax"


def by_arrays(weights, recorded):
    return recorded


def by_curves(weights, recorded):
    """From curves of distances alone."""
    layers = dict(zip(recorded.coordinates["layer"], np.moveaxis(recorded["distance"], 1, 0), strict=True))
    names = ("output_distance", "output_alignment", "mean_gap", "loss")
    gaps = {name: recorded.provenance[name] for name in ("input_gap", "target_gap")}
    drawn = {name: recorded[name] for name in names}
    return probe.curves(recorded.times, distance=layers, **drawn, **gaps, pairs=PAIRS)


def by_jax(weights, recorded):
    with probe.jax(activities, inputs=X, targets=Y, pairs=PAIRS, observe=list(FROM_ACTIVITY)) as seen:
        for params in weights:
            seen.step(params)
    return seen.trajectory


def by_torch(weights, recorded):
    torch = pytest.importorskip("torch")
    sizes, parts = [(3, 5), (5, 4), (4, 2)], []
    for d_in, d_out in sizes:
        parts += [torch.nn.Linear(d_in, d_out, bias=False, dtype=torch.float64), torch.nn.Tanh()]
    model = torch.nn.Sequential(*parts[:-1])
    given = dict(inputs=torch.tensor(X), targets=torch.tensor(Y), pairs=PAIRS, observe=list(FROM_ACTIVITY))
    with probe.torch(model, {"one": "1", "two": "3"}, **given) as seen:
        for k, params in enumerate(weights):
            with torch.no_grad():
                for layer, name in zip(parts[::2], ("w", "v", "out"), strict=True):
                    layer.weight.copy_(torch.tensor(np.asarray(params[name]).T))
            if k < len(weights) - 1:  # the last state is recorded at the end of the block
                seen.step()
    return seen.trajectory


PAIRS = [(0, 3), (2, 1)]
# How each backend looks at one network; a new backend brings its own way.
BACKENDS = {"probe.arrays": by_arrays, "probe.curves": by_curves, "probe.jax": by_jax, "probe.torch": by_torch}


def test_every_backend_is_among_them():
    modules = [importlib.import_module(f"festina.probe.{path.stem}") for path in PROBE.glob("_*.py")]
    named = [value for module in modules for value in vars(module).values()]
    found = {value.name for value in named if isinstance(value, Backend)}
    found |= {value.backend.name for value in named if isinstance(value, type) and hasattr(value, "backend")}
    assert found == set(BACKENDS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_measures_what_arrays_give(backend, double):
    rng, weights = np.random.default_rng(0), []
    for _ in range(5):
        weights.append({name: rng.normal(size=np.shape(w)) for name, w in start().items()})
    looks = [activities(params, X) for params in weights]
    hidden = {layer: np.stack([np.asarray(look[1][layer]) for look in looks]) for layer in ("one", "two")}
    outputs, names = np.stack([np.asarray(look[0]) for look in looks]), list(FROM_ACTIVITY)
    recorded = probe.arrays(range(5), hidden, outputs, inputs=X, targets=Y, pairs=PAIRS, observe=names)
    seen = BACKENDS[backend](weights, recorded)
    assert seen.source == backend
    assert set(seen) <= set(recorded)
    assert set(seen) >= {"distance", "output_distance", "output_alignment", "mean_gap", "loss"}
    if backend != "probe.curves":  # it is given no activity
        assert set(seen) == set(recorded)
    np.testing.assert_array_equal(seen.times, recorded.times)
    for name in seen:
        assert seen.axes[name] == recorded.axes[name], name
        np.testing.assert_allclose(seen[name], recorded[name], rtol=1e-10, atol=1e-12, err_msg=name)
        for axis in seen.axes[name]:
            assert list(seen.coordinates.get(axis, ())) == list(recorded.coordinates.get(axis, ())), axis


def test_layers_and_steps_of_a_jax_loop():
    def at(layers):
        return trained(1, layers=layers)[0].trajectory.coordinates["layer"].tolist()

    assert [at(None), at("middle"), at("t*")] == [["one", "two"], ["two"], ["two"]]
    assert [at(["two", "one"]), at({"b": "two"})] == [["two", "one"], ["b"]]
    assert trained(5, at=[0, 5])[0].trajectory.times.tolist() == [0, 5]
    with pytest.raises(fs.UnknownName, match=r"unknown layer 'tow' of the network\n.*one, two\n.*'two'"):
        at("tow")
    with pytest.raises(fs.UnknownName, match=r"no layer fits the pattern 'z\*'"):
        at("z*")
    with pytest.raises(fs.BadInput, match=r"layers = 3\n.*a name, a pattern, a list"):
        at(3)


def test_wrong_jax_functions_are_refused_with_words():
    with pytest.raises(fs.BadInput, match=r"function is int\n.*\(params, inputs\) -> \(outputs, \{layer: activity\}\)"):
        probe.jax(3, inputs=X)  # pyright: ignore[reportArgumentType]
    words = r"the function gives ndarray\n.*\(outputs, \{layer: activity\}\)"
    with probe.jax(lambda params, x: x, inputs=X) as seen, pytest.raises(fs.BadInput, match=words):
        seen.step(None)
    with probe.jax(activities, inputs=X) as seen:
        with pytest.raises(fs.BadInput, match=r"inside a function that JAX is tracing\n.*\n.*outside jit"):
            jax.jit(seen.step)(start())
        with pytest.raises(fs.BadInput, match=r"nothing recorded by this open probe: 0 steps.*\n.*\n.*step\(params\)"):
            _ = seen.trajectory
    words = r"layer 'h' has shape \(3, 4\), for 4 inputs\n.*first axis"
    with probe.jax(lambda params, x: (x, {"h": x.T}), inputs=X) as seen, pytest.raises(fs.BadInput, match=words):
        seen.step(None)
    sizes = iter([3, 2])
    with probe.jax(lambda params, x: (x, {"h": x[:, : next(sizes)]}), inputs=X) as seen:
        seen.step(None)
        with pytest.raises(fs.BadInput, match=r"layer 'h' has 2 units at time 1, and had 3\n"):
            seen.step(None)
    assert seen.trajectory.times.tolist() == [0]


HIDDEN = {"h": np.random.default_rng(1).random((3, 4, 5))}


def test_arrays_without_outputs_or_inputs(tmp_path):
    found = probe.arrays([0, 0.5, 2], HIDDEN)
    assert list(found) == ["distance", "cosine"]
    assert found["distance"].shape == (3, 1, 6)
    assert found.provenance["input_gap"] is None
    found.save(tmp_path / "found.nc")
    loaded = fs.Trajectory.load(tmp_path / "found.nc")
    np.testing.assert_array_equal(loaded["cosine"], found["cosine"])
    assert loaded.coordinates["pair"].tolist() == ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]
    assert loaded.times.tolist() == [0, 0.5, 2]
    flattened = probe.arrays([0, 0.5, 2], {"h": HIDDEN["h"].reshape(3, 4, 5, 1)})
    np.testing.assert_array_equal(flattened["distance"], found["distance"])


def test_every_record_says_what_its_times_count():
    recorded = probe.arrays([0, 0.5, 2], HIDDEN)
    curve = np.array([0.1, 0.2, 0.3])
    gaps = dict(input_gap=1.0, target_gap=1.0)
    drawn = probe.curves(
        [0, 0.5, 2], distance=curve, output_distance=curve, output_alignment=curve - np.sqrt(curve), **gaps
    )
    steps, times = (trained(1, **options)[0].trajectory for options in ({}, {"lr": 0.1}))
    clocks = {one.source: clock_of(one) for one in (recorded, drawn, steps)}
    assert clocks == {"probe.arrays": "recorded time", "probe.curves": "recorded time", "probe.jax": "steps"}
    assert clock_of(times) == "time (τ)"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": [0, 2, 1]}, r"times = .*\n.*increasing\n.*sort"),
        ({"times": [0, 1]}, r"hidden\['h'\] has shape \(3, 4, 5\), for 2 times\n.*\(time, sample, unit\)"),
        ({"hidden": HIDDEN["h"]}, r"hidden is ndarray\n.*\{layer: \(time, sample, unit\)\}"),
        ({"hidden": {}}, r"hidden is dict\n"),
        ({"hidden": {**HIDDEN, "k": np.ones((3, 2, 5))}}, r"2 samples in 'k', and 4 in 'h'\n.*the same samples"),
        ({"outputs": np.ones((3, 5, 1))}, r"5 samples in 'outputs', and 4 in 'h'"),
        ({"inputs": X[:3]}, r"3 inputs, and activities of 4 samples\n"),
        ({"observe": "output_distance"}, r"observe 'output_distance' without outputs\n.*\n.*give outputs="),
        ({"observe": "alignment"}, r"unknown observable of a probe 'alignment'\n.*\n.*mean 'output_alignment'"),
        ({"observe": "output"}, r"unknown observable of a probe 'output'\n.*\n.*'output_distance'"),
        ({"observe": "loss", "outputs": np.ones((3, 4, 2))}, r"observe 'loss' without targets"),
        (
            {"targets": Y[:, :1], "outputs": np.ones((3, 4, 2))},
            r"targets of shape \(4, 1\), and outputs of shape \(4, 2",
        ),
        ({"inputs": X * 0}, r"inputs 0 and 1 of pair \(0, 1\) are the same"),
    ],
)
def test_wrong_arrays_are_refused_with_words(change, words):
    with pytest.raises(fs.BadInput, match=words):
        probe.arrays(**{"times": [0, 1, 2], "hidden": HIDDEN, **change})


def test_the_backend_to_copy_reads_what_arrays_are_given(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "probe.md").read_text(encoding="utf-8")
    code = re.search(r"^```text\n(# src/festina/probe/_saved\.py\n.*?)^```$", page, flags=re.M | re.S)[1]
    namespace = {"__name__": "festina.probe._saved", "__package__": "festina.probe"}
    exec(compile(code, "docs/how-to/probe.md", "exec"), namespace)
    with pytest.raises(fs.BadInput, match=r"no file in .*\n.*0.npz"):
        namespace["saved"](tmp_path)
    for step, activity in zip((0, 20, 100), HIDDEN["h"], strict=True):
        np.savez(tmp_path / f"{step}.npz", h=activity)
    saved = namespace["saved"](tmp_path)
    recorded = probe.arrays([0, 20, 100], HIDDEN)
    assert list(saved) == list(recorded)
    for name in recorded:
        np.testing.assert_array_equal(saved[name], recorded[name])
    assert (saved.source, clock_of(saved)) == ("probe.saved", "steps")


def test_without_torch_all_else_works_and_the_words_say_how_to_get_it():
    code = """
import sys
sys.modules["torch"] = None  # as if it were not installed
from festina import BadInput, probe
assert probe.arrays([0], {"h": [[[0.0], [2.0]]]})["distance"].item() == 4
for ask in (lambda: probe.torch(None, inputs=[[0.0], [1.0]]), lambda: probe.layers(None)):
    try:
        ask()
    except BadInput as error:
        assert error.do == 'pip install "festina[torch]"', error.do
        assert error.seen.startswith("torch cannot be imported")
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch_is_loaded_only_when_it_is_asked_for():
    arrays = "probe.arrays([0], {'h': [[[0.0], [2.0]]]})"
    code = f"import sys; from festina import probe; {arrays}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_weighted_distances_are_sums_over_near_points():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(5, 2))
    H = np.sum((places[:, None] - places) ** 2, axis=-1)
    W = [[np.exp(-H[i, j]) for j in range(5)] for i in range(5)]
    summed = [
        [sum(W[i][k] * W[j][m] * H[k, m] for k in range(5) for m in range(5)) for j in range(5)] for i in range(5)
    ]
    np.testing.assert_allclose(probe.weighted(H), summed, rtol=1e-13)
    mean = probe.weighted(H, scale=None, normalised=True)
    # The unit of the distances goes through, and points far from all others keep the distance of their own pair.
    np.testing.assert_allclose(probe.weighted(7 * H, scale=None, normalised=True), 7 * mean, rtol=1e-13)
    np.testing.assert_allclose(probe.weighted(H, scale=1e-9, normalised=True), H, rtol=1e-13)
    assert (np.diagonal(mean) == 0).all()
    assert (np.diagonal(probe.weighted(H)) > 0).all()


def test_weighted_refuses_what_are_no_distances():
    with pytest.raises(fs.BadInput, match=r"distances of shape \(2, 3\)") as refusal:
        probe.weighted(np.ones((2, 3)))
    assert "one row and one column" in str(refusal.value)
    assert "square" in str(refusal.value)
    for wrong in ([[0, -1], [-1, 0]], [[0, 1], [2, 0]]):
        with pytest.raises(fs.BadInput, match="below 0, or not the same both ways") as refusal:
            probe.weighted(wrong)
        assert "symmetric" in str(refusal.value)
        assert "probe.structure" in str(refusal.value)
    with pytest.raises(fs.BadInput, match="scale = 0"):
        probe.weighted([[0, 1], [1, 0]], scale=0)
