"""Recording gates, the exact twin, and the frozen one."""

import dataclasses

import numpy as np
import pytest

import festina as fs
from festina.gates.frozen_twin import _layered

XOR = fs.tasks.xor(0.5)
CONTEXTS = fs.tasks.contextual(4, 3, "hierarchy")
EVERY_STEP = 0.1 * np.arange(25)
NETS = {
    "relu": fs.nets.MLP(6),
    "leaky": fs.nets.MLP(6, "leaky_relu"),
    "two layers": fs.nets.MLP((5, 4)),
    "two leaky layers": fs.nets.MLP((5, 4), "leaky_relu"),
    "biases": fs.nets.MLP(6, bias=True),
}


def setup(net, times=EVERY_STEP, rule=None, task=XOR):
    return fs.Setup(task, net, fs.inits.SmallRandom(0.5), rule or fs.rules.GradientDescent(0.1), times=times)


def by_hand(net, weights, x):
    """Pre-activations of every hidden layer, and outputs, in NumPy."""
    layers = [layer if isinstance(layer, tuple) else (layer, 0.0) for layer in weights]
    before, h = [], x
    for w, b in layers[:-1]:
        before.append(h @ np.asarray(w).T + b)
        h = np.where(before[-1] > 0, before[-1], net.off_slope * before[-1])
    w, b = layers[-1]
    return before, h @ np.asarray(w).T + b


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_gates_are_those_of_the_weights(net):
    trained = fs.gates.record(setup(net, [0.0]), seeds=[3, 5])
    seen = fs.gates.patterns(trained)
    for k, seed in enumerate((3, 5)):
        before, _ = by_hand(net, setup(net).weights(seed), XOR.x)
        np.testing.assert_array_equal(seen[k, 0].T, np.concatenate(before, axis=1) > 0)


def test_gates_come_with_what_is_needed_to_read_them(tmp_path):
    trained = fs.simulate(setup(NETS["two layers"], [0.0, 1.0]), 2, observe=["gates"])
    assert set(trained) == {"gates", "loss", "unit_size"}
    assert trained["gates"].shape == (2, 2, 9, 1)
    assert trained["gates"].dtype == np.uint8
    trained.save(tmp_path / "trained.nc")
    again = fs.Trajectory.load(tmp_path / "trained.nc")
    np.testing.assert_array_equal(fs.gates.patterns(again), fs.gates.patterns(trained))
    assert again.setup.net == trained.setup.net


@pytest.mark.parametrize("net", NETS.values(), ids=NETS)
def test_the_exact_twin_has_the_outputs_of_the_network(net):
    trained = fs.gates.record(setup(net), 2, observe="outputs")
    found = fs.gates.replay(trained)
    assert found.errors.shape == (2, len(EVERY_STEP))
    assert found.error < 1e-13
    assert not found.flipped.any()
    np.testing.assert_allclose(found.trajectory["outputs"], trained["outputs"], atol=1e-12)
    np.testing.assert_allclose(found.trajectory["loss"], trained["loss"], atol=1e-12)
    # It could have failed: gates change in these runs.
    assert (np.diff(trained["gates"], axis=1) != 0).any()


@pytest.mark.parametrize(
    "rule", [fs.rules.Adam(0.02), fs.rules.SGD(0.1, 2), fs.rules.GradientFlow(1e-6, 1e-9)], ids=repr
)
def test_the_exact_twin_follows_every_rule(rule):
    trained = fs.gates.record(setup(NETS["relu"], [0.0, 0.2, 0.4], rule), 1)
    assert fs.gates.replay(trained).error < 1e-13


@pytest.mark.parametrize("name", ["relu", "leaky", "two layers", "two leaky layers"])
def test_the_twin_as_a_gated_net_learns_like_the_network(name):
    """An independent trainer: linear maps of gated inputs, on moments, with gates on a schedule."""
    times = EVERY_STEP[:12]
    trained = fs.gates.record(setup(NETS[name], times), [1, 2], observe="outputs")
    twin = fs.gates.replay(trained).setup(seed=1)
    assert isinstance(twin.net, fs.nets.Gated)
    np.testing.assert_allclose(fs.simulate(twin, observe="outputs")["outputs"][0], trained["outputs"][1], atol=1e-12)


def changed(trained, times=slice(None), **values):
    """A recording with other values, or with fewer times, as an interrupted run has."""
    every = {name: (values.get(name, trained[name]))[:, times] for name in trained}
    return fs.Trajectory(
        trained.times[times], every, trained.axes, trained.source, trained.provenance, trained.coordinates
    )


