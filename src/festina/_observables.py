"""What can be recorded from a network while it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks, _kernel, _objective
from ._balance import imbalances
from ._errors import BadInput, UnknownName
from ._linalg import level_members
from ._noun import noun
from ._paths import product
from ._points import Points, points
from ._race import race
from ._saddles import distances, saddles
from ._setup import Setup, TaskSequence
from .nets.gated import Gated


@noun
class View:
    """All that an observable may look at besides the weights; what nobody asks for is None."""

    net: Any
    seen: Any
    x: Any = None
    points: Any = None  # inputs that are compared in pairs
    pairs: Any = None  # (pair, 2), rows of points
    gaps: Any = None  # Δy* of every pair, (pair, feature)
    middles: Any = None  # mean target of every pair, (pair, feature)
    cov_x: Any = None
    modes: Any = None  # of the task, fitted to the start
    start: Any = None  # the weights before training
    levels: Any = None  # (level, mode): shares of the modes in each level of equal singular values
    saddles: Any = None
    path_bases: Any = None  # of the modes of every path: U, V
    tasks: Any = None  # the net, and what the loss is computed from, for every task of a sequence


@dataclass(frozen=True)
class Observable:
    """A named quantity of the weights; `lacks(setup)` says why a setup does not have it, or "".

    `needs` names the parts of the `View` that it looks at. `of_map` reads it off the map of a linear net, so that
    every theory of the map predicts it; one that does not change if hidden units are rotated (`turns`) is predicted
    by every theory of the layers. One that is `narrow` is the same for a linear net whose wide hidden layers have been
    narrowed (`_narrow`).
    """

    axes: tuple[str, ...]
    read: Callable[[View, Any], Any]
    lacks: Callable[[Setup], str] = lambda setup: ""
    needs: tuple[str, ...] = ()
    of_map: Callable[[View, Any], Any] | None = None
    turns: bool = False
    narrow: bool = False
    beside: tuple[str, ...] = ()  # observables without which it cannot be read


def _of_map(axes, of_map, lacks, needs) -> Observable:
    return Observable(axes, lambda view, w: of_map(view, view.net.map(w)), lacks, needs, of_map, narrow=True)


def _norm(tree: Any) -> Any:
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))


def _gradient_norm(view: View, weights: Any) -> Any:
    return _norm(_objective.gradient(view.net, view.seen)(weights, None)[1])


def _kernel_distance(view: View, weights: Any) -> Any:
    return _kernel.distance(_kernel.tangent(view.start), _kernel.tangent(weights), view.cov_x)


def _similarity(view: View, weights: Any) -> Any:
    hidden = view.net.representation(weights, view.x)
    return hidden @ hidden.T


def _alignment(view: View, weights: Any) -> Any:
    """The larger cosine of each representation with the task's own, Σ s vvᵀ or Σ s² vvᵀ."""
    sides = ((weights[0].T @ weights[0], view.modes.right), (weights[-1] @ weights[-1].T, view.modes.left))
    return jnp.stack([_best_cosine(gram, vectors, view.modes.singular_values) for gram, vectors in sides])


def _best_cosine(gram: Any, vectors: Any, values: Any) -> Any:
    shares = jnp.einsum("im,ij,jm->m", vectors, gram, vectors)
    size = jnp.linalg.norm(gram)
    size = jnp.where(size > 0, size, 1.0)
    return jnp.max(jnp.stack([shares @ power / (size * jnp.linalg.norm(power)) for power in (values, values**2)]))


def _saddle_distance(view: View, matrix: Any) -> Any:
    modes, members = view.saddles
    return distances(modes, members, matrix)


def _differences(view: View, values: Any) -> Any:
    """v₂ − v₁ of every pair; values (point, unit)."""
    return values[view.pairs[:, 1]] - values[view.pairs[:, 0]]


