"""What the entries of each axis of a trajectory are called."""

from __future__ import annotations

from .._setup.setup import Setup
from . import OBSERVABLES


def axis_names(setup: Setup) -> dict[str, list[str]]:
    """The names that a lifted setup has for the entries of axes."""
    task = setup.single_task
    names = {"input": task.inputs, "feature": task.features, "sample": task.items}
    # A matrix between an axis and itself has two names for it.
    names |= {f"{axis}_": entries for axis, entries in names.items()}
    for observable in OBSERVABLES.values():
        names |= {axis: entries(setup) for axis, entries in observable.entries.items()}
    return {axis: list(entries) for axis, entries in names.items() if entries is not None}