def test_the_twin_is_compared_with_what_was_recorded():
    trained = fs.gates.record(setup(NETS["relu"]), 1, observe="outputs")
    size = np.abs(trained["outputs"]).max()
    off = fs.gates.replay(changed(trained, outputs=trained["outputs"] + 0.5 * size))
    assert 0.3 < off.errors.max() <= 0.5
    assert fs.gates.replay(changed(trained, loss=trained["loss"] * 1.1)).error > 0.05
    assert fs.gates.replay(changed(trained, gates=~trained["gates"])).flipped.min() == 1


def test_interrupted_recordings_are_replayed_as_far_as_they_go():
    trained = fs.gates.record(setup(NETS["relu"]), 1, observe="outputs")
    short = changed(trained, slice(7))
    found = fs.gates.replay(short)
    assert found.errors.shape == (1, 7)
    assert found.error < 1e-13
    assert fs.gates.freeze(short, clusters=2, method="as_printed").trajectory["loss"].shape == (1, 7)


def test_gates_that_switch_between_records_are_missed_by_the_schedule_alone():
    net = NETS["relu"]
    rare = fs.gates.record(setup(net, EVERY_STEP[::8]), 1, observe="outputs")
    found = fs.gates.replay(rare)
    assert found.error < 1e-13  # it has gates at every step
    held = fs.simulate(found.setup(), observe="outputs")["outputs"]
    assert np.abs(held - rare["outputs"]).max() > 1e-3


def learned(net=None, seeds=2, task=CONTEXTS, start=None, **options):
    start = fs.inits.SmallRandom(start or (1e-2 if net is None else 0.2))
    net = net or fs.nets.MLP(32)
    work = fs.Setup(task, net, start, fs.rules.GradientDescent(0.1), times=np.linspace(0, 60, 13))
    return fs.gates.record(work, seeds, **options)


def test_the_frozen_twin_reports_how_far_it_is():
    trained = learned(observe=("outputs", "similarity"))
    found = fs.gates.find(trained, 3)
    twin = fs.gates.freeze(trained, found)
    assert sum(size for name, size in twin.net.nodes if size) == 32
    by_simulation = fs.simulate(trained.setup.replace(net=found.net("share")), 2, ("loss", "outputs"))
    np.testing.assert_allclose(twin.trajectory["loss"], by_simulation["loss"], rtol=1e-10)
    np.testing.assert_allclose(twin.error, np.mean((by_simulation["outputs"] - trained["outputs"]) ** 2), rtol=1e-8)
    assert {"raw_mean", "raw", "time_shift", "output_gap", "geometry"} <= set(twin.errors)
    # Trained again where only gates were recorded: the same numbers.
    gates_only = learned()
    np.testing.assert_allclose(fs.gates.freeze(gates_only, found).error, twin.error, rtol=1e-8)


def test_the_elbow_is_the_smallest_number_of_gates_that_does_as_well():
    trained = learned(seeds=1)
    table = fs.gates.elbow(trained, (1, 3))
    errors = [fs.gates.freeze(trained, clusters=k).error for k in (1, 3)]
    np.testing.assert_allclose(table.error, errors, rtol=1e-8)
    assert errors[1] < errors[0] / 1.25
    assert table.attrs["chosen"] == 3


def test_the_elbow_goes_past_gates_that_are_off_everywhere():
    """Gates of single samples: one gate for all of them is on for none."""
    work = fs.Setup(
        fs.tasks.from_arrays(np.eye(6), np.eye(6)),
        fs.nets.MLP(24),
        fs.inits.SmallRandom(0.05),
        fs.rules.GradientDescent(0.3),
        times=np.linspace(0, 60, 5),
    )
    trained = fs.gates.record(work, 1, observe=("outputs", "similarity"))
    first = fs.gates.find(trained, 1)
    if first.gates.any():
        pytest.fail("this start was chosen for a first gate that is off everywhere")
    table = fs.gates.elbow(trained, (1, 2))
    assert table.pathways[0] == 0
    np.testing.assert_allclose(table.error[0], np.mean(trained["outputs"] ** 2))


def test_layers_of_gates_are_joined_where_both_are_on():
    trained = learned(fs.nets.MLP((12, 10)), seeds=1)
    founds = [fs.gates.find(trained, 2, layer=layer) for layer in (1, 2)]
    twin = fs.gates.freeze(trained, founds)
    assert twin.net.graph.inputs == ("inputs",)
    assert twin.net.graph.outputs == ("outputs",)
    # One gate of the first layer meets none of the second, and none of that meets another.
    parts = np.zeros((4, 12))
    parts[0, :6], parts[1, 6:9], parts[2, :3], parts[3, 9:] = 1, 1, 1, 1
    apart = [dataclasses.replace(found, centroids=parts[2 * k : 2 * k + 2]) for k, found in enumerate(founds)]
    net = _layered(apart, 5, None)
    assert (net.graph.inputs, net.graph.outputs, len(net.graph.hidden)) == (("inputs",), ("outputs",), 2)
    with pytest.raises(fs.BadInput, match="no common sample"):
        _layered([apart[0], dataclasses.replace(founds[1], centroids=parts[[3, 3]])], 5, None)
    assert twin.trajectory["loss"][0, -1] < 0.9 * twin.trajectory["loss"][0, 0]
    assert dict(_layered(founds, 5, range(4)).nodes)["inputs"] == 4