def _distances(view: View, weights: Any) -> Any:
    layers = view.net.representations(weights, view.points)
    return jnp.stack([jnp.sum(_differences(view, h) ** 2, axis=1) for h in layers])


def _of_pairs(read: Callable[[View, Any], Any]) -> Observable:
    """What is read off the outputs of the points that are compared."""
    return Observable(
        ("pair",),
        lambda view, w: read(view, view.net.apply(w, view.points)),
        _needs_pairs,
        ("points",),
        lambda view, m: read(view, view.points @ m.T),
        narrow=True,
    )


def _output_alignment(view: View, outputs: Any) -> Any:
    """w = P − dy·Δy*, without the difference of large numbers that it is near the end."""
    apart = _differences(view, outputs)
    return jnp.sum(apart * (apart - view.gaps), axis=1)


def _mean_gap(view: View, outputs: Any) -> Any:
    return jnp.sum(((outputs[view.pairs[:, 0]] + outputs[view.pairs[:, 1]]) / 2 - view.middles) ** 2, axis=1)


def _path_norms(view: View, weights: Any) -> Any:
    """The Frobenius norm of the product of layers along every path."""
    return jnp.stack([_norm(product(weights, path.edges)) for path in view.net.plan.graph.paths()])


def _unit_sizes(view: View, weights: Any) -> Any:
    """|incoming| |outgoing| of every hidden unit, its bias counted among the incoming weights."""
    layers = [layer if isinstance(layer, tuple) else (layer,) for layer in weights]
    incoming = [sum(jnp.sum(part.reshape(len(part), -1) ** 2, axis=1) for part in layer) for layer in layers[:-1]]
    outgoing = [jnp.sum(layer[0] ** 2, axis=0) for layer in layers[1:]]
    return jnp.concatenate([jnp.sqrt(i * o) for i, o in zip(incoming, outgoing, strict=True)])


def _gates(view: View, weights: Any) -> Any:
    return jnp.packbits(view.net.gates(weights, view.x).T, axis=-1)


def _path_modes(view: View, weights: Any) -> Any:
    """u_kᵀ W_p v_k of every mode of every path's own moments; 0 behind its last mode."""
    bases = zip(*view.path_bases, view.net.plan.graph.paths(), strict=True)
    return jnp.stack([jnp.einsum("om,oi,im->m", u, product(weights, path.edges), v) for u, v, path in bases])


def _task_losses(view: View, weights: Any) -> Any:
    return jnp.stack([_objective.loss(net, seen, weights) for net, seen in view.tasks])


def _needs_linear(setup: Setup) -> str:
    return "" if setup.net.linear else f"{type(setup.net).__name__} is not linear, so it is no single matrix"


def _needs_map(setup: Setup) -> str:
    """A linear net, or one that is linear in gated inputs, as long as these stay the same."""
    if not isinstance(setup.net, Gated):
        return _needs_linear(setup)
    starts = setup.task.starts[1:] if isinstance(setup.task, TaskSequence) else ()
    changes = any(time <= setup.times[-1] for time in (*starts, *setup.net.switches))
    return "the map of a gated net is one of gated inputs, and these change during the run" if changes else ""


def _needs_chain(setup: Setup) -> str:
    """A linear chain with a hidden layer."""
    return _needs_linear(setup) or ("" if getattr(setup.net, "hidden", ()) else "the net has no hidden layer")


def _needs_samples(setup: Setup) -> str:
    return "" if setup.task.samples is not None else "the task has moments and no samples"


def _needs_hidden(setup: Setup) -> str:
    return _needs_samples(setup) or ("" if getattr(setup.net, "hidden", True) else "the net has no hidden layer")


def _needs_pairs(setup: Setup) -> str:
    """Samples to compare, the same ones throughout."""
    if isinstance(setup.net, Gated):
        return "a gated net is a graph of nodes, and has no layers to compare points in"
    return "the points of a sequence of tasks change" if isinstance(setup.task, TaskSequence) else _needs_samples(setup)


