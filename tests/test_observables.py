"""What is recorded is what its formula says, computed the long way."""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import festina as fs
from festina._formulas import tangent_kernel
from festina.observables import _TABLES, FROM_ACTIVITY, OBSERVABLES

ROOT = Path(__file__).parents[1]
TASK = fs.tasks.from_arrays(
    np.random.default_rng(0).normal(size=(9, 4)), np.random.default_rng(1).normal(size=(9, 3)), items=list("abcdefghi")
)


def setup(hidden=(5,), init=None, **grid):
    init = fs.inits.SmallRandom(0.6) if init is None else init
    return fs.Setup(TASK, fs.nets.DeepLinear(hidden), init, **(grid or {"times": [0.0, 0.7]}))


def end_weights(one):
    """The weights at the last time, by integration with the same solver."""
    return jax.tree.map(lambda leaf: leaf[0], fs.simulate(one, observe="loss").weights)


def formed_kernel(net, weights, x):
    slopes = jax.jacrev(lambda w: net.apply(w, jnp.asarray(x)))([jnp.asarray(w) for w in weights])
    flat = np.concatenate([np.asarray(s).reshape(x.shape[0] * weights[-1].shape[0], -1) for s in slopes], axis=1)
    return flat @ flat.T


@pytest.mark.parametrize("hidden", [(), (5,), (5, 2, 6)])
def test_the_kernel_distance_is_that_of_the_kernel_formed_by_autodiff(hidden, double):
    one = setup(hidden)
    seen = fs.simulate(one, observe="kernel_distance")["kernel_distance"][0]
    kernels = [formed_kernel(one.net, w, TASK.x) for w in (one.weights(0), end_weights(one))]
    cosine = np.sum(kernels[0] * kernels[1]) / np.prod([np.linalg.norm(k) for k in kernels])
    assert seen[0] < 1e-15
    np.testing.assert_allclose(seen[1], 1 - cosine, atol=1e-13)


def test_the_overlap_of_kernels_is_that_of_the_formed_ones(double):
    rng = np.random.default_rng(2)
    one, other = ([rng.normal(size=s) for s in ((5, 4), (3, 5))] for _ in range(2))
    net = fs.nets.DeepLinear(5)
    by_traces = tangent_kernel.overlap(
        tangent_kernel.tangent(one), tangent_kernel.tangent(other), jnp.asarray(TASK.cov_x)
    )
    formed = np.sum(formed_kernel(net, one, TASK.x) * formed_kernel(net, other, TASK.x)) / len(TASK.x) ** 2
    np.testing.assert_allclose(by_traces, formed, rtol=1e-12)
    blocks = tangent_kernel.two_layers(one[0].T @ one[0], one[1] @ one[1].T)
    np.testing.assert_allclose(
        tangent_kernel.overlap(blocks, tangent_kernel.tangent(other), jnp.asarray(TASK.cov_x)), by_traces
    )


def test_observables_of_weights_are_their_formulas():
    one = setup()
    representations = ["input_representation", "output_representation", "similarity", "alignment"]
    names = [*representations, "parameter_distance", "balance", "balance_residual", "balance_drift"]
    seen = {name: values[0, -1] for name, values in fs.simulate(one, observe=names).items()}
    (first, last), (begun_first, begun_last) = end_weights(one), one.weights(0)
    close = dict(atol=1e-9)
    np.testing.assert_allclose(seen["input_representation"], first.T @ first, **close)
    np.testing.assert_allclose(seen["output_representation"], last @ last.T, **close)
    hidden = TASK.x @ first.T
    np.testing.assert_allclose(seen["similarity"], hidden @ hidden.T, **close)
    moved = np.sqrt(np.sum((first - begun_first) ** 2) + np.sum((last - begun_last) ** 2))
    np.testing.assert_allclose(seen["parameter_distance"], moved, **close)
    difference = last.T @ last - first @ first.T
    lam, residual = fs.balance([first, last])
    np.testing.assert_allclose([seen["balance"][0], seen["balance_residual"][0]], [lam, residual], **close)
    np.testing.assert_allclose(lam, np.trace(difference) / 5, **close)
    assert seen["balance_drift"][0] < 1e-8  # flow conserves it
    left, values, right = np.linalg.svd(TASK.cov_yx, full_matrices=False)
    for k, (gram, vectors) in enumerate([(first.T @ first, right.T), (last @ last.T, left)]):
        own = [vectors * values**power @ vectors.T for power in (1, 2)]
        best = max(np.sum(gram * task) / np.linalg.norm(gram) / np.linalg.norm(task) for task in own)
        np.testing.assert_allclose(seen["alignment"][k], best, **close)


