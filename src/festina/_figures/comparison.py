"""Pictures of comparisons: one panel for each observable, theory on top of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from jaxtyping import Float

from .style import COLOURS, THICK, TIME, legend_of_kinds, new_figure, predicted, styled, trained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ABREAST = 4  # panels of a comparison
MANY = 8  # curves of pairs in a panel; more hide each other


class TrajectoryLike(Protocol):
    """The parts of a trajectory that a plot reads; a protocol, since this package may not import `Trajectory`."""

    @property
    def source(self) -> str: ...
    @property
    def axes(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def coordinates(self) -> Mapping[str, np.ndarray]: ...
    @property
    def provenance(self) -> Mapping[str, object]: ...
    def __getitem__(self, name: str, /) -> np.ndarray: ...


class ComparisonLike(Protocol):
    """The parts of a comparison that a plot reads."""

    @property
    def theory(self) -> TrajectoryLike: ...
    @property
    def trained(self) -> TrajectoryLike: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def times(self) -> np.ndarray: ...


def clock_of(trajectory: TrajectoryLike) -> str:
    """The label of a time axis; a probe, or a rule with a clock of its own, states it in the provenance."""
    facts = trajectory.provenance
    return str(facts.get("clock", facts.get("unit_of_time", TIME)))


def comparison_figure(comparison: ComparisonLike, names: Sequence[str] | str | None = None) -> Figure:
    """One panel per observable that is a curve or a few curves; of distances in layers, one colour for a layer."""
    wanted = (names,) if isinstance(names, str) else names
    drawable = [name for name in (wanted or comparison.names) if is_drawable(comparison.trained.axes[name])]
    with styled():
        figure, panels = panels_for(len(drawable))
        for panel, name in zip(panels, drawable, strict=True):
            theory, colours, left_out = curves_of(comparison.theory, name)
            training, _, _ = curves_of(comparison.trained, name)
            for lines, line_of in ((training, trained), (theory, predicted)):
                for curve, colour in enumerate(colours):
                    for line in lines[:, curve]:
                        line_of(panel, comparison.times, line, colour=COLOURS[colour % len(COLOURS)])
            title = f"{name}: {comparison.theory.source}{left_out}"
            panel.set(xlabel=clock_of(comparison.trained), ylabel=name, title=title)
            legend_of_kinds(panel, _kinds(comparison))
            _legend_of_layers(panel, comparison.trained, name)
    return figure


def panels_for(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, a few in each row."""
    rows = -(-max(count, 1) // ABREAST)
    figure, grid = new_figure(rows, -(-max(count, 1) // rows))
    for panel in grid.flat[count:]:
        panel.set_axis_off()
    return figure, list(grid.flat[:count])


def _kinds(comparison: ComparisonLike) -> tuple[str, str]:
    """The legend labels of the two line styles: training and theory, or the two sources if neither is a theory."""
    first, second = comparison.theory.source, comparison.trained.source
    if first != "simulate" and not first.startswith("probe."):
        return "training", "theory"
    return ("second", "first") if first == second else (second, first)


def is_drawable(axes: tuple[str, ...]) -> bool:
    """Whether an observable is one curve, a few, or those of layers and pairs."""
    rest = [axis for axis in axes if axis not in ("seed", "time")]
    return len(rest) <= 1 or rest == ["layer", "pair"]


def curves_of(trajectory: TrajectoryLike, name: str) -> tuple[Float[np.ndarray, "seed curve time"], list[int], str]:
    """The curves, the colour of each, and a note on pairs that are left out."""
    axes, values, left_out = trajectory.axes[name], np.asarray(trajectory[name], float), ""
    values = values if axes[0] == "seed" else values[None]
    layered = axes[-2:] == ("layer", "pair")
    few = max(1, MANY // values.shape[2]) if layered else MANY
    if axes[-1] == "pair" and values.shape[-1] > few:
        left_out = f", {few} of {values.shape[-1]} pairs"
        values = values[..., :few]
    layers, pairs = values.shape[2:] if layered else (values[0, 0].size, 1)
    colours = [layer for layer in range(layers) for _ in range(pairs)]
    return np.moveaxis(values.reshape(*values.shape[:2], -1), 1, -1), colours, left_out


def _legend_of_layers(panel: Axes, trajectory: TrajectoryLike, name: str) -> None:
    """Add a legend of the layers' colours, if there are several layers and few enough for a colour each."""
    from matplotlib.lines import Line2D

    count = np.shape(trajectory[name])[-2] if trajectory.axes[name][-2:] == ("layer", "pair") else 1
    if 1 < count <= len(COLOURS):
        labels = [str(layer) for layer in trajectory.coordinates.get("layer", range(count))]
        lines = [Line2D([], [], color=colour, lw=THICK) for colour in COLOURS[:count]]
        kinds = panel.get_legend()
        assert kinds is not None  # the first legend says which line is which
        panel.legend(lines, labels, title="layer", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        panel.add_artist(kinds)