def _needs_layers(setup: Setup) -> str:
    """Samples to compare, and hidden layers in which to do so."""
    return _needs_pairs(setup) or _needs_hidden(setup)


def _needs_matrices(setup: Setup) -> str:
    if isinstance(setup.net, Gated) or getattr(setup.net, "skip", False):
        return f"a {'gated net' if isinstance(setup.net, Gated) else 'net with skips'} is no chain of layers"
    return "" if len(getattr(setup.net, "hidden", ())) else "the net is no chain of two or more layers"


def _needs_switches(setup: Setup) -> str:
    """Samples, and units that do nothing but switch between on and off."""
    if getattr(setup.net, "off_slope", None) is None:
        activation = getattr(setup.net, "activation", None)
        if getattr(setup.net, "skip", False) or setup.net.noisy:
            return "of a net with skips or dropout, gates do not say all: it is no chain of gated layers"
        kind = type(setup.net).__name__ if activation is None else f"{type(setup.net).__name__} with {activation}"
        return f"the units of {kind} do not switch between on and off, as those of relu and leaky_relu do"
    return _needs_hidden(setup)


def _needs_saddles(setup: Setup) -> str:
    if isinstance(setup.task, TaskSequence):
        return "a sequence of tasks has no one set of saddles"
    if reason := _needs_linear(setup):
        return reason
    return "" if len(setup.net.hidden) == 1 else "the saddles are known for one hidden layer"


def _needs_paths(setup: Setup) -> str:
    return "" if isinstance(setup.net, Gated) else f"{type(setup.net).__name__} has no gated paths"


def _needs_sequence(setup: Setup) -> str:
    return "" if isinstance(setup.task, TaskSequence) else "the task is not a sequence of tasks"


OBSERVABLES: dict[str, Observable] = {
    "loss": Observable((), lambda view, w: _objective.loss(view.net, view.seen, w), narrow=True),
    "map": Observable(("feature", "input"), lambda view, w: view.net.map(w), _needs_map, narrow=True),
    "modes": Observable(
        ("mode",), lambda view, w: view.modes.strengths(view.net.map(w)), _needs_linear, ("modes",), narrow=True
    ),
    "levels": _of_map(
        ("level",), lambda view, m: view.levels @ view.modes.strengths(m), _needs_linear, ("modes", "levels")
    ),
    "outputs": Observable(
        ("sample", "feature"), lambda view, w: view.net.apply(w, view.x), _needs_samples, ("x",), narrow=True
    ),
    "representation": Observable(
        ("sample", "hidden"), lambda view, w: view.net.representation(w, view.x), _needs_hidden, ("x",)
    ),
    "similarity": Observable(("sample", "sample_"), _similarity, _needs_hidden, ("x",), turns=True, narrow=True),
    "input_representation": Observable(("input", "input_"), lambda view, w: w[0].T @ w[0], _needs_chain),
    "output_representation": Observable(("feature", "feature_"), lambda view, w: w[-1] @ w[-1].T, _needs_chain),
    "alignment": Observable(("side",), _alignment, _needs_chain, ("modes",), turns=True),
    "kernel_distance": Observable((), _kernel_distance, _needs_linear, ("start", "cov_x")),
    "parameter_distance": Observable(
        (), lambda view, w: _norm(jax.tree.map(jnp.subtract, w, view.start)), needs=("start",)
    ),
    "balance": Observable(("layer",), lambda view, w: imbalances(w)[0], _needs_matrices, turns=True),
    "balance_residual": Observable(("layer",), lambda view, w: imbalances(w)[1], _needs_matrices, turns=True),
    "balance_drift": Observable(
        ("layer",), lambda view, w: imbalances(w, view.start)[1], _needs_matrices, ("start",)
    ),
    "gradient_norm": Observable((), _gradient_norm, turns=True, narrow=True),
    "saddle_distance": _of_map(("saddle",), _saddle_distance, _needs_saddles, ("saddles",)),
    "unit_size": Observable(("unit",), _unit_sizes, _needs_matrices),
    "gates": Observable(("unit", "byte"), _gates, _needs_switches, ("x",), beside=("loss", "unit_size")),
    "distance": Observable(("layer", "pair"), _distances, _needs_layers, ("points",), turns=True, narrow=True),
    "output_distance": _of_pairs(lambda view, outputs: jnp.sum(_differences(view, outputs) ** 2, axis=1)),
    "output_alignment": _of_pairs(_output_alignment),
    "mean_gap": _of_pairs(_mean_gap),
    "path_norm": Observable(("path",), _path_norms, _needs_paths, turns=True, narrow=True),
    "path_modes": Observable(("path", "mode"), _path_modes, _needs_paths, ("path_bases",), turns=True, narrow=True),
    "task_loss": Observable(("task",), _task_losses, _needs_sequence, ("tasks",), narrow=True),
}  # fmt: skip


