"""Pictures of one trajectory: a panel for each observable, still or moving."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from jaxtyping import Float

from .comparison import TrajectoryLike, clock_of, curves_of, is_drawable, panels_for
from .style import COLOURS, predicted, styled, trained

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FRAMES = 100  # of a film, at most
FPS = 20


class TimedTrajectory(TrajectoryLike, Protocol):
    """The parts of a trajectory that a picture reads."""

    @property
    def times(self) -> np.ndarray: ...


def trajectory_figure(trajectory: TimedTrajectory, names: Sequence[str]) -> Figure:
    """One panel per observable that is a curve or a few curves: training thick and pale, theory thin and dashed."""
    drawable = [name for name in names if is_drawable(trajectory.axes[name])]
    with styled():
        figure, panels = panels_for(len(drawable))
        for panel, name in zip(panels, drawable, strict=True):
            _draw(panel, trajectory, name, len(trajectory.times))
    return figure


def _draw(panel: Axes, trajectory: TimedTrajectory, name: str, until: int) -> None:
    lines, colours, left_out = curves_of(trajectory, name)
    draw = trained if trajectory.source == "simulate" or trajectory.source.startswith("probe.") else predicted
    for curve, colour in enumerate(colours):
        for line in lines[:, curve]:
            draw(panel, trajectory.times[:until], line[:until], colour=COLOURS[colour % len(COLOURS)])
    panel.set(xlabel=clock_of(trajectory), ylabel=name, title=f"{name}: {trajectory.source}{left_out}")


def curve_film(trajectory: TimedTrajectory, name: str) -> FuncAnimation:
    """An observable that grows from left to right."""
    from matplotlib.animation import FuncAnimation

    with styled():
        figure, (panel,) = panels_for(1)
        _draw(panel, trajectory, name, len(trajectory.times))
        limits: dict[str, Any] = dict(xlim=panel.get_xlim(), ylim=panel.get_ylim())

        def show(frame: int) -> list[Any]:
            panel.clear()
            _draw(panel, trajectory, name, frame + 1)
            panel.set(**limits)
            return list(panel.lines)

        return FuncAnimation(figure, show, frames=frames_of(len(trajectory.times)), interval=1000 / FPS)


def points_film(
    points: Float[np.ndarray, "time sample 2"], names: Sequence[str], times: Float[np.ndarray, " time"], clock: str
) -> FuncAnimation:
    """Samples that move in a plane, each with its name and the path behind it."""
    from matplotlib.animation import FuncAnimation

    reach = 1.1 * float(np.abs(points).max()) or 1.0
    with styled():
        figure, (panel,) = panels_for(1)

        def show(frame: int) -> list[Any]:
            panel.clear()
            for sample, name in enumerate(names):
                colour = COLOURS[sample % len(COLOURS)]
                panel.plot(*points[: frame + 1, sample].T, color=colour, lw=1.2)
                panel.plot(*points[frame, sample], "o", color=colour)
                panel.annotate(name, points[frame, sample], (4, 4), textcoords="offset points")
            title = f"{clock} = {times[frame]:.3g}"
            panel.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=title)
            panel.set(xlabel="first dimension", ylabel="second dimension")
            return list(panel.lines)

        return FuncAnimation(figure, show, frames=frames_of(len(times)), interval=1000 / FPS)


def frames_of(times: int) -> list[int]:
    """The numbers of the times that a film shows: all, or FRAMES of them, evenly spaced."""
    return sorted({int(k) for k in np.linspace(0, times - 1, min(times, FRAMES))})


def save_film(film: FuncAnimation, path: Path) -> None:
    """Write a film as GIF or, where FFmpeg is installed, MP4."""
    film.save(path, writer="pillow" if path.suffix == ".gif" else "ffmpeg", fps=FPS)
