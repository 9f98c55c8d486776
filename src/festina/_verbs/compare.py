"""compare(): theory and training on one time grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped

from .._foundation import checks, html
from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def compare(theory: Trajectory, trained: Trajectory) -> Comparison:
    """Put theory and training of one setup side by side; `fs.gates.compare` measures twins against a network instead.

    Both are trajectories on one time grid, the same numbers. Two trained or two recorded ones may be given as well.
    """
    _need_trajectories(theory, trained)
    if not np.array_equal(theory.times, trained.times):
        raise BadInput(
            f"the times differ, {_difference(theory, trained)}",
            "two trajectories on one time grid",
            "solve and simulate the same Setup: it owns the grid, and its rule the clock; a probe has it with "
            "lr=setup.rule.lr, at=setup.rule.steps(setup.times)",
        )
    names = _shared(theory, trained)
    if not names:
        raise BadInput(
            f"theory has {', '.join(theory)} and training has {', '.join(trained)}",
            "at least one observable in both, with the same axes",
            "pass observe= with a shared name to simulate",
        )
    for name in names:
        shapes = [dict(zip(t.axes[name], np.shape(t[name]), strict=True)) for t in (theory, trained)]
        if any(shapes[0][axis] != shapes[1][axis] for axis in set(shapes[0]) & set(shapes[1])):
            raise BadInput(
                f"{name!r} has axes {shapes[0]} in theory and {shapes[1]} in training",
                "two trajectories of one task and net",
                "solve and simulate the same Setup",
            )
    if any("pair" in theory.axes[name] for name in names):
        _need_the_same_pairs(theory, trained)
    return Comparison(theory, trained)


def _need_the_same_pairs(theory: Trajectory, trained: Trajectory) -> None:
    """Refuse pairs of other samples, where both trajectories name theirs; a pair has no direction."""
    names = [[str(pair) for pair in t.coordinates.get("pair", ())] for t in (theory, trained)]
    samples = [[sorted(pair.split("-")) for pair in pairs] for pairs in names]
    if all(names) and samples[0] != samples[1]:
        raise BadInput(
            f"pairs {', '.join(names[0][:4])}, … in theory, and {', '.join(names[1][:4])}, … in training",
            "the same pairs of samples in the same order",
            "give both the same pairs=[…]",
        )


def _need_trajectories(theory: object, trained: object) -> None:
    for argument, value in (("theory", theory), ("trained", trained)):
        if not isinstance(value, Trajectory):
            raise BadInput(
                f"{argument} is {type(value).__name__}", "a Trajectory", "use festina.solve and festina.simulate"
            )


class Comparison:
    """Two trajectories on one time grid; `comparison["loss"]` is their difference, seed by seed."""

    def __init__(self, theory: Trajectory, trained: Trajectory):
        _need_trajectories(theory, trained)
        self.theory, self.trained = theory, trained
        self.times = theory.times
        self.names = _shared(theory, trained)

    def __getitem__(self, name: str) -> Shaped[np.ndarray, "*axes"]:
        """trained − theory; it has an axis of seeds if either of them has."""
        self._checked(name)
        return self.trained[name] - self._theory_like_trained(name)

    def error(self, name: str = "loss") -> float:
        """Largest difference over all times and seeds, relative to the largest value of the theory."""
        scale = np.abs(self.theory[self._checked(name)]).max()
        return float(np.abs(self[name]).max() / (scale if scale > 0 else 1.0))

    def errors(self) -> dict[str, float]:
        """`error` of every shared observable."""
        return {name: self.error(name) for name in self.names}

    def plot(self, names: object = None) -> Figure:
        """A figure: training thick and pale, theory thin, dark and dashed on top."""
        from .._figures.comparison import comparison_figure

        chosen = checks.observables(names, "names")
        return comparison_figure(self, None if chosen is None else [self._checked(name) for name in chosen])

    def _checked(self, name: object) -> str:
        return checks.choice(name, "observable of this comparison", self.names)

    def _repr_html_(self) -> str:
        rows = [(name, f"{error:.3g}") for name, error in self.errors().items()]
        caption = f"{self.theory.source} against {self.trained.source}, {len(self.times)} times"
        return html.table(rows, ("observable", "largest relative difference"), caption)

    def __repr__(self) -> str:
        lines = [f"{self.theory.source} against {self.trained.source}, {len(self.times)} times"]
        lines += [f"  {name:<16} largest relative difference {error:.3g}" for name, error in self.errors().items()]
        return "\n".join(lines)

    def _theory_like_trained(self, name: str) -> Shaped[np.ndarray, "*axes"]:
        """The theory, with an axis of seeds if training has one."""
        has_seed = "seed" in self.trained.axes[name] and "seed" not in self.theory.axes[name]
        return self.theory[name][None] if has_seed else self.theory[name]


def _shared(theory: Trajectory, trained: Trajectory) -> tuple[str, ...]:
    """The observables of both, with the same axes besides seeds."""

    def axes(trajectory: Trajectory, name: str) -> list[str]:
        return [axis for axis in trajectory.axes[name] if axis != "seed"]

    return tuple(name for name in trained if name in theory and axes(theory, name) == axes(trained, name))


def _difference(theory: Trajectory, trained: Trajectory) -> str:
    """Where two time grids differ, in words."""
    pair = f"{theory.source} and {trained.source}"
    if len(theory.times) != len(trained.times):
        return f"{pair} have {len(theory.times)} and {len(trained.times)} of them"
    first = int(np.argmax(theory.times != trained.times))
    return f"{pair} first at index {first}: {theory.times[first]:.9g} and {trained.times[first]:.9g}"
