"""Gated networks: their law against automatic differentiation sample by sample, their words, their picture."""

from __future__ import annotations

import dataclasses
import functools
import gc
import itertools
import re
import sys
import types
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import festina as fs
from festina._figures.style import new_figure
from festina._foundation.precision import in_double
from festina._reporting import experiment, report_files, reproduce
from festina._setup import loss as _objective
from festina._setup.spec import KINDS, _noun_from, _noun_spec
from festina._setup.stages import stages
from festina.nets import Gated
from festina.nets._memory import once_per_task
from festina.nets.gated import gates

CONTEXTUAL = fs.tasks.contextual(items=4, contexts=3, blocks="hierarchy")


def labelled(samples=9, d_in=5, d_out=4, seed=0):
    """Random samples with three contexts."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(samples, d_in)), rng.normal(size=(samples, d_out))
    return fs.tasks.from_arrays(x, y, labels={"context": np.arange(samples) % 3})


def random_gate(rng, samples):
    """Nothing, a number, a binary or a real-valued array, a rule."""
    kind = rng.integers(6)
    binary = np.append(1.0, rng.integers(0, 2, samples - 1))
    return [None, 0.7, binary, rng.normal(size=samples), {"context": [0, 2]}, None][kind]


def random_net(seed):
    """A random DAG with skip and parallel edges, 1–3 inputs (one of size None) and 1–2 outputs that overlap."""
    rng = np.random.default_rng(seed)
    ins, outs, hidden = rng.integers(1, 4), rng.integers(1, 3), rng.integers(2, 5)
    samples, d_in, d_out = 9, 5, 4
    nodes = {f"x{i}": None if i == 0 else int(rng.integers(1, d_in)) for i in range(ins)}
    layers = [f"h{i}" for i in range(hidden)]
    nodes |= {name: int(rng.integers(2, 5)) for name in layers}
    outputs = {"y0": None} if outs == 1 else {"y0": [3, 0, 1], "y1": [1, 2]}
    nodes |= {name: None if columns is None else len(columns) for name, columns in outputs.items()}
    inputs = {f"x{i}": None if i == 0 else rng.permutation(d_in)[: nodes[f"x{i}"]].tolist() for i in range(ins)}
    order, edges = [*inputs, *layers, *outputs], []
    for place, name in enumerate(order):
        before = [other for other in order[:place] if other not in outputs]
        if name not in inputs:
            edges += [(other, name) for other in before if rng.random() < 0.45]
            edges += [(before[-1], name)] * int(1 + (rng.random() < 0.4))  # parallel edges now and then
    heard = {source for source, _ in edges}
    edges += [(name, next(iter(outputs))) for name in (*inputs, *layers) if name not in heard]
    net = Gated(
        nodes,
        edges,
        node_gates={name: random_gate(rng, samples) for name in order if rng.random() < 0.6},
        edge_gates={k: random_gate(rng, samples) for k in range(len(edges)) if rng.random() < 0.5},
        inputs=inputs,
        outputs=outputs,
    )
    task = labelled(samples, d_in, d_out, seed)
    weights = tuple(rng.normal(size=shape) / np.sqrt(2 * shape[1]) for shape in net.shapes(d_in, d_out))
    return net, task, weights


def gate_on(gate, task, i):
    """A gate on one sample, read independently of the library."""
    if gate is None:
        return 1.0
    if isinstance(gate, dict):
        return float(all(task.labels[name][i] in wanted for name, wanted in gate.items()))
    return gate if np.ndim(gate) == 0 else gate[i]


def columns_of(net, task):
    """By hand, for nets that list them all: None is every column."""
    reads = {name: range(task.d_in) if c is None else c for name, c in net.inputs}
    writes = {name: range(task.d_out) if c is None else c for name, c in net.outputs}
    return reads, writes


def forward(net, task, weights, i):
    """h of every node and the output for sample i, node by node: h_v = g_v Σ g_q W_q h."""
    reads, writes = columns_of(net, task)
    sources = {name: {s for s, t in net.edges if t == name} for name, _ in net.nodes}
    h, waiting = {}, [name for name, _ in net.nodes]
    while waiting:
        name = next(name for name in waiting if sources[name] <= set(h))
        waiting.remove(name)
        if name in reads:
            total = jnp.asarray(task.x[i])[jnp.asarray(list(reads[name]))]
        else:
            total = sum(
                gate_on(net.edge_gates[k], task, i) * (weights[k] @ h[s])
                for k, (s, t) in enumerate(net.edges)
                if t == name
            )
        h[name] = gate_on(net.node_gates.get(name), task, i) * total
    output = jnp.zeros(task.d_out)
    for name, columns in writes.items():
        output = output.at[jnp.asarray(list(columns))].add(h[name])
    return h, output


def direct_loss(net, task, weights):
    errors = [forward(net, task, weights, i)[1] - task.y[i] for i in range(task.samples)]
    return 0.5 * sum(jnp.sum(error**2) for error in errors) / task.samples


def close(one, other, rtol=1e-13):
    """Relative to the size of the whole tree: single entries may cancel."""
    size = max(np.abs(leaf).max() for leaf in jax.tree.leaves(other))
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=rtol * size)


def loss_of(setup, weights):
    """(loss, gradient) of the net as it is trained."""
    lifted = setup.lifted()
    seen = _objective.evidence_of(lifted.net, lifted.task)
    return in_double(lambda w: _objective.gradient(lifted.net, seen)(w, None))(tuple(weights))


@pytest.mark.parametrize("seed", range(20))
def test_the_law_of_paths_is_the_gradient_of_the_network(seed):
    net, task, weights = random_net(seed)
    loss, slope = in_double(jax.jit(jax.value_and_grad(lambda v: direct_loss(net, task, v))))(weights)
    close(net.gradient(task, weights), slope)
    bound_loss, bound_slope = loss_of(fs.Setup(task, net, fs.inits.SmallRandom(1.0), until=1.0), weights)
    # Through the best map Σʸˣ (Σˣ)⁺, which is large where gated inputs nearly depend on each other.
    np.testing.assert_allclose(bound_loss, loss, rtol=1e-9)
    close(bound_slope, slope, 1e-10)
    outputs = np.stack([in_double(lambda w, i=i: forward(net, task, w, i)[1])(weights) for i in range(task.samples)])
    lifted = fs.Setup(task, net, fs.inits.SmallRandom(1.0), until=1.0).lifted()
    close(in_double(lambda w: lifted.net.apply(w, lifted.task.x))(weights), outputs)
    close(in_double(lambda w: net.on(task).apply(w, task.x))(weights), outputs)


def test_the_random_graphs_are_not_all_alike():
    nets = [random_net(seed)[0] for seed in range(20)]
    counts = [len(net.paths()) for net in nets]
    assert min(counts) < 20
    assert max(counts) > 60
    assert any(len(set(net.edges)) < len(net.edges) for net in nets)  # parallel edges
    assert {len(net.graph.inputs) for net in nets} == {1, 2, 3}
    assert {len(net.graph.outputs) for net in nets} == {1, 2}


@pytest.mark.parametrize("seed", range(6))
def test_moments_are_sums_over_samples_with_all_gates_of_the_path(seed):
    net, task, _ = random_net(seed)
    moments = net.moments(task)
    reads, writes = columns_of(net, task)
    opened = np.array(
        [
            [
                np.prod([gate_on(net.node_gates.get(name), task, i) for name in path.nodes])
                * np.prod([gate_on(net.edge_gates[k], task, i) for k in path.edges])
                for i in range(task.samples)
            ]
            for path in net.paths()
        ]
    )
    np.testing.assert_allclose(moments.openings, opened, atol=1e-14)
    count = range(task.samples)
    for p, path in enumerate(net.paths()):
        x, y = task.x[:, list(reads[path.source])], task.y[:, list(writes[path.target])]
        explicit = sum(opened[p, i] * np.outer(y[i], x[i]) for i in count) / task.samples
        np.testing.assert_allclose(moments.cov_yx[p], explicit, atol=1e-13)
        for j, other in enumerate(net.paths()[:5]):
            z = task.x[:, list(reads[other.source])]
            explicit = sum(opened[j, i] * opened[p, i] * np.outer(z[i], x[i]) for i in count) / task.samples
            np.testing.assert_allclose(moments.cov_x[j, p], explicit, atol=1e-12)


def test_gates_that_are_numbers_need_no_samples():
    net = Gated({"x": None, "h": 3, "y": None}, [("x", "h"), ("h", "y"), ("x", "y")], edge_gates={("x", "y"): 0.5})
    whole = labelled()
    weights = tuple(np.random.default_rng(1).normal(size=shape) for shape in net.shapes(5, 4))
    close(net.gradient(whole.moments_only(), weights), net.gradient(whole, weights))
    lost = loss_of(fs.Setup(whole.moments_only(), net, fs.inits.SmallRandom(1.0), until=1.0), weights)
    close(lost, loss_of(fs.Setup(whole, net, fs.inits.SmallRandom(1.0), until=1.0), weights), 1e-12)
    assert net.on(whole.moments_only()) == net
    close(
        in_double(lambda w: net.on(whole.moments_only()).apply(w, whole.x))(weights),
        whole.x @ (weights[1] @ weights[0] + 0.5 * weights[2]).T,
    )


def test_more_paths_than_can_be_listed_are_trained_all_the_same():
    names = [f"h{k}" for k in range(14)]  # 2¹⁵ paths
    chain = ["x", *names, "y"]
    pairs = [pair for pair in itertools.pairwise(chain) for _ in range(2)]
    net = Gated({"x": None, **dict.fromkeys(names, 1), "y": None}, pairs, node_gates={"h0": {"context": [0, 1]}})
    task = labelled()
    with pytest.raises(fs.BadInput, match="at most 10000 to list them"):
        net.paths()
    setup = fs.Setup(task, net, fs.inits.Given([0.5 * np.ones(s) for s in net.shapes(5, 4)]), until=0.1, points=2)
    trained = fs.simulate(setup)
    np.testing.assert_allclose(fs.solve(setup, "PathDynamics")["loss"], trained["loss"][0], rtol=1e-9)
    # Both edges of a pair are ½: together they are one edge of weight 1.
    gated = task.x * (task.labels["context"] < 2)[:, None]
    error = task.y - gated.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(trained["loss"][0, 0], 0.5 * np.mean(np.sum(error**2, axis=1)), rtol=1e-12)


# Sequential training


def test_sequential_training_stops_gradients_between_ranks():
    net = Gated.contexts(subsets=2, items=4, width=3, training="sequential")
    task, rng = CONTEXTUAL, np.random.default_rng(3)
    weights = tuple(rng.normal(size=shape) for shape in net.shapes(task.d_in, task.d_out))
    context = task.labels["context"]

    def training_loss(w):
        common = task.x @ (w[1] @ w[0]).T
        contextual = sum(
            np.isin(context, pair)[:, None] * (task.x[:, :4] @ (w[2 * k + 3] @ w[2 * k + 2]).T)
            for k, pair in enumerate([(0, 1), (0, 2), (1, 2)])
        )
        first = jnp.sum((task.y - common) ** 2)
        second = jnp.sum((task.y - jax.lax.stop_gradient(common) - contextual) ** 2)
        whole = jnp.sum((task.y - common - contextual) ** 2)
        return 0.5 * (first + second) / task.samples, 0.5 * whole / task.samples

    slope, loss = in_double(lambda w: (jax.grad(lambda v: training_loss(v)[0])(w), training_loss(w)[1]))(weights)
    close(net.gradient(task, weights), slope)
    trained_loss, trained_slope = loss_of(fs.Setup(task, net, fs.inits.SmallRandom(1.0), until=1.0), weights)
    close(trained_slope, slope)
    np.testing.assert_allclose(trained_loss, loss, rtol=1e-12)
    joint = dataclasses.replace(net, ranks=None)
    assert (net.training, joint.training) == ("sequential", "joint")
    assert np.abs(joint.gradient(task, weights)[0] - slope[0]).max() > 0.01


def test_joint_and_sequential_training_differ_as_measured():
    # 3 contexts, different blocks: 100 units per path, sd 7.14e-6 and twice that in contextual paths, lr 1e-3 summed.
    task = fs.tasks.contextual()
    losses = {}
    for training in ("joint", "sequential"):
        net = Gated.contexts(subsets=2, width=100, training=training)
        rng = np.random.default_rng(0)
        weights = [
            7.14e-6 * (1 if "common" in edge else 2) * rng.normal(size=shape)
            for edge, shape in zip(net.edges, net.shapes(task.d_in, task.d_out), strict=True)
        ]
        rule = fs.rules.GradientDescent(1e-3 * task.samples)
        setup = fs.Setup(task, net, fs.inits.Given(weights), rule, until=8000 * rule.lr, every=20)
        losses[training] = task.samples * fs.simulate(setup)["loss"][0]
    raw = np.max(np.abs(losses["joint"] - losses["sequential"])) / losses["joint"][0]
    np.testing.assert_allclose(losses["joint"][0], 105.623, rtol=1e-4)
    assert raw == pytest.approx(0.0039, rel=0.15)
    # Printed .023 and .030; the end depends on the start: seeds 0 and 1 have .032 and .026, .038 and .033.
    assert 0.02 < losses["joint"][-1] < 0.035
    assert 0.028 < losses["sequential"][-1] < 0.042
    assert 1.1 < losses["sequential"][-1] / losses["joint"][-1] < 1.4


# Schedules and sequences


def two_pathways(begins=0.0, width=3):
    return Gated.pathways(
        [
            {"name": "always", "width": width},
            {"name": "late", "on": {"context": [0, 1]}, "width": width, "begins": begins},
        ]
    )


def test_a_pathway_that_begins_later_is_the_smaller_net_and_then_the_larger():
    task, rng = labelled(), np.random.default_rng(5)
    weights = [0.3 * rng.normal(size=shape) for shape in two_pathways().shapes(5, 4)]
    times = np.linspace(0, 6, 13)
    scheduled = fs.Setup(task, two_pathways(2.0), fs.inits.Given(weights), times=times)
    small = Gated.pathways([{"name": "always", "width": 3}])
    first = fs.Setup(task, small, fs.inits.Given(weights[:2]), times=times[times <= 2])
    handed = fs.solve(first).weights
    second = fs.Setup(task, two_pathways(), fs.inits.Given([*handed, *weights[2:]]), times=times[times >= 2] - 2)
    by_hand = np.concatenate([fs.solve(first)["loss"][:-1], fs.solve(second)["loss"]])
    trained, solved = fs.simulate(scheduled, observe=["loss", "outputs"]), fs.solve(scheduled)
    np.testing.assert_allclose(trained["loss"][0], by_hand, rtol=1e-7)
    np.testing.assert_allclose(solved["loss"], by_hand, rtol=1e-7)
    np.testing.assert_allclose(solved["outputs"], trained["outputs"][0], atol=1e-7)


def test_gates_that_change_in_time_have_no_one_map():
    setup = fs.Setup(labelled(), two_pathways(2.0), fs.inits.SmallRandom(0.1), until=4.0, points=5)
    assert set(fs.solve(setup)) == {"loss", "outputs"}
    with pytest.raises(fs.BadInput, match="these change during the run"):
        fs.simulate(setup, observe="map")
    assert fs.simulate(setup.replace(times=[0.0, 1.0]), observe="map")["map"].shape == (1, 2, 4, 5)


def test_a_schedule_inside_begins_is_off_until_then():
    gate = Gated.schedule([(0, {"context": [0]}), (1, {"context": [1]}), (5, 1.0)])
    for begins, expected in ((3.0, (0.0, 3.0, 5.0)), (0.5, (0.0, 0.5, 1.0, 5.0)), (7.0, (0.0, 7.0))):
        net = Gated.pathways([{}, {"on": gate, "begins": begins}])
        assert net.node_gates["pathway 2"]["begins"] == expected
        late = net.at_time(begins).node_gates["pathway 2"]
        assert late == {3.0: {"context": (1.0,)}, 0.5: {"context": (0.0,)}, 7.0: 1.0}[begins]
        assert net.at_time(begins / 2).node_gates["pathway 2"] == 0.0


def test_equal_nets_behave_alike():
    task, scheduled = labelled(), two_pathways(2.0)
    first = scheduled.at_time(0.0)
    plain = Gated.pathways([{"name": "always", "width": 3}, {"name": "late", "on": 0.0, "width": 3}])
    rebuilt = jax.tree.unflatten(jax.tree.structure(first), jax.tree.leaves(first))
    assert first == plain == rebuilt
    for net in (first, plain, rebuilt):
        assert net.closed_edges([task]) == ("x → late", "late → y")
        assert scheduled.closed_edges([task]) == ()
    absent = Gated.pathways([{"width": 3}, {"on": {"context": [7]}, "width": 3}])
    assert absent.at_time(0.0) == absent
    for net in (absent, absent.at_time(0.0)):
        with pytest.raises(fs.BadInput, match="which no sample has"):
            fs.Setup(task, net, fs.inits.SmallRandom(0.1), until=1.0)


def test_a_stage_of_a_run_says_so_and_is_refused_for_nothing_that_another_has():
    setup = fs.Setup(labelled(), two_pathways(2.0), fs.inits.SmallRandom(0.1), until=4.0, points=5)
    first, second = (stage.setup for stage in stages(setup))
    assert (setup.is_stage, first.is_stage, second.is_stage) == (False, True, True)
    assert first.replace(init=fs.inits.SmallRandom(0.2)).is_stage
    whole = fs.Setup(first.task, first.net, first.init, times=first.times)
    assert whole != first  # equal parts, but a whole run
    assert whole.to_json() == first.to_json()
    assert "never learned" in fs.solve(whole).provenance["note"]
    assert "never learned" not in fs.solve(setup).provenance["note"]


def test_a_kind_of_gate_is_one_class(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Alternating(gates.Gate):
        """On for the first sample, off for the next, and so on."""

        period: int

        @classmethod
        def reads(cls, written):
            return isinstance(written, str)

        @classmethod
        def parse(cls, written, where):
            return cls(int(written.removeprefix("every ")))

        @property
        def plain(self):
            return f"every {self.period}"

        def values(self, task, where):
            return (np.arange(task.samples) % self.period == 0).astype(float)

        def __str__(self):
            return self.plain

    monkeypatch.setattr(gates, "KINDS", (Alternating, *gates.KINDS))
    task = labelled()
    net = Gated.pathways([{"width": 2}, {"name": "some", "on": "every 3", "width": 3, "begins": 2.0}])
    assert net.switch_times == (2.0,)
    assert "every 3 from 2" in repr(net)
    same = Gated.pathways([{"width": 2}, {"name": "some", "on": {"context": 0}, "width": 3}])
    close(net.at_time(2.0).lifted(task)[1].cov_x, same.lifted(task)[1].cov_x)
    setup = fs.Setup(task, net, fs.inits.SmallRandom(0.1), until=4.0, points=5)
    assert fs.Setup.from_json(setup.to_json()) == setup
    assert fs.simulate(setup)["loss"].shape == (1, 5)
    assert net.draw(task) is not None


def test_what_is_known_of_a_net_on_a_task_is_computed_once_and_forgotten_with_the_net():
    calls = []

    @once_per_task
    def square(net, task):
        calls.append(task)
        return len(calls)

    task, other = labelled(), labelled(seed=1)
    net, equal = two_pathways(), two_pathways()
    assert [square(net, task), square(net, task), square(net, other), square(net, task)] == [1, 1, 2, 1]
    assert square(equal, task) == 3
    assert "_memory" not in net.__dict__
    later = [labelled(seed=seed) for seed in range(2, 6)]
    assert [square(net, t) for t in later] == [4, 5, 6, 7]
    assert square(net, task) == 8  # four tasks are remembered, in the order in which they were asked about
    gone = weakref.ref(net)
    del net
    gc.collect()
    assert gone() is None


def test_the_second_task_is_watched_while_the_first_is_trained():
    first, second = labelled(seed=1), labelled(seed=2)
    net, rule = two_pathways(), fs.rules.GradientDescent(0.1)
    both = fs.tasks.sequence([first, second], 4.0)
    watched = fs.Setup(both, net, fs.inits.SmallRandom(0.5), rule, times=[0.0, 0.1, 0.2])
    seen = fs.simulate(watched, observe=["task_loss", "loss"])
    weights = watched.weights()
    for step in range(3):
        for k, task in enumerate((first, second)):
            outputs = in_double(lambda w, task=task: net.on(task).apply(w, task.x))(weights)
            expected = 0.5 * np.mean(np.sum((outputs - task.y) ** 2, axis=1))
            np.testing.assert_allclose(seen["task_loss"][0, step, k], expected, rtol=1e-11)
        weights = [w - 0.1 * g for w, g in zip(weights, net.gradient(first, weights), strict=True)]
    np.testing.assert_array_equal(seen["loss"], seen["task_loss"][..., 0])


def test_training_does_not_depend_on_the_number_of_samples():
    once = labelled()
    context = np.tile(once.labels["context"], 10)
    often = fs.tasks.from_arrays(np.tile(once.x, (10, 1)), np.tile(once.y, (10, 1)), labels={"context": context})
    descent = fs.rules.GradientDescent(0.05), {"until": 5.0, "every": 10}
    one, ten = (
        fs.Setup(task, two_pathways(), fs.inits.SmallRandom(0.3), descent[0], **descent[1]) for task in (once, often)
    )
    assert ten.lifted().task.cov_x.shape == one.lifted().task.cov_x.shape
    close(fs.simulate(ten, 2, "map")["map"], fs.simulate(one, 2, "map")["map"], 1e-12)


def test_one_step_of_minibatch_training_is_the_gradient_on_its_rows():
    task, net = labelled(), two_pathways()
    weights = [np.random.default_rng(2).normal(size=shape) for shape in net.shapes(5, 4)]
    lr = 0.1
    # A batch of all rows: the rows themselves are known, and the step is the hand formula.
    for batch in (task.samples, 1):
        setup = fs.Setup(task, net, fs.inits.Given(weights), fs.rules.SGD(lr, batch=batch), times=[0.0, lr])
        outputs = fs.simulate(setup, observe=["outputs"])["outputs"][0, 1]
        parts = [range(task.samples)] if batch > 1 else [[i] for i in range(task.samples)]
        steps = []
        for rows in map(list, parts):
            part = fs.tasks.from_arrays(task.x[rows], task.y[rows], labels={"context": task.labels["context"][rows]})
            slope = net.gradient(part, weights)
            stepped = [w - lr * g for w, g in zip(weights, slope, strict=True)]
            steps.append(in_double(lambda w: net.on(task).apply(w, task.x))(stepped))
        distances = [np.abs(outputs - step).max() for step in steps]
        assert sorted(distances)[0] < 1e-12
        assert len(steps) == 1 or sorted(distances)[1] > 1e-6


def test_sequential_training_on_batches_is_refused():
    net = Gated.contexts(subsets=2, items=4, width=3, training="sequential")
    setup = fs.Setup(CONTEXTUAL, net, fs.inits.SmallRandom(0.1), fs.rules.SGD(0.1, batch=2), until=1.0)
    with pytest.raises(fs.BadInput, match=r"sequential training on batches[\s\S]*GradientDescent"):
        fs.simulate(setup)


def test_representation_and_outputs_are_those_of_the_forward_pass():
    net, task, weights = random_net(4)
    setup = fs.Setup(task, net, fs.inits.Given(list(weights)), times=[0.0])
    seen = fs.simulate(setup, observe=["outputs", "representation", "loss"])
    passes = [in_double(functools.partial(forward, net, task, i=i))(weights) for i in range(task.samples)]
    np.testing.assert_allclose(seen["outputs"][0, 0], [output for _, output in passes], rtol=1e-11, atol=1e-11)
    hidden = [np.concatenate([h[name] for name in net.graph.hidden]) for h, _ in passes]
    np.testing.assert_allclose(seen["representation"][0, 0], hidden, rtol=1e-11, atol=1e-11)
    own = in_double(lambda w: net.on(task).representation(w, task.x))(weights)
    np.testing.assert_allclose(own, hidden, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(seen["loss"][0, 0], in_double(direct_loss)(net, task, weights), rtol=1e-9)


# Nouns


EVERY_GATE = Gated(
    {"x": None, "a": 2, "b": 2, "c": 2, "d": 2, "y": None},
    [("x", "a"), ("x", "a"), ("x", "b"), ("x", "c"), ("x", "d"), ("a", "y"), ("b", "y"), ("c", "y"), ("d", "y")],
    node_gates={"a": {"context": [0, 1]}, "b": np.linspace(-1, 1, 9), "c": 0.5},
    edge_gates={1: np.array([1, 0, 0] * 3), ("x", "d"): Gated.schedule([(2.0, {"context": 2}), (3.0, 1)])},
    ranks=[0, 0, 0, 1, 1, 0, 0, 1, 1],
)


@pytest.mark.parametrize(
    "net",
    [
        EVERY_GATE,
        two_pathways(3.0),
        Gated.pathways([{"sees": [0, 2], "writes": range(2)}, {"width": ()}, {"writes": [3, 1], "on": 0.3}]),
    ],
    ids=["every gate", "begins", "columns"],
)
def test_a_setup_with_gates_survives_json(net):
    setup = fs.Setup(labelled(), net, fs.inits.SmallRandom(0.1), until=4.0, points=5)
    again = fs.Setup.from_json(setup.to_json())
    assert again == setup
    assert again.net == net
    assert hash(again.net) == hash(net)
    for time in (0.0, *net.switch_times):
        lifted, same = (one.net.at_time(time).lifted(one.task)[1] for one in (setup, again))
        np.testing.assert_array_equal(lifted.cov_x, same.cov_x)


@pytest.mark.parametrize("builder", [Gated.contexts(2, training="sequential", begins=3.0), Gated.routing(3, 3, 2)])
def test_builders_survive_json(builder):
    assert _noun_from(_noun_spec(builder), "net", KINDS["net"]) == builder


def test_nets_are_equal_by_value():
    def net(gate, **options):
        return Gated({"x": 2, "h": 3, "y": 1}, [("x", "h"), ("h", "y")], node_gates={"h": gate}, **options)

    assert net({"context": 1}) == net({"context": [1]})
    assert net([1, 0, 1]) == net(np.array([1.0, 0.0, 1.0]))
    assert net([1, 0, 1]) != net([1, 0, 0])
    assert net({"context": 1}) != net({"item": 1})
    assert net(1.0, ranks=[0, 1]) != net(1.0)
    assert net(1.0, ranks=[1, 1]) == net(1.0)


def test_a_net_shows_its_nodes_gates_and_training():
    shown = repr(EVERY_GATE)
    for words in (
        "x ·, a 2",
        "x→a",
        "a: context 0, 1",
        "b: 8 of 9 samples, real-valued",
        "c: 0.5",
        "x → a (edge 1): 3 of 9 samples",
        "off from 0, context 2 from 2, always from 3",
        "sequential",
    ):
        assert words in shown, words
    assert "sequential" not in repr(two_pathways())


# What is not refused, and what has no theory


def setup_of(net, task=None):
    return fs.Setup(task or labelled(), net, fs.inits.SmallRandom(0.1), until=1.0)


def test_a_lesion_is_no_mistake():
    # A gate of the number 0 is meant: what lies behind it is off too, and training leaves it alone.
    net = Gated.pathways([{"width": 3}, {"name": "cut", "width": (2, 2), "on": 0.0}])
    setup = fs.Setup(labelled(), net, fs.inits.SmallRandom(0.3), fs.rules.GradientDescent(0.1), times=[0.0, 2.0])
    intact = setup.replace(net=Gated.pathways([{"width": 3}]), init=fs.inits.Given(list(setup.weights()[:2])))
    np.testing.assert_allclose(fs.simulate(setup)["loss"], fs.simulate(intact)["loss"], rtol=1e-12)


def test_an_edge_that_no_sample_opens_stays_as_it_starts_and_changes_nothing():
    rule = fs.rules.GradientDescent(0.05)
    nodes, edges = {"x": 5, "a": 3, "b": 2, "y": 4}, [("x", "a"), ("a", "y"), ("x", "b"), ("b", "y")]
    gates = {"a": {"context": [0, 1]}, "b": np.zeros(9)}
    rng = np.random.default_rng(2)
    weights = [0.3 * rng.normal(size=(nodes[end], nodes[begin])) for begin, end in edges]
    whole = fs.Setup(labelled(), Gated(nodes, edges, gates), fs.inits.Given(weights), rule, until=4.0, points=3)
    part = Gated({"x": 5, "a": 3, "y": 4}, edges[:2], {"a": gates["a"]})
    alone = whole.replace(net=part, init=fs.inits.Given(weights[:2]))
    seen, wanted = (fs.simulate(one, observe=["loss", "outputs", "path_norm"]) for one in (whole, alone))
    for name in ("loss", "outputs"):
        np.testing.assert_allclose(seen[name], wanted[name], rtol=1e-13)
    np.testing.assert_allclose(seen["path_norm"][0, :, 1], np.linalg.norm(weights[3] @ weights[2]), rtol=1e-14)
    predicted, smaller = fs.solve(whole), fs.solve(alone)
    assert predicted.source == "PathDynamics"
    np.testing.assert_allclose(predicted["outputs"], smaller["outputs"], atol=1e-8)  # as far as flows are integrated
    assert predicted.provenance["note"].endswith("never learned: edge x → b, b → y; no sample opens a path through it")
    assert "never learned" not in smaller.provenance["note"]
    assert whole.net.closed_edges([labelled()]) == ("x → b", "b → y")


def test_a_loss_that_vanishes_is_that_of_the_outputs_and_never_below_zero():
    net = Gated.contexts(subsets=2, items=4, width=12)
    setup = fs.Setup(CONTEXTUAL, net, fs.inits.SmallRandom(0.1), fs.rules.GradientDescent(0.5), until=3000, points=7)
    trained = fs.simulate(setup, [0, 1], ["loss", "outputs"])
    theory = fs.solve(setup.replace(rule=fs.rules.GradientFlow(), until=400.0, points=5), "PathDynamics")
    for found in (trained, theory):
        missed = 0.5 * np.mean(np.sum((found["outputs"] - CONTEXTUAL.y) ** 2, axis=-1), axis=-1)
        assert (found["loss"] >= 0).all()
        assert missed.min() < 1e-20, "it has been learned"
        # Outputs are sums of some 20 terms of order 3, each with its rounding; the loss has the square of that.
        rounding = 0.5 * CONTEXTUAL.d_out * (20 * 3 * np.finfo(float).eps) ** 2
        np.testing.assert_allclose(found["loss"], missed, rtol=1e-3, atol=rounding)


def test_biases_have_no_theory_of_paths():
    setup = fs.Setup(labelled(), fs.nets.MLP(4, bias=True), fs.inits.SmallRandom(0.1), until=1.0)
    with pytest.raises(fs.NoTheory, match="MLP with biases"):
        fs.solve(setup, "PathDynamics")


# The picture


def patches(ax, kind):
    return [patch for patch in ax.patches if type(patch).__name__ == kind]


def fills(ax):
    """(left, width, colour) of every stretch of every strip."""
    return [(r.get_x(), r.get_width(), r.get_facecolor()) for r in patches(ax, "Rectangle") if r.get_facecolor()[3]]


def test_the_picture_has_every_node_edge_and_gate():
    (ax,) = EVERY_GATE.draw(labelled()).axes
    assert len(patches(ax, "FancyBboxPatch")) == 6
    assert len(patches(ax, "FancyArrowPatch")) == 9
    words = [text.get_text() for text in ax.texts]
    assert {"x", "a", "b", "c", "d", "y", "2 units", "all columns", "from 2", "from 3"} <= set(words)
    assert "by context; shades between, crossed if negative; trained in sequence" in " ".join(words[-1].split())
    crossed = [patch for patch in patches(ax, "Rectangle") if patch.get_hatch()]
    assert len(crossed) == 4  # of linspace(−1, 1, 9)


def test_a_strip_is_dark_where_the_gate_is_open():
    net, task = Gated.contexts([(0, 2)], width=4, common=False), fs.tasks.contextual()
    stretches = fills(net.draw(task).axes[0])
    assert [round(width / stretches[0][1], 6) for _, width, _ in stretches] == [1, 1, 1]  # context by context
    on, off, again = (colour for _, _, colour in stretches)
    assert on == again
    assert sum(on[:3]) < sum(off[:3])


def test_without_a_task_the_picture_says_its_gates_in_words():
    words = [text.get_text().replace("\n", " ") for text in EVERY_GATE.draw().axes[0].texts]
    assert "context 0, 1" in words
    assert "off from 0, context 2 from 2, always from 3" in words


def test_nodes_lie_left_to_right_apart_from_each_other_and_from_edges_that_skip_them():
    for seed in range(8):
        net, task, _ = random_net(seed)
        (ax,) = net.draw(task).axes
        boxes = [patch.get_bbox() for patch in patches(ax, "FancyBboxPatch")]
        centre = {name: (box.x0 + box.x1) / 2 for (name, _), box in zip(net.nodes, boxes, strict=True)}
        assert all(centre[source] < centre[target] for source, target in net.edges)
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        for arrow, (source, target) in zip(patches(ax, "FancyArrowPatch"), net.edges, strict=True):
            line = arrow.get_path().interpolated(1).to_polygons(closed_only=False)[0]
            for (name, _), box in zip(net.nodes, boxes, strict=True):
                if name not in (source, target):
                    inside = (
                        (line[:, 0] > box.x0) & (line[:, 0] < box.x1) & (line[:, 1] > box.y0) & (line[:, 1] < box.y1)
                    )
                    assert not inside.any(), (seed, source, target, name)


def test_the_picture_goes_where_it_is_told():
    figure, axes = new_figure(1, 2)
    assert two_pathways().draw(ax=axes[0, 1]) is figure
    assert axes[0, 1].patches
    assert not axes[0, 0].patches


# Reports


def report_of(setups, monkeypatch):
    """A report of an experiment that does nothing but have these setups."""
    name = "gates_are_shown"
    module = types.ModuleType(f"festina.experiments.{name}", "Gates are shown.")
    values = {
        "QUICK": {},
        "REFERENCE": {},
        **dict(THEME="gates", PLACE=1, CAPTION="Gates.", ALT="Gates."),
        "run": lambda seed: fs.Result(xarray.Dataset({"one": 1.0}), setups),
        "claims": lambda result: (),
        "figure": lambda result: two_pathways().draw(),
    }
    vars(module).update(values)
    monkeypatch.setattr(experiment.experiments, "__all__", [name])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return name


def test_a_report_has_a_picture_of_every_different_gated_net(tmp_path, monkeypatch):
    sequence = fs.tasks.sequence([labelled(), labelled(seed=1)], 1.0)
    setups = {
        "small, joint": setup_of(two_pathways()),
        "again": setup_of(two_pathways()).replace(until=2.0),
        "<late>": setup_of(two_pathways(2.0), sequence),
        "chain": setup_of(fs.nets.DeepLinear(3)),
    }
    name = report_of(setups, monkeypatch)
    folder = tmp_path / name
    report = fs.run(name, out=folder)
    assert report.facts["networks"] == {"network-1.svg": ["small, joint", "again"], "network-2.svg": ["<late>"]}
    pictures = {path.name: path.read_text() for path in folder.glob("network-*.svg")}
    assert set(pictures) == set(report.facts["networks"])
    assert "from 2" in pictures["network-2.svg"]
    assert all(len(picture) < 60_000 for picture in pictures.values())
    # A report that was loaded draws the same pictures.
    fs.Report.load(folder).save(tmp_path / "again")
    assert {path.name: path.read_text() for path in (tmp_path / "again").glob("network-*.svg")} == pictures
    assert report_files.is_done(folder, report.facts["digest"])
    (folder / "network-2.svg").unlink()
    assert not report_files.is_done(folder, report.facts["digest"])
    page = reproduce.reproduce([name], quick=False, out=tmp_path).page.read_text()
    section = page[page.index("<summary>Networks") :]
    assert "2 with gates" in section
    assert "<h3>small, joint, again</h3><figure>" in section
    assert 'aria-label="Network: &lt;late&gt;"' in section
    assert "<h3>&lt;late&gt;</h3>" in section
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


def test_a_report_without_gated_nets_has_no_pictures(tmp_path, monkeypatch):
    name = report_of({"chain": setup_of(fs.nets.DeepLinear(3))}, monkeypatch)
    page = reproduce.reproduce([name], quick=False, out=tmp_path).page.read_text()
    assert not list(tmp_path.rglob("network-*"))
    assert "Networks" not in page


def test_the_norm_of_every_path_is_that_of_its_product_of_layers():
    net = Gated(
        {"x": 4, "a": 3, "b": 2, "y": 5},
        [("x", "a"), ("a", "b"), ("b", "y"), ("a", "y"), ("x", "a")],
        node_gates={"b": {"context": [0, 2]}},
    )
    task = labelled(d_in=4, d_out=5)
    setup = fs.Setup(task, net, fs.inits.SmallRandom(0.5), times=[0.0])
    trained = fs.simulate(setup, observe=["path_norm"])
    w = setup.weights(0)
    products = [w[2] @ w[1] @ w[0], w[3] @ w[0], w[2] @ w[1] @ w[4], w[3] @ w[4]]
    np.testing.assert_allclose(trained["path_norm"][0, 0], [np.linalg.norm(product) for product in products])
    assert list(trained.coordinates["path"]) == [str(path) for path in net.paths()]
    with pytest.raises(fs.BadInput, match="no gated paths"):
        fs.simulate(setup.replace(net=fs.nets.DeepLinear(3)), observe=["path_norm"])


def test_of_theories_that_fail_those_of_another_kind_of_network_come_last():
    setup = fs.Setup(fs.tasks.hierarchy(levels=2), fs.nets.DeepLinear(5), fs.inits.SmallRandom(0.5), until=5.0)
    gated = {"PathDynamics", "NeuralRace", "DisjointPathways", "ContextRace"}
    assert {entry.name for entry in fs.covering(setup)[-len(gated) :]} == gated