def known_names(observe: Any, known: Iterable[str], kind: str) -> tuple[str, ...]:
    """The names asked for, one or several, each of which must be known."""
    names = _checks.observables(observe)
    if not names:
        raise BadInput("observe is empty", "at least one observable", f"choose from: {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UnknownName.among(kind, name, known)
    return names


def checked_names(observe: Any, setup: Setup) -> tuple[str, ...]:
    """The observables asked for, refused with the reason where the setup lacks one."""
    if observe is None:
        return ("loss", "modes") if setup.net.linear else ("loss",)
    names = known_names(observe, OBSERVABLES, "observable")
    for name in names:
        if reason := OBSERVABLES[name].lacks(setup):
            has = [other for other, known in OBSERVABLES.items() if not known.lacks(setup)]
            raise BadInput(f"observe {name!r}: {reason}", f"one of: {', '.join(has)}", "drop it, or change net or task")
    return tuple(dict.fromkeys((*names, *(other for name in names for other in OBSERVABLES[name].beside))))


def compared(setup: Setup, names: Iterable[str], pairs: Any) -> Points | None:
    """The points that the named observables compare, if any do."""
    if not any("points" in OBSERVABLES[name].needs for name in names):
        if pairs is not None:
            about = [name for name, known in OBSERVABLES.items() if "points" in known.needs]
            raise BadInput("pairs, and no observable of pairs", f"one of: {', '.join(about)}", "name it in observe=")
        return None
    return points(setup.task.x, setup.task.y, pairs)


def view_of(setup: Setup, names: Iterable[str], chosen: Points | None = None) -> View:
    """What the named observables look at, all but what belongs to a seed: its modes and its start.

    `chosen` are the points that are compared.
    """
    bound = setup.bound()
    task = bound.task
    needs = {need for name in names for need in OBSERVABLES[name].needs}
    known = saddles(task, setup.net) if "saddles" in needs else None
    found = race(setup.net, setup.task) if "path_bases" in needs else None
    return View(
        bound.net,
        _objective.evidence(bound.net, task, full_batch=setup.rule.full_batch),
        x=task.x if "x" in needs else None,
        cov_x=task.cov_x if "cov_x" in needs else None,
        levels=level_members(np.asarray(task.modes().singular_values)) if "levels" in needs else None,
        saddles=None if known is None else (known.modes, np.asarray(known.members, float)),
        path_bases=None if found is None else (found.left, found.right),
        **({} if chosen is None else _view_of_points(chosen)),
    )


def _view_of_points(chosen: Points) -> dict[str, Any]:
    rows, numbers = np.unique(chosen.pairs, return_inverse=True)
    first, second = (np.asarray(chosen.targets)[chosen.pairs[:, side]] for side in (0, 1))
    return {
        "points": np.asarray(chosen.inputs)[rows],
        "pairs": numbers.reshape(chosen.pairs.shape),
        "gaps": second - first,
        "middles": (first + second) / 2,
    }
