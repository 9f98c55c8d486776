"""What can be recorded from a network while it learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from . import _objective
from ._errors import BadInput, UnknownName
from ._noun import noun
from ._setup import Setup


@noun
class View:
    """All that an observable may look at besides the weights."""

    net: Any
    seen: Any
    modes: Any  # Modes of a linear net, else None
    x: Any


@dataclass(frozen=True)
class Observable:
    """A named quantity of the weights; `lacks(setup)` says why a setup does not have it, or "".

    `reads_samples` says that it looks at `View.x`, which is left out otherwise.
    """

    axes: tuple[str, ...]
    read: Callable[[View, Any], Any]
    lacks: Callable[[Setup], str] = lambda setup: ""
    reads_samples: bool = False


def _gradient_norm(view: View, weights: Any) -> Any:
    _, slope = _objective.gradient(view.net, view.seen)(weights, None)
    return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slope)))


def _needs_linear(setup: Setup) -> str:
    return "" if setup.net.linear else f"{type(setup.net).__name__} is not linear, so it is no single matrix"


def _needs_samples(setup: Setup) -> str:
    return "" if setup.task.samples is not None else "the task has moments and no samples"


def _needs_hidden(setup: Setup) -> str:
    return _needs_samples(setup) or ("" if getattr(setup.net, "hidden", True) else "the net has no hidden layer")


OBSERVABLES: dict[str, Observable] = {
    "loss": Observable((), lambda view, w: _objective.loss(view.net, view.seen, w)),
    "map": Observable(("feature", "input"), lambda view, w: view.net.map(w), _needs_linear),
    "modes": Observable(
        ("mode",), lambda view, w: view.modes.strengths(view.net.map(w)), _needs_linear
    ),
    "outputs": Observable(("sample", "feature"), lambda view, w: view.net.apply(w, view.x), _needs_samples, True),
    "representation": Observable(
        ("sample", "hidden"), lambda view, w: view.net.representation(w, view.x), _needs_hidden, True
    ),
    "gradient_norm": Observable((), _gradient_norm),
}  # fmt: skip


def checked_names(observe: str | Iterable[str] | None, setup: Setup) -> tuple[str, ...]:
    """The observables asked for, refused with the reason where the setup lacks one."""
    if observe is None:
        return ("loss", "modes") if setup.net.linear else ("loss",)
    names = (observe,) if isinstance(observe, str) else tuple(observe)
    if not names:
        raise BadInput("observe is empty", "at least one observable", f"choose from: {', '.join(OBSERVABLES)}")
    for name in names:
        if name not in OBSERVABLES:
            raise UnknownName.among("observable", name, OBSERVABLES)
        if reason := OBSERVABLES[name].lacks(setup):
            has = [other for other, known in OBSERVABLES.items() if not known.lacks(setup)]
            raise BadInput(f"observe {name!r}: {reason}", f"one of: {', '.join(has)}", "drop it, or change net or task")
    return names
