"""A valid call of every public callable, for tests/test_bad_input.py: {name: () -> (callable, arguments)}.

Small on purpose: where a bad value happens to be valid, the call is run. A new task, net, init, rule or theory needs no
line here: its calls follow from its defaults or its example. Those written by hand are smaller, or have no example.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
from pathlib import Path
from unittest import mock

import numpy as np

import festina as fs
from festina import gates, inits, nets, probe, rules, tasks, theories

cache = functools.cache


@cache
def task():
    return tasks.hierarchy(levels=2)


@cache
def setup():
    return fs.Setup(task(), nets.DeepLinear(3), inits.Aligned(1e-2), until=4.0, points=5)


@cache
def relu():
    return fs.Setup(tasks.xor(), nets.MLP(3), inits.SmallRandom(0.3), rules.GradientDescent(0.1), until=2.0, points=4)


@cache
def solved():
    return fs.solve(setup(), observe=("loss", "modes"))


@cache
def trained():
    return fs.simulate(setup(), 1)


@cache
def recorded():
    return gates.record(relu(), 1, observe=("loss", "outputs", "similarity"))


@cache
def found():
    return gates.find(recorded(), 2)


@cache
def replayed():
    return gates.replay(recorded())


@cache
def frozen():
    return gates.freeze(recorded(), found())


@cache
def critical():
    return fs.saddles(task(), 2)


@cache
def gated():
    return nets.Gated.pathways([{"on": {"item": [0, 1]}, "width": 2}, {"on": {"item": [2, 3]}, "width": 2}])


@cache
def gated_task():
    return tasks.xor()


@cache
def gated_weights():
    shapes = gated().shapes(gated_task().d_in, gated_task().d_out)
    return tuple(np.full(shape, 0.1) for shape in shapes)


def weights(net, d_in=2, d_out=2):
    def filled(shape):
        if isinstance(shape, tuple) and all(isinstance(size, int) for size in shape):
            return np.full(shape, 0.1)
        return tuple(map(filled, shape))

    return tuple(map(filled, net.shapes(d_in, d_out)))


@cache
def report():
    return fs.run("worlds_have_spectra", quick=True)


@cache
def model():
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))


X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0.0], [1.0], [0.5]])


def jax_model(params, inputs):
    return inputs @ params, {"hidden": inputs @ params}


def opened():
    made = probe.jax(jax_model, inputs=X, targets=Y)
    made.__enter__()
    return made


def curves():
    """Curves of two points, by the closed form."""
    times = np.linspace(0, 20, 30)
    pair = dict(distance0=0.1, output0=0.01, alignment0=-0.05, input_gap=1.0, target_gap=1.0, tau_h=2.0, tau_y=2.0)
    H, P, w = theories.two_point.trajectory(times, **pair)
    return dict(times=times, distance=H, output_distance=P, output_alignment=w, input_gap=1.0, target_gap=1.0)


@cache
def probed():
    return probe.curves(**curves())


def start(*names):
    values = dict(
        distance0=0.1,
        output0=0.01,
        alignment0=-0.05,
        input_gap=1.0,
        target_gap=1.0,
        tau_h=2.0,
        tau_y=2.0,
        distance=0.1,
        output=0.01,
        decoder0=0.1,
        along0=0.01,
        ts=[0.0, 1.0],
        mean=1.0,
        layer=0,
        depth=3,
        constant=0.5,
        mean_gap0=0.1,
        tau_mean=1.0,
    )
    return {name: values[name] for name in names}


START = ("distance0", "output0", "alignment0", "input_gap", "target_gap", "tau_h", "tau_y")
TURNING = ("distance0", "decoder0", "along0", "input_gap", "target_gap", "tau_h", "tau_y")
NOW = ("distance", "output", "input_gap", "target_gap", "tau_h", "tau_y")


@cache
def saved():
    """Files of a trajectory and of a report, in a folder that lives as long as the process."""
    import tempfile

    folder = tempfile.TemporaryDirectory()
    trained().save(f"{folder.name}/trained.nc")
    report().save(f"{folder.name}/report")
    return folder


def law():
    return theories.two_point.law_of_final_distance(**start("mean", "input_gap", "target_gap", "tau_h", "tau_y"))


def of_theory(name, method):
    member = getattr(theories, name)
    if method == "example_at":
        return getattr(member(), method), dict(value=member.approach.values[0])
    return getattr(member(), method), dict(setup=example(name), seed=0)


@cache
def example(name):
    return getattr(theories, name).example()


def formula(module, name, /, **arguments):
    return lambda: (getattr(importlib.import_module(f"festina.theories.{module}"), name), arguments)


def call(function, /, **arguments):
    return lambda: (function, arguments)


assumption = dict(name="small", statement="it is small", measured=0.1, needed="<= 1", holds=True)
claim = dict(text="it is small", measured=0.1, required="<= 1", holds=True)
CONVOLUTIONAL = nets.Convolutional(units=4, channels=2, convolutions=2, kernel=2)

CALLS = {
    "Assumption": call(fs.Assumption, **assumption),
    "Assumption.at_most": call(fs.Assumption.at_most, name="small", statement="it is", measured=0.1, bound=1.0),
    "Assumption.that": call(
        fs.Assumption.that, name="linear", statement="it is", holds=True, measured="linear", needed="linear"
    ),
    "Claim": call(fs.Claim, **claim),
    "Claim.at_least": call(fs.Claim.at_least, text="large", measured=2.0, bound=1.0, source="paper", fitted=False),
    "Claim.at_most": call(fs.Claim.at_most, text="small", measured=0.1, bound=1.0, expected=True, reason=""),
    "Claim.between": call(fs.Claim.between, text="right", measured=0.1, low=0.0, high=1.0),
    "Comparison": lambda: (fs.Comparison, dict(theory=solved(), trained=trained())),
    "Comparison.__getitem__": lambda: (fs.compare(solved(), trained()).__getitem__, dict(name="loss")),
    "Comparison.error": lambda: (fs.compare(solved(), trained()).error, dict(name="loss")),
    "Comparison.plot": lambda: (fs.compare(solved(), trained()).plot, dict(names="loss")),
    "Covering": lambda: (fs.Covering, dict(entries=list(covering()))),
    "Covering.__getitem__": lambda: (covering().__getitem__, dict(index="AlignedModes")),
    "Experiment": lambda: (fs.Experiment, dict(name="worlds_have_spectra", module=report().experiment.module)),
    "Experiment.named": call(fs.Experiment.named, name="worlds_have_spectra"),
    "Experiment.parameters": lambda: (report().experiment.parameters, dict(quick=True)),
    "Experiment.with_parameters": lambda: (
        report().experiment.with_parameters,
        dict(quick=True, preset=None, changes={}),
    ),
    "Report": lambda: (
        fs.Report,
        {name: getattr(report(), name) for name in ("experiment", "result", "claims", "facts")},
    ),
    "Report.load": lambda: (fs.Report.load, dict(folder=f"{saved().name}/report")),
    "Report.save": lambda: (report().save, dict(folder="report")),
    "Result": lambda: (fs.Result, dict(data=report().result.data, setups={"one": setup()}, theories={})),
    "Saddles": lambda: (
        fs.Saddles,
        {name: getattr(critical(), name) for name in ("modes", "losses", "indices", "family", "subsets", "hidden")},
    ),
    "Saddles.distance": lambda: (critical().distance, dict(maps=task().target())),
    "Saddles.weights": lambda: (critical().weights, dict(position=0)),
    "Setup": lambda: (fs.Setup, dict(task=task(), net=nets.DeepLinear(3), init=inits.Aligned(1e-2), until=4.0)),
    "Setup.from_json": lambda: (fs.Setup.from_json, dict(text=setup().to_json())),
    "Setup.modes": lambda: (setup().modes, dict(seed=0)),
    "Setup.replace": lambda: (
        setup().replace,
        dict(task=task(), net=nets.DeepLinear(3), init=inits.Aligned(1e-2), until=4.0, points=5, precision="float64"),
    ),
    "Setup.weights": lambda: (setup().weights, dict(seed=0)),
    "Task": lambda: (fs.Task, dict(cov_yx=task().cov_yx, cov_x=task().cov_x, x=task().x, y=task().y)),
    "Trajectory": call(
        fs.Trajectory,
        times=np.arange(3.0),
        values={"loss": np.ones(3)},
        axes={"loss": ("time",)},
        source="measured",
        provenance={},
        coordinates={},
    ),
    "Trajectory.__getitem__": lambda: (trained().__getitem__, dict(name="loss")),
    "Trajectory.animate": lambda: (trained().animate, dict(name="loss", path="film.gif", seed=0)),
    "Trajectory.array": lambda: (trained().array, dict(name="loss")),
    "Trajectory.plot": lambda: (trained().plot, dict(observe="loss")),
    "Trajectory.to_dataframe": lambda: (trained().to_dataframe, dict(observe="loss")),
    "figures.save": lambda: (
        fs.figures.save,
        dict(figure=trained().plot("loss"), path="figure.svg", column="single"),
    ),
    "Trajectory.load": lambda: (fs.Trajectory.load, dict(path=f"{saved().name}/trained.nc")),
    "Trajectory.save": lambda: (trained().save, dict(path="trained.nc")),
    "balance": call(fs.balance, weights=[np.eye(2), np.eye(2)]),
    "compare": lambda: (fs.compare, dict(theory=solved(), trained=trained())),
    "covering": lambda: (fs.covering, dict(setup=setup(), seed=0)),
    "fit": lambda: (fs.fit, dict(theory="TwoPoint", trajectory=probed(), layer="hidden", pair=0, free_gap=False)),
    "gates.Found": lambda: (
        gates.Found,
        {
            name: getattr(found(), name)
            for name in ("centroids", "share", "method", "layer", "distinct", "rows", "setup")
        },
    ),
    "gates.Found.__getitem__": lambda: (found().__getitem__, dict(index=0)),
    "gates.Found.net": lambda: (found().net, dict(width=2)),
    "gates.Found.pathways": lambda: (found().pathways, dict(width=2)),
    "gates.Frozen": lambda: (
        gates.Frozen,
        {name: getattr(frozen(), name) for name in ("found", "setup", "trajectory", "errors")},
    ),
    "gates.Replay": lambda: (
        gates.Replay,
        {
            name: getattr(replayed(), name)
            for name in ("trajectory", "errors", "loss_errors", "flipped", "recording", "strayed")
        },
    ),
    "gates.Replay.setup": lambda: (replayed().setup, dict(seed=0)),
    "gates.aligned": call(gates.aligned, points=X, onto=X[::-1]),
    "gates.compare": lambda: (gates.compare, dict(reference=recorded(), candidates={"itself": recorded()})),
    "gates.elbow": lambda: (gates.elbow, dict(trained=recorded(), clusters=[2])),
    "gates.find": lambda: (gates.find, dict(trained=recorded(), clusters=2)),
    "gates.freeze": lambda: (gates.freeze, dict(trained=recorded(), found=found(), progress=False)),
    "gates.geometry": call(gates.geometry, h=X, other=X[:, ::-1] + [[0, 0], [0, 1], [1, 1]]),
    "gates.implementable": lambda: (gates.implementable, dict(pattern=[True, False, False, False], task=relu().task)),
    "gates.implementable_patterns": lambda: (gates.implementable_patterns, dict(task=relu().task)),
    "gates.learning_times": lambda: (gates.learning_times, dict(trained=recorded(), fractions=0.9)),
    "gates.patterns": lambda: (gates.patterns, dict(trained=recorded())),
    "gates.purity": lambda: (gates.purity, dict(trained=recorded(), label="sign")),
    "gates.record": lambda: (gates.record, dict(setup=relu(), seeds=1, progress=False)),
    "gates.replay": lambda: (gates.replay, dict(trained=recorded(), progress=False)),
    "gates.scaling": call(gates.scaling, h=X, dimensions=1),
    "gates.witness": lambda: (gates.witness, dict(pattern=[True, False, False, False], task=relu().task)),
    "nets.Gated": call(nets.Gated, nodes={"x": 3, "h": 2, "y": 1}, edges=[("x", "h"), ("h", "y")]),
    "nets.Gated.apply": lambda: (gated().on(gated_task()).apply, dict(weights=gated_weights(), x=gated_task().x)),
    "nets.Gated.representation": lambda: (
        gated().on(gated_task()).representation,
        dict(weights=gated_weights(), x=gated_task().x),
    ),
    "nets.Gated.contexts": call(nets.Gated.contexts, subsets=1, contexts=2, items=2, width=2),
    "nets.Gated.draw": lambda: (gated().draw, dict(task=gated_task())),
    "nets.Gated.gradient": lambda: (gated().gradient, dict(task=gated_task(), weights=gated_weights())),
    "nets.Gated.closed_edges": lambda: (gated().closed_edges, dict(tasks=[gated_task()])),
    "nets.Gated.moments": lambda: (gated().moments, dict(task=gated_task())),
    "nets.Gated.on": lambda: (gated().on, dict(task=gated_task())),
    "nets.Gated.pathways": call(nets.Gated.pathways, pathways=[{"on": {"item": [0]}, "width": 2}]),
    "nets.Gated.routing": call(nets.Gated.routing, inputs=2, outputs=2, trained=1, items=2, features=2, hidden=2),
    "nets.Gated.schedule": call(nets.Gated.schedule, pieces=[(0.0, {"item": [0]}), (1.0, 1.0)]),
    "nets.Gated.shapes": lambda: (gated().shapes, dict(d_in=3, d_out=1)),
    "nets.Gated.at_time": lambda: (gated().at_time, dict(time=0.0)),
    "probe.JaxProbe": call(
        probe.JaxProbe, function=jax_model, layers=None, inputs=X, targets=Y, pairs=None, at=1, observe=None, lr=None
    ),
    "probe.JaxProbe.step": lambda: (opened().step, dict(params=np.ones((2, 1)))),
    "probe.TorchProbe": lambda: (
        probe.TorchProbe,
        dict(
            model=model(),
            layers=None,
            inputs=X,
            targets=Y,
            pairs=None,
            at=1,
            observe=None,
            functions=None,
            select=None,
            output=None,
            lr=None,
        ),
    ),
    "probe.arrays": call(
        probe.arrays,
        times=[0.0, 1.0],
        hidden={"hidden": np.stack([X, 2 * X])},
        outputs=np.stack([Y, 2 * Y]),
        inputs=X,
        targets=Y,
    ),
    "probe.curves": lambda: (probe.curves, curves()),
    "probe.jax": call(probe.jax, function=jax_model, inputs=X, targets=Y),
    "probe.layers": lambda: (probe.layers, dict(model=model(), inputs=X)),
    "probe.scan": lambda: (probe.scan, dict(trajectory=probed())),
    "probe.weighted": call(probe.weighted, distances=1.0 - np.eye(3), scale=1.0, normalised=True),
    "probe.structure": call(probe.structure, inputs=X, targets=Y, hidden={"hidden": X}, outputs=0.5 * Y, kappa=1.0),
    "probe.torch": lambda: (probe.torch, dict(model=model(), inputs=X, targets=Y)),
    "race": lambda: (
        fs.race,
        dict(
            task=gated_task(),
            candidates={"xor": [{"item": [k]} for k in range(4)]},
            hidden=4,
            scale=0.1,
            until=1.0,
            check=False,
        ),
    ),
    "keep_compiled_programs": lambda: (
        mock.patch("jax.config.update", new=mock.Mock())(fs.keep_compiled_programs),
        dict(folder="programs"),
    ),
    "run": call(fs.run, name="removing_samples_can_raise_a_mode", quick=True, seed=0),
    "saddles": lambda: (fs.saddles, dict(task=task(), hidden=2)),
    "simulate": lambda: (fs.simulate, dict(setup=setup(), seeds=1, progress=False)),
    "solve": lambda: (fs.solve, dict(setup=setup(), theory="AlignedModes")),
    "tasks.blobs": call(tasks.blobs, positions=2, pixels=2),
    "tasks.contextual": call(tasks.contextual, items=4, contexts=2),
    "tasks.from_arrays": call(
        tasks.from_arrays, x=X, y=Y, items=list("abc"), inputs=list("ab"), features=["a"], labels={"item": [0, 1, 2]}
    ),
    "tasks.from_moments": call(tasks.from_moments, cov_yx=np.eye(2), cov_x=np.eye(2), cov_y=np.eye(2)),
    "tasks.grid": call(tasks.grid, rows=2, columns=2),
    "tasks.hierarchy": call(tasks.hierarchy, levels=2),
    "tasks.mnist": lambda: (mnist, dict(samples=2)),
    "tasks.mnist_stand_in": call(tasks.mnist_stand_in, samples=10),
    "tasks.partition": call(tasks.partition, sizes=(2, 2)),
    "tasks.regression": call(tasks.regression, d_in=2, d_out=2, samples=4),
    "tasks.ring": call(tasks.ring, items=4),
    "tasks.routing": call(tasks.routing, domains=2, trained=1, levels=(2.0, 1.0)),
    "tasks.sequence": lambda: (tasks.sequence, dict(tasks=[task(), task()], durations=1.0)),
    "tasks.student_teacher": call(tasks.student_teacher, d_in=2, d_out=2, hidden=2, samples=4),
    "tasks.tree": call(tasks.tree, branching=(2, 2)),
    "tasks.whitened": lambda: (tasks.whitened, dict(task=tasks.regression())),
    "theories.ContextRace": call(theories.ContextRace, common_start=1e-3, subset_start=[1e-3, 1e-4]),
    "theories.aligned_modes.mode": formula("aligned_modes", "mode", times=[0.0, 1.0], singular_value=1.0, start=0.1),
    "theories.aligned_modes.time_to": formula("aligned_modes", "time_to", strength=0.5, singular_value=1.0, start=0.1),
    "theories.balanced_riccati.family": lambda: (
        theories.balanced_riccati.family,
        dict(task=tasks.regression(d_in=2, d_out=2), hidden=2, lam=0.1, scale=0.1, times=[0.0, 1.0]),
    ),
    "theories.base.smooth_training": lambda: (
        theories.base.smooth_training,
        dict(setup=setup(), fastest_rate=lambda: 1.0),
    ),
    "theories.context_race.arrival": lambda: (
        theories.context_race.arrival,
        dict(mode=theories.context_race.item_mode(1.0, items=2, contexts=3, size=2), common_start=0.01),
    ),
    "theories.context_race.gate_overlap": formula("context_race", "gate_overlap", contexts=3, size=2),
    "theories.context_race.head_start": formula(
        "context_race", "head_start", value=1.0, start=0.1, common_start=0.1, items=2, contexts=3, size=2
    ),
    "theories.context_race.item_mode": formula("context_race", "item_mode", value=1.0, items=2, contexts=3, size=2),
    "theories.context_race.output_overlap": formula("context_race", "output_overlap", contexts=3, size=2, shared=1),
    "theories.context_race.race_ranking": formula("context_race", "race_ranking", contexts=3),
    "theories.context_race.residual_strength": formula(
        "context_race", "residual_strength", times=[0.0, 1.0], singular_value=1.0, variance=1.0, overlap=0.5, start=0.1
    ),
    "theories.context_race.turning": formula("context_race", "turning", contexts=3, size=2),
    "theories.disjoint_pathways.effective_start": formula("disjoint_pathways", "effective_start", width=4, scale=0.1),
    "theories.disjoint_pathways.time_to_loss": formula(
        "disjoint_pathways", "time_to_loss", singular_value=1.0, target=1.0, start=0.01, fraction=0.1
    ),
    "theories.small_random_modes.effective_starts": lambda: (
        theories.small_random_modes.effective_starts,
        dict(modes=task().modes(), weights=setup().weights(0)),
    ),
    "theories.two_point.trajectory": formula("two_point", "trajectory", **start("ts", *START)),
    "theories.two_point.final_distance": formula("two_point", "final_distance", **start(*START)),
    "theories.two_point.rotating": formula("two_point", "rotating", **start("ts", *TURNING)),
    "theories.two_point.rotated_final_distance": formula("two_point", "rotated_final_distance", **start(*TURNING)),
    "theories.two_point.invariant": formula(
        "two_point", "invariant", **start("distance", "output", "input_gap", "tau_h", "tau_y")
    ),
    "theories.two_point.rich_distance": formula(
        "two_point", "rich_distance", **start("input_gap", "target_gap", "tau_h", "tau_y")
    ),
    "theories.two_point.regime": formula("two_point", "regime", **start(*NOW)),
    "theories.two_point.fixed_point_rates": formula("two_point", "fixed_point_rates", **start(*NOW)),
    "theories.two_point.lazy_limit": formula("two_point", "lazy_limit", **start("constant")),
    "theories.two_point.loss": lambda: (
        theories.two_point.loss,
        dict(ts=[0.0, 1.0], curves=theories.two_point.trajectory(**start("ts", *START)), target_gap=1.0),
    ),
    "theories.two_point.plateau": formula("two_point", "plateau", **start("output0", "alignment0", "target_gap")),
    "theories.two_point.depth_law": formula(
        "two_point", "depth_law", **start("input_gap", "target_gap", "layer", "depth")
    ),
    "theories.two_point.law_of_final_distance": formula(
        "two_point", "law_of_final_distance", **start("mean", "input_gap", "target_gap", "tau_h", "tau_y")
    ),
    "theories.two_point.law_of_final_distance().cdf": lambda: (law().cdf, dict(distance=1.0)),
    "theories.two_point.law_of_final_distance().quantile": lambda: (law().quantile, dict(share=0.5)),
}


def add(name, made):
    """A call that follows from a member itself, unless one is written above."""
    CALLS.setdefault(name, made)


def by_default(function):
    """The call of a task with its own defaults."""
    parameters = inspect.signature(function).parameters
    return call(function, **{name: p.default for name, p in parameters.items() if p.default not in (p.empty, None)})


def as_made(example):
    """The call that makes an example anew."""
    fields = [field.name for field in dataclasses.fields(example) if field.init]
    return call(type(example), **{name: getattr(example, name) for name in fields})


for _name in tasks.__all__:
    add(f"tasks.{_name}", by_default(getattr(tasks, _name)))
for _name in nets.__all__:
    _net = CONVOLUTIONAL if _name == "Convolutional" else getattr(nets, _name).example()
    add(f"nets.{_name}", as_made(_net))
    if not _net.has_paths:
        _samples = dict(weights=weights(_net), x=X)
        add(f"nets.{_name}.apply", call(_net.apply, **_samples))
        add(f"nets.{_name}.representation", call(_net.representation, **_samples))
        add(f"nets.{_name}.shapes", call(_net.shapes, d_in=2, d_out=2))
        add(f"nets.{_name}.at_time", call(_net.at_time, time=0.0))
    if _net.linear and not _net.has_paths:
        add(f"nets.{_name}.map", call(_net.map, weights=weights(_net)))
for _name in inits.__all__:
    add(f"inits.{_name}", as_made(getattr(inits, _name).example()[2]))
for _name in rules.__all__:
    add(f"rules.{_name}", as_made(getattr(rules, _name).example()))

for _name in theories.__all__:
    if _name not in ("Assumption", "Limit", "Reduction", "Theory"):
        for _method in ("assumptions", "constants", "remarks", "example_at"):
            CALLS[f"theories.{_name}.{_method}"] = functools.partial(of_theory, _name, _method)


@cache
def covering():
    return fs.covering(setup())


@cache
def digits():
    """Four files in the format of MNIST, two images each, in a folder that lives as long as the process."""
    import gzip
    import tempfile

    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "mnist").mkdir()
    for part in ("train", "t10k"):
        for name, size in ((f"{part}-images-idx3-ubyte.gz", 16 + 2 * 28 * 28), (f"{part}-labels-idx1-ubyte.gz", 8 + 2)):
            (Path(folder.name) / "mnist" / name).write_bytes(gzip.compress(bytes(size)))
    return folder


@functools.wraps(tasks.mnist)
def mnist(*args, **options):
    """`tasks.mnist` with these files in the place of the real ones, and no way to the network."""
    module = importlib.import_module("festina.tasks.mnist")
    files = (Path(digits().name) / "mnist").iterdir()
    sums = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in files}
    with (
        mock.patch.object(module, "SUMS", sums),
        mock.patch.object(module.urllib.request, "urlretrieve", side_effect=OSError("no network")),
        mock.patch.dict("os.environ", FESTINA_DATA=digits().name),
    ):
        return tasks.mnist(*args, **options)


# Words that name an argument, of one callable or of all, as well as its own name does.
EITHER: dict = {
    "observe": ("observable",),
    "blocks": ("block",),
    "labels": ("label",),
    "width": ("widths",),
    "pathways": ("pathway",),
    "pieces": ("schedule",),
    ("Comparison.__getitem__", "name"): ("observable",),
    ("Comparison.error", "name"): ("observable",),
    ("Comparison.plot", "names"): ("observable",),
    ("Covering.__getitem__", "index"): ("theory",),
    ("Experiment.named", "name"): ("experiment",),
    ("Experiment.with_parameters", "changes"): ("parameter",),
    ("theories.FrozenKernel.example_at", "value"): ("first",),  # the strength of the first layer
    ("Experiment.parameters", "quick"): ("preset",),
    ("Report.load", "folder"): ("report.json",),
    ("Trajectory.__getitem__", "name"): ("observable",),
    ("Trajectory.load", "path"): ("file",),
    ("gates.freeze", "found"): ("clusters",),  # None finds them
    ("nets.Gated", "edge_gates"): ("gate of edge",),
    ("nets.Gated", "inputs"): ("input node",),
    ("nets.Gated", "outputs"): ("output node",),
    ("probe.JaxProbe.step", "params"): ("layer", "outputs"),
    ("race", "candidates"): ("candidate",),
    ("theories.ContextRace.example_at", "value"): ("until",),  # which the value decides
    ("theories.SmallRandomModes.example_at", "value"): ("until",),
    ("run", "name"): ("experiment",),
    ("Trajectory.animate", "name"): ("observable",),
    ("Trajectory.array", "name"): ("observable",),
}

# Where NaN and infinity have a meaning that the documentation states.
UNDEFINED = {
    "Assumption": "what cannot be measured does not hold",
    "Assumption.at_most": "what cannot be measured does not hold",
    "Assumption.that": "what cannot be measured does not hold",
    "Claim": "what cannot be measured does not hold",
    "Claim.at_least": "what cannot be measured does not hold",
    "Claim.at_most": "what cannot be measured does not hold",
    "Claim.between": "what cannot be measured does not hold",
    "gates.learning_times": "infinite where a network never comes to a fraction",
    "theories.aligned_modes.mode": "depth may be infinite",
    "theories.aligned_modes.time_to": "infinite where a mode never comes to a strength",
    "theories.two_point.law_of_final_distance().quantile": "share 1 has no bound",
    "theories.two_point.regime": "|A|/B is infinite where targets are equal",
}

# Arguments for which such a value has a meaning.
ANYTHING = {
    ("Assumption", "measured"): "NaN is what could not be measured",
    ("Assumption.at_most", "measured"): "NaN is what could not be measured",
    ("Assumption.that", "measured"): "NaN is what could not be measured",
    ("Claim", "measured"): "NaN is what could not be measured",
    ("Claim.at_least", "measured"): "NaN is what could not be measured",
    ("Claim.at_most", "measured"): "NaN is what could not be measured",
    ("Claim.between", "measured"): "NaN is what could not be measured",
    ("Experiment", "module"): "any module can be read",
    ("nets.Gated", "edge_gates"): "a list of gates, of which each is None, or numbers over samples",
    ("nets.Gated.contexts", "width"): "widths of the layers of the common pathway, and of the others",
    ("probe.JaxProbe.step", "params"): "whatever the function takes",
    ("gates.freeze", "clusters"): "None lets the number be found",
    ("probe.layers", "inputs"): "only shapes are looked at",
    ("theories.aligned_modes.mode", "times"): "no times, no strengths",
    ("theories.context_race.item_mode", "value"): "no modes, no values",
}

# Values that are valid for an argument, and cost seconds to say so once more.
NONE, SEEDS = {"None"}, {"0", "2**62"}
VALID: dict[tuple[str, str], set[str]] = {
    ("fit", "free_gap"): {"True"},
    ("run", "quick"): {"True"},
    ("run", "preset"): NONE,
    ("run", "seed"): SEEDS,
    ("run", "out"): {"None", "text", "nowhere"},
    ("Report.save", "folder"): {"text", "nowhere"},
    ("race", "until"): {"None"},
    ("race", "check"): {"True"},
    ("race", "seeds"): {"True"},
    ("gates.find", "clusters"): NONE,
    ("gates.freeze", "found"): NONE,
    ("gates.freeze", "clusters"): NONE,
    ("theories.balanced_riccati.family", "times"): NONE,
    ("theories.balanced_riccati.family", "aligned"): {"True"},
} | {(name, "seed"): SEEDS for name in CALLS if name.startswith("theories.")}