OTHER = fs.tasks.xor(0.7)
OTHER_ORDER = fs.tasks.from_arrays(CONTEXTS.x[::-1], CONTEXTS.y[::-1])
BAD = {
    "no relu": (lambda: fs.gates.record(setup(fs.nets.MLP(4, "tanh"))), "MLP with tanh do not switch", "one of"),
    "linear": (lambda: fs.simulate(setup(fs.nets.DeepLinear(4)), observe="gates"), "DeepLinear do not switch", ""),
    "no setup": (lambda: fs.gates.record(3), "setup is 3", "a Setup"),
    "no gates": (lambda: fs.gates.replay(fs.simulate(setup(NETS["relu"]))), "without gates", "recorded them"),
    "no trajectory": (lambda: fs.gates.purity(7), "7, without gates", "a trajectory"),
    "one time": (
        lambda: fs.gates.replay(fs.gates.record(setup(NETS["relu"], [1.0]))),
        "recorded at 1 time",
        "at least 2",
    ),
    "one time, frozen": (
        lambda: fs.gates.freeze(fs.gates.record(setup(NETS["relu"], [1.0]))),
        "recorded at 1 time",
        "at least 2",
    ),
    "other data": (
        lambda: fs.gates.replay(fs.gates.record(setup(NETS["relu"])), OTHER),
        "other samples",
        "the task of the rec",
    ),
    "other data, frozen": (
        lambda: fs.gates.freeze(fs.gates.record(setup(NETS["relu"])), task=OTHER),
        "other samples",
        "the task of",
    ),
    "gates of other data": (
        lambda: fs.gates.freeze(learned(seeds=1), fs.gates.find(learned(seeds=1, task=OTHER_ORDER), 2)),
        "found on other samples",
        "of the recording",
    ),
    "a number for gates": (lambda: fs.gates.freeze(learned(seeds=1), 4), "found is int", "what gates.find returns"),
    "arrays for gates": (lambda: fs.gates.freeze(learned(seeds=1), [np.ones(12)]), "list of ndarray", "gates.find"),
    "clusters of no layer": (lambda: fs.gates.freeze(learned(seeds=1), clusters=[4, 4]), "[4, 4]", "1 hidden layers"),
    "an elbow of one number": (lambda: fs.gates.elbow(learned(seeds=1), 4), "clusters = 4", "several numbers"),
    "an elbow of none": (lambda: fs.gates.elbow(learned(seeds=1), []), "clusters = []", "several numbers"),
    "a law that does not fit": (
        lambda: fs.gates.freeze(learned(seeds=1, start=[1e-2, 1e-2]), clusters=2),
        "the network's own",
        "one for each",
    ),
    "a graph with biases": (
        lambda: fs.gates.replay(fs.gates.record(setup(NETS["biases"]))).setup(),
        "with biases",
        "without",
    ),
    "no such seed": (
        lambda: fs.gates.replay(fs.gates.record(setup(NETS["relu"]))).setup(4),
        "seed = 4",
        "one of the 1 recorded",
    ),
    "a layer too few": (
        lambda: fs.gates.freeze(learned(fs.nets.MLP((12, 10)), 1), fs.gates.find(learned(fs.nets.MLP((12, 10)), 1), 2)),
        "hidden layers [1]",
        "[1, 2]",
    ),
    "no such layer": (lambda: fs.gates.find(learned(seeds=1), 2, layer=2), "layer = 2", "1 to 1"),
    "an elbow of two layers": (lambda: fs.gates.elbow(learned(fs.nets.MLP((12, 10)), 1)), "several hidden", "one"),
}


@pytest.mark.parametrize(("call", "seen", "needed"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_with_what_to_do(call, seen, needed):
    with pytest.raises(fs.BadInput) as refusal:
        call()
    assert seen in refusal.value.seen
    assert needed in refusal.value.needed
    assert refusal.value.do


def test_gates_of_given_weights_need_a_law_for_the_twin():
    given = fs.inits.Given([np.ones((3, 2)) * [[1.0], [2], [-1]], np.ones((1, 3))])
    work = fs.Setup(XOR, fs.nets.MLP(3), given, fs.rules.GradientDescent(0.1), times=[0.5, 1.0])
    with pytest.raises(fs.BadInput, match="Given"):
        fs.gates.freeze(fs.gates.record(work), clusters=1, method="as_printed")