@pytest.mark.parametrize(
    "net", [fs.nets.DeepLinear(5), fs.nets.MLP(5, "relu"), fs.nets.MLP((4, 3)), fs.nets.MLP(5, bias=True)], ids=repr
)
def test_the_size_of_a_unit_is_that_of_its_weights_in_and_out(net):
    one = fs.Setup(TASK, net, fs.inits.SmallRandom(0.6), fs.rules.GradientDescent(0.1), times=[0.0, 0.7])
    seen = fs.simulate(one, observe="unit_size")["unit_size"][0]
    for sizes, weights in zip(seen, (one.weights(0), end_weights(one)), strict=True):
        layers = [layer if isinstance(layer, tuple) else (layer, np.zeros(len(layer))) for layer in weights]
        by_hand = [
            np.sqrt((np.sum(w[k] ** 2) + b[k] ** 2) * np.sum(after[:, k] ** 2))
            for (w, b), (after, _) in itertools.pairwise(layers)
            for k in range(len(w))
        ]
        np.testing.assert_allclose(sizes, by_hand, rtol=1e-6)


@pytest.mark.parametrize(
    ("net", "reason"), [(fs.nets.MLP(()), "two or more"), (fs.nets.Gated.pathways([{"width": 4}]), "gated")]
)
def test_units_without_a_size_are_refused(net, reason):
    with pytest.raises(fs.BadInput) as refusal:
        fs.simulate(fs.Setup(TASK, net, fs.inits.SmallRandom(0.5), times=[0.1]), observe="unit_size")
    assert reason in refusal.value.seen


def test_balance_drifts_under_descent_at_first_order():
    drifts = []
    for lr in (0.02, 0.01, 0.005):
        one = setup(times=[0.8]).replace(rule=fs.rules.GradientDescent(lr))
        drifts.append(fs.simulate(one, observe="balance_drift")["balance_drift"].item())
    np.testing.assert_allclose(np.log2(np.array(drifts[:-1]) / drifts[1:]), 1, atol=0.1)


def test_levels_are_traces_with_projectors():
    task = fs.tasks.tree((2, 2), 0.1)
    one = fs.Setup(task, fs.nets.DeepLinear(6), fs.inits.SmallRandom(0.4), times=[0.0, 3.0])
    seen = fs.simulate(one, observe=["levels", "map"])
    modes = task.modes()
    for level, members in enumerate(([0], [1], [2, 3])):
        # Σ_k u_kᵀ W v_k over a level does not depend on the basis chosen in it.
        partial = modes.left[:, members] @ modes.right[:, members].T
        np.testing.assert_allclose(seen["levels"][0, :, level], np.sum(seen["map"][0] * partial, (1, 2)) / len(members))


def test_saddle_distances_are_distances_of_maps():
    task = fs.tasks.from_moments(np.diag([3.0, 2.0, 1.0]), np.eye(3), np.eye(3) * 14 / 3)
    one = fs.Setup(task, fs.nets.DeepLinear(3), fs.inits.Aligned(1e-3), times=[0.0, 1.0, 2.0])
    seen = fs.simulate(one, observe=["saddle_distance", "map"])
    maps = fs.saddles(task, 3).maps
    wanted = np.linalg.norm(seen["map"][0][:, None] - maps[None], axis=(2, 3))
    np.testing.assert_allclose(seen["saddle_distance"][0], wanted, atol=1e-12)
    predicted = fs.solve(one, "AlignedModes", observe="saddle_distance")["saddle_distance"]
    np.testing.assert_allclose(predicted, wanted, atol=1e-8)


every_observable = pytest.mark.parametrize("name", sorted(OBSERVABLES))


