"""What gated networks refuse, and the words in which they do."""

from __future__ import annotations

import re

import numpy as np
import pytest

import festina as fs
from festina.nets import Gated
from festina.theories.disjoint_pathways import time_to_loss
from test_gated import labelled, setup_of, two_pathways

X_H_Y = {"nodes": {"x": 5, "h": 3, "y": 4}, "edges": [("x", "h"), ("h", "y")]}


def gated(**changes):
    return lambda: Gated(**(X_H_Y | changes))


def on_task(task=None, **changes):
    return lambda: setup_of(Gated(**(X_H_Y | changes)), task)


def with_weights(weights):
    return lambda: Gated(**X_H_Y).gradient(labelled(), weights)


def given(weights, net=None):
    return lambda: fs.Setup(labelled(), net or Gated(**X_H_Y), fs.inits.Given(weights), until=1.0).weights()


def without_a_domain():
    """A routing task of five domains, the last of which is never asked for."""
    task = fs.tasks.routing(domains=5, trained=2)
    kept = task.labels["target"] < 4
    labels = {name: values[kept] for name, values in task.labels.items()}
    return fs.tasks.from_arrays(task.x[kept], task.y[kept], labels=labels)


THREE = {"x": 5, "a": 2, "b": 2, "y": 4}
BAD = {
    "cycle": (
        gated(nodes=THREE, edges=[("x", "a"), ("a", "b"), ("b", "a"), ("b", "y")]),
        r"a cycle through (a → b → a|b → a → b)",
        "without cycles",
        r"remove one of its edges, for example \('",
    ),
    "cycle of one": (gated(edges=[("x", "h"), ("h", "h"), ("h", "y")]), "cycle through h → h", "cycles", "'h', 'h'"),
    "unreachable": (
        gated(nodes=THREE, edges=[("x", "a"), ("a", "y"), ("b", "y")], inputs={"x": range(5)}),
        "node 'b' that no path from an input reaches",
        "a path to every node",
        "add an edge into it",
    ),
    "dead end": (
        gated(nodes=THREE, edges=[("x", "a"), ("a", "y"), ("x", "b")], outputs={"y": range(4)}),
        "node 'b' from which no path leads to an output",
        "a path from every node",
        "add an edge out of it",
    ),
    "output apart": (
        gated(nodes=X_H_Y["nodes"] | {"z": 2}),
        "output node 'z' that no path from an input reaches",
        "a path to every node",
        "remove it",
    ),
    "edge into an input": (
        gated(inputs={"x": None, "h": [0, 1, 2]}),
        "input node 'h' with an edge",
        "only data",
        "drop",
    ),
    "hidden without a size": (gated(nodes={"x": 5, "h": None, "y": 4}), "node 'h' without a size", "hidden", "'h': 32"),
    "nodes": (gated(nodes=["x", "h"]), "nodes = ", "{name: size}", "give nodes="),
    "no nodes": (gated(nodes=3), "nodes = 3", "{name: size}", "give nodes="),
    "edges": (gated(edges=[1, 2]), r"edges = \[1, 2\]", "source, target", "give edges="),
    "a node twice": (gated(nodes=[("x", 5), ("x", 5)]), "node 'x' twice", "one size", "name of its own"),
    "unknown end": (gated(edges=[("x", "hh"), ("h", "y")]), r"unknown node of edge \('x', 'hh'\) 'hh'", "x", "'h'"),
    "unknown node": (gated(node_gates={"hh": 1}), "unknown node in node_gates 'hh'", "h, x, y", "did you mean 'h'"),
    "node gates": (gated(node_gates=[1, 2]), r"node_gates = \[1, 2\]", "{node: gate}", "give node_gates="),
    "unknown edge": (
        gated(edge_gates={("x", "y"): 1}),
        "unknown edge in edge_gates 'x → y'",
        "one of: x → h, h → y",
        "did you mean '",
    ),
    "edge number": (gated(edge_gates={2: 1}), "a gate for edge 2", "edges 0 … 1", "as they are listed"),
    "edge gates": (gated(edge_gates=0.5), "edge_gates = 0.5", "{edge: gate}", "give edge_gates="),
    "edge as text": (gated(edge_gates={"xh": 1}), "unknown edge in edge_gates 'xh'", "one of: x → h, h → y", "→"),
    "gate of text": (gated(node_gates={"h": "open"}), "gate of node 'h' is str", "real numbers", "convert"),
    "label of no name": (gated(node_gates={"h": {3: 1}}), "a rule on 3 at node 'h'", "names of labels", "context"),
    "schedule": (
        gated(node_gates={"h": {"begins": [1.0], "gates": [1.0]}}),
        r"gate of node 'h' begins at \[1.0\], with 1 gates",
        "first at 0",
        "Gated.schedule",
    ),
    "schedule of schedules": (
        gated(node_gates={"h": Gated.schedule([(1, Gated.schedule([(2, 1.0)]))])}),
        "inside the schedule of node 'h'",
        "in a schedule",
        "into one",
    ),
    "pieces": (lambda: Gated.schedule([1.0, 2.0]), "a schedule of", r"\(time, gate\) pairs", r"\(5, "),
    "columns": (gated(inputs={"x": [0, 1]}), "inputs of node 'x': 2 different columns", "units, 5", "size of the node"),
    "columns twice": (gated(outputs={"y": [0, 1, 1, 2]}), "outputs of node 'y': 3 different", "4", "its columns"),
    "columns as a number": (gated(inputs={"x": 5}), "inputs of node 'x': 5", "numbers of columns", "range"),
    "columns of size None": (
        gated(nodes={"x": None, "h": 3, "y": 4}, inputs={"x": [0, 1]}),
        "node 'x' of size None",
        "a size",
        "'x': 2",
    ),
    "unknown input": (gated(inputs={"xx": None}), "unknown input node 'xx'", "one of: x, h, y", "'x'"),
    "inputs": (gated(inputs=["x"]), r"inputs = \['x'\]", "{node: columns}", "give inputs="),
    "ranks": (gated(ranks=[0]), "1 ranks", "each of the 2 edges", "give ranks="),
    "gate of the wrong length": (
        on_task(node_gates={"h": np.ones(7)}),
        "gate of node 'h' has 7 values",
        "each of the 9 samples",
        "per sample",
    ),
    "edge gate of the wrong length": (
        on_task(edge_gates={("h", "y"): np.ones(7)}),
        "gate of edge h → y has 7 values",
        "9 samples",
        "a rule",
    ),
    "unknown label": (
        on_task(node_gates={"h": {"contxt": 0}}),
        "unknown label in the gate of node 'h' 'contxt'",
        "context",
        "did you mean 'context'",
    ),
    "no labels": (
        on_task(fs.tasks.from_arrays(np.eye(5), np.ones((5, 4))), node_gates={"h": {"context": 0}}),
        "rule on the label 'context' at node 'h', and samples without labels",
        "labels of the samples",
        "from_arrays",
    ),
    "no samples": (
        on_task(labelled().moments_only(), node_gates={"h": {"context": 0}}),
        "gate per sample at node 'h', and a task without samples",
        "samples",
        "from_arrays",
    ),
    "input too large": (
        on_task(nodes={"x": 6, "h": 3, "y": 4}),
        "input node 'x' of 6 units on columns 0 … 5",
        "columns 0 … 4 of x: the task has 5",
        "inputs={'x'",
    ),
    "input too small": (
        on_task(nodes={"x": 3, "h": 3, "y": None}),
        "input nodes 'x' of 3 units in all, and 5 columns of x",
        "as many units",
        "inputs=",
    ),
    "column not written": (
        on_task(nodes={"x": 5, "h": 3, "y": 3}),
        "output column 3 of y",
        "4 columns of y written",
        "output node for it",
    ),
    "a value that does not occur": (
        lambda: setup_of(Gated.pathways([{"width": 3}, {"name": "odd", "width": 3, "on": {"context": [7]}}])),
        "gate of node 'odd' reads whether the label 'context' is 7, which no sample has",
        "that occur: 0, 1, 2$",
        "take the value out of the rule",
    ),
    "all off": (
        on_task(node_gates={"h": np.zeros(9)}),
        "every path is off for all samples, x → h → y",
        "opens some path",
        "labels",
    ),
    "off at first": (
        lambda: setup_of(Gated.pathways([{"begins": 5.0}])),
        "every path is off for all samples, x → pathway 1 → y",
        "at every time",
        "begin",
    ),
    "training": (lambda: Gated.contexts(training="sequntial"), "unknown training 'sequntial'", "joint", "'sequential'"),
    "no pathways": (lambda: Gated.pathways([]), r"pathways = \[\]", "a list of pathways", "give"),
    "a pathway of nothing": (lambda: Gated.pathways([3]), "pathway 0 is 3", "a dict", "give"),
    "part of a pathway": (lambda: Gated.pathways([{"widht": 3}]), "part of a pathway 'widht'", "width", "'width'"),
    "two of a name": (
        lambda: Gated.pathways([{"name": "a"}, {"name": "a"}]),
        "two pathways with a node 'a'",
        "a name",
        "name=",
    ),
    "sees": (lambda: Gated.pathways([{"sees": 3}]), "pathway on columns 3 of x", "numbers of columns", "range"),
    "width": (lambda: Gated.contexts(width=(1, 2, 3)), r"width = \(1, 2, 3\)", r"\(common, others\)", "350"),
    "subset": (lambda: Gated.contexts([(0, 3)]), r"subset \(0, 3\) of 3 contexts", "0 … 2", "contexts="),
    "subset twice": (lambda: Gated.contexts([(1, 1)]), r"subset \(1, 1\) of 3", "different contexts", "subsets="),
    "subsets too large": (lambda: Gated.contexts(4), "subsets = 4", "sizes from 1 to 3", "subsets=2"),
    "subsets as text": (lambda: Gated.contexts("all"), "subsets = 'all'$", "sizes from 1 to 3", r"subsets=2, \(1, 2\)"),
    "subsets as a fraction": (lambda: Gated.contexts(2.5), "subsets = 2.5$", "or a list of subsets", "subsets=2"),
    "subsets of nothing": (lambda: Gated.contexts(0), "subsets = 0$", "sizes from 1 to 3", r"or \[\(0, 1\)\]"),
    "a size below one": (
        lambda: Gated.contexts((2, -1)),
        r"subsets = \(2, -1\), with -1 among them",
        "sizes from 1 to 3",
        "subsets=2",
    ),
    "a size too large": (
        lambda: Gated.contexts(np.array([2, 4])),
        r"subsets = array\(\[2, 4\]\), with 4 among them",
        "from 1 to 3",
        "subsets=2",
    ),
    "a context as text": (lambda: Gated.contexts([("a",)]), r"subset \('a',\) of 3 contexts", "0 … 2", "contexts="),
    "a negative context": (lambda: Gated.contexts([(-1, 0)]), r"subset \(-1, 0\) of 3", "0 … 2", "contexts="),
    "too many trained": (lambda: Gated.routing(3, 3, 4), "trained = 4 of 3", "at most 3", "lower"),
    "a schedule on a task": (
        lambda: two_pathways(2.0).moments(labelled()),
        "gate of node 'late' changes in time",
        "one time",
        "at_time",
    ),
    "rows without labels": (
        lambda: two_pathways().apply([np.ones(s) for s in two_pathways().shapes(5, 4)], labelled().x),
        "rule on the label 'context' at node 'late'",
        "labels",
        r"net\.on\(task\)",
    ),
    "a sequence": (
        lambda: setup_of(two_pathways(), fs.tasks.sequence([labelled(), labelled(seed=1)], 1.0)).lifted(),
        "a sequence of 2 tasks",
        "a single task",
        "setup.task.tasks",
    ),
    "an array of node gates": (
        gated(node_gates=np.ones(12)),
        r"node_gates = array\(",
        "{node: gate}",
        "give node_gates={.*array over samples",
    ),
    "an array of edge gates": (
        gated(edge_gates=np.ones((4, 12))),
        r"edge_gates = array\(",
        "{edge: gate}",
        "give edge_gates={.*array over",
    ),
    "numbers as names": (
        gated(nodes={0: 3, 1: 2}, edges=[(0, 1)]),
        "a node with the name 0",
        "text",
        "nodes={'0': 3, …}",
    ),
    "a number as a schedule": (
        lambda: Gated.schedule(5),
        "the pieces of a schedule = 5",
        r"\(time, gate\) pairs",
        r"\(5, ",
    ),
    "a time as text": (
        lambda: Gated.schedule([("a", 1.0)]),
        "a schedule with a gate from 'a' on",
        "are numbers",
        r"\(0, 1.0\)",
    ),
    "gates of a schedule": (
        gated(node_gates={"h": {"begins": [0.0], "gates": 1.0}}),
        "gates of the schedule of node 'h': 1.0",
        "one gate for each time",
        "Gated.schedule",
    ),
    "too few weights": (with_weights([np.ones((3, 5))]), "weights as a list of 1", "each of the 2 edges", "net.edges"),
    "weights transposed": (
        with_weights([np.ones((5, 3)), np.ones((4, 3))]),
        r"weights of edge x → h of shape \(5, 3\)",
        r"shape \(3, 5\), \(out, in\)",
        "transpose",
    ),
    "weights misshapen": (
        with_weights([np.ones((3, 5)), np.ones(4)]),
        r"edge h → y of shape \(4,\)",
        r"shape \(4, 3\)",
        "setup.weights",
    ),
    "weights with a bias": (
        with_weights([(np.ones((3, 5)), np.ones(3)), np.ones((4, 3))]),
        "edge x → h of type tuple",
        r"\(3, 5\)",
        "W1",
    ),
    "a number as weights": (with_weights(5), "weights = 5", "each of the 2 edges", r"\[W1, W2, …\]"),
    "weights by name": (
        with_weights({"x": 1, "y": 2}),
        "weights = {'x': 1, 'y': 2}",
        "each of the 2 edges",
        r"\[W1, W2, …\]",
    ),
    "moments of a sequence": (
        lambda: two_pathways().moments(fs.tasks.sequence([labelled(), labelled(seed=1)], 1.0)),
        "gated net on TaskSequence",
        "one task",
        "task.tasks",
    ),
    "a bias": (
        given([np.ones((3, 5)), (np.ones((4, 3)), np.ones(4))]),
        "^edge h → y has a bias$",
        "Gated has no biases",
        "without biases",
    ),
    "a bias in a chain": (
        given([(np.ones((3, 5)), np.ones(3)), np.ones((4, 3))], fs.nets.DeepLinear(3)),
        "^layer 0 has a bias$",
        "DeepLinear has no biases",
        "without biases",
    ),
    "Given of another shape": (
        given([np.ones((5, 3)), np.ones((4, 3))]),
        r"shapes \[\(5, 3\), \(4, 3\)\]",
        r"\(3, 5\)",
        "transpose",
    ),
    "a value of an edge's rule": (
        on_task(edge_gates={("h", "y"): {"context": [0, 1.5]}}),
        "gate of edge h → y reads whether .*'context' is 1.5",
        "'context' that occur: 0, 1, 2$",
        "as the task has",
    ),
    "a value in a schedule": (
        on_task(node_gates={"h": Gated.schedule([(0, 1.0), (5, {"context": 3})])}),
        "node 'h' .* 'context' is 3",
        "0, 1, 2",
        "take the value out",
    ),
    "more contexts than the task has": (
        lambda: setup_of(Gated.contexts(2, contexts=4, items=4, width=3), fs.tasks.contextual(4, 3)),
        r"gate of node 'context 0\+3' .* 'context' is 3",
        "0, 1, 2",
        "for as many contexts",
    ),
    "more domains than the task has": (
        lambda: setup_of(Gated.routing(7, 7, 4), fs.tasks.routing(domains=5, trained=2)),
        "input node 'in 6'",
        "0 … 19 of x",
        "size of the node",
    ),
    "a domain that no sample asks for": (
        lambda: setup_of(Gated.routing(5, 5, 2, hidden=3), without_a_domain()),
        "gate of node 'out 5' reads whether the label 'target' is 4",
        "0, 1, 2, 3$",
        "as many contexts or domains",
    ),
    "labels of text": (
        lambda: fs.tasks.from_arrays(np.eye(2), np.eye(2), labels={"context": ["a", "b"]}),
        "label 'context' is list of text, such as 'a'",
        "one number for every sample",
        r"numpy.unique\(context, return_inverse=True\)\[1\]",
    ),
    "an array of text": (
        lambda: fs.tasks.from_arrays(np.eye(2), np.eye(2), labels={"context": np.array(["a", "b"])}),
        "label 'context' is ndarray of text",
        "one number",
        "return_inverse",
    ),
    "a start above the target": (
        lambda: time_to_loss(1.0, target=0.5, start=1.0, fraction=0.4),
        "a start at 2 of the target",
        "at most 0.3675.* fraction 0.4",
        "lower start or fraction",
    ),
    "a start at the target": (
        lambda: time_to_loss(1.0, target=0.5, start=0.5, fraction=0.4),
        "at 1 of the target, where the loss is 0 of",
        "at most 0.3675",
        "target is s/d",
    ),
    "a start below the level": (
        lambda: time_to_loss(np.ones(2), target=1.0, start=np.array([0.01, 0.5]), fraction=0.4),
        "at 0.5 of the target, where the loss is 0.25 of",
        "fraction 0.4",
        "lower start",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_three_parts(case):
    make, seen, needed, do = BAD[case]
    with pytest.raises(fs.BadInput) as error:
        make()
    for part, words in ((error.value.seen, seen), (error.value.needed, needed), (error.value.do, do)):
        assert re.search(words, part), f"{words!r} is not in {part!r}"


@pytest.mark.parametrize("use", ["moments", "lifted", "on", "draw", "gradient"])
def test_only_a_task_decides_the_gates(use):
    weights = {"weights": []} if use == "gradient" else {}
    with pytest.raises(fs.BadInput) as error:
        getattr(Gated(**X_H_Y), use)(np.ones((9, 5)), **weights)
    assert error.value.seen == "a gated net on ndarray, which is no task"
    assert error.value.needed == "one task: it decides the gates"
    assert "festina.tasks.from_arrays(x, y, labels=" in error.value.do


def test_sizes_of_subsets_are_any_whole_numbers():
    sizes = [Gated.contexts(subsets) for subsets in ((1, 2), [1, 2], range(1, 3), np.array([1, 2]), {1, 2})]
    assert all(net == sizes[0] for net in sizes)
    assert Gated.contexts(np.array(2)) == Gated.contexts(np.int64(2)) == Gated.contexts(2)
    listed = Gated.contexts([(0, 1), (0, 2), (2, 1)])
    assert listed == Gated.contexts(np.array([[0, 1], [0, 2], [2, 1]])) == Gated.contexts(2)
    assert Gated.contexts([(0,), (0, 1)]).graph.hidden == ("common", "context 0", "context 0+1")


def test_pathways_weights_and_pieces_may_come_one_by_one():
    listed = [{"width": 3}, {"width": 4}]
    assert Gated.pathways(pathway for pathway in listed) == Gated.pathways(listed)
    pieces = [(0, 1.0), (np.float64(5), 0.5)]
    assert Gated.schedule(piece for piece in pieces) == Gated.schedule(pieces)
    net, task = Gated(**X_H_Y), labelled()
    weights = [np.full(shape, 0.1) for shape in net.shapes(5, 4)]
    for mine, theirs in zip(net.gradient(task, iter(weights)), net.gradient(task, weights), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_the_advice_on_labels_of_text_works():
    numbers = np.unique(["b", "a", "b"], return_inverse=True)[1]
    task = fs.tasks.from_arrays(np.eye(3), np.eye(3), labels={"context": numbers})
    assert task.labels["context"].tolist() == [1, 0, 1]


def test_every_value_of_a_rule_may_be_in_another_task_of_a_sequence():
    def only(context):
        rng = np.random.default_rng(context)
        x, y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
        return fs.tasks.from_arrays(x, y, labels={"context": [context] * 6})

    net = Gated.pathways([{"on": {"context": values}, "width": 2} for values in ([0], [1], [0, 1])])
    for task in (only(0), only(1)):
        with pytest.raises(fs.BadInput, match="which no sample has"):
            setup_of(net, task)
    both = fs.tasks.sequence([only(0), only(1)], 2.0)
    setup = fs.Setup(both, net, fs.inits.SmallRandom(0.3), times=[0.0, 1.0, 3.0])
    trained = fs.simulate(setup, observe=["task_loss", "loss"])
    np.testing.assert_allclose(trained["loss"][0], [*trained["task_loss"][0, :2, 0], trained["task_loss"][0, 2, 1]])
    np.testing.assert_allclose(fs.solve(setup)["loss"], trained["loss"][0], rtol=1e-6)


def test_untrained_pairs_follow_trained_ones():
    pairs = [fs.tasks.routing(4, 2, pairs=kind) for kind in ("trained", "untrained")]
    setup = setup_of(Gated.routing(4, 4, 2, hidden=3), fs.tasks.sequence(pairs, 1.0))
    assert len(setup.net.paths()) == 16
    # Which pairs are trained is the task's business alone.
    assert Gated.routing(4, 4, 2) == Gated.routing(4, 4, 1)


def test_the_time_to_a_loss_that_is_there_already_is_none():
    assert time_to_loss(1.0, target=1.0, start=0.5, fraction=0.25) == pytest.approx(0.0, abs=1e-12)
    assert time_to_loss(1.0, target=1.0, start=0.499, fraction=0.25) > 0