@every_observable
def test_what_a_setup_lacks_is_refused_with_the_reason(name):
    """Every observable either records on a perceptron that learns from samples, or says why not."""
    known = OBSERVABLES[name]
    bare = fs.Setup(TASK, fs.nets.MLP((4, 3), "relu"), fs.inits.SmallRandom(0.5), times=[0.1])
    if reason := known.lacks(bare):
        with pytest.raises(fs.BadInput) as refusal:
            fs.simulate(bare, observe=name)
        assert reason in refusal.value.seen
        assert "loss" in refusal.value.needed
    else:
        assert fs.simulate(bare, observe=name)[name].shape[:2] == (1, 1)


@pytest.mark.parametrize("theory", ["NeuralRace", "DisjointPathways", "PathDynamics"])
def test_modes_of_paths_are_those_that_theories_of_gated_nets_predict(theory):
    setup = getattr(fs.theories, theory).example()
    trained = fs.simulate(setup, observe=["path_modes", "path_norm"])
    predicted = fs.solve(setup, theory, observe=["path_modes", "path_norm"])
    for name in ("path_modes", "path_norm"):
        np.testing.assert_allclose(trained[name][0], predicted[name], atol=1e-7)


def test_no_name_is_in_two_families():
    names = [name for table in _TABLES for name in table]
    assert len(names) == len(set(names))
    assert set(names) == {*OBSERVABLES, *FROM_ACTIVITY}
    for known in (*OBSERVABLES.values(), *FROM_ACTIVITY.values()):
        assert set(known.recorded_with) <= set(OBSERVABLES)
        assert set(known.entries) <= set(known.axes)


@pytest.fixture
def dimension(monkeypatch):
    """The family to copy, of docs/observables.md, as if it were a file of the room; its text."""
    page = (ROOT / "docs" / "observables.md").read_text(encoding="utf-8")
    code = re.search(r"^```text\n(# src/festina/observables/dimension\.py\n.*?)^```$", page, flags=re.M | re.S)[1]
    module = types.ModuleType("festina.observables.dimension")
    module.__package__ = "festina.observables"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "docs/observables.md", "exec"), vars(module))
    monkeypatch.setitem(OBSERVABLES, "dimension", module.OBSERVABLES["dimension"])
    monkeypatch.setitem(FROM_ACTIVITY, "dimension", module.OBSERVABLES["dimension"])
    return code


def test_the_family_to_copy_is_recorded_predicted_and_probed(dimension):
    def by_hand(hidden):
        values = np.linalg.eigvalsh(hidden @ hidden.T)
        return values.sum() ** 2 / np.sum(values**2)

    one = setup(times=[0.0, 0.7])
    seen = fs.simulate(one, observe="dimension")["dimension"][0]
    hidden = [TASK.x @ weights[0].T for weights in (one.weights(0), end_weights(one))]
    np.testing.assert_allclose(seen, [by_hand(h) for h in hidden], rtol=1e-6)
    probed = fs.probe.arrays([0.0, 0.7], {"hidden": np.stack(hidden)}, observe="dimension")
    np.testing.assert_allclose(probed["dimension"][:, 0], seen, rtol=1e-6)
    assert probed.axes["dimension"] == ("time", "layer")
    known = fs.theories.BalancedRiccati.example()
    predicted = fs.solve(known, "BalancedRiccati", observe="dimension")["dimension"]
    np.testing.assert_allclose(fs.simulate(known, observe="dimension")["dimension"][0], predicted, rtol=1e-3)
    with pytest.raises(fs.BadInput, match="the net has no hidden layer"):
        fs.simulate(setup(hidden=()), observe="dimension")


def test_the_family_to_copy_is_listed(dimension, tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("listings", ROOT / "tools" / "listings.py")
    listings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(listings)
    shutil.copytree(ROOT / "src" / "festina" / "observables", tmp_path / "observables")
    (tmp_path / "observables" / "dimension.py").write_text(dimension, encoding="utf-8")
    monkeypatch.setattr(listings, "PACKAGE", tmp_path)
    assert "    dimension.OBSERVABLES,\n" in listings.listing("observables")
