"""One style for all figures: training thick and pale, theory thin, dark and dashed on top."""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# Okabe and Ito's colours, in an order that keeps neighbours apart; safe for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6F00", "#000000")
STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 150,
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "festina",
}
TIME = "time (τ)"
ABREAST = 4  # panels of a comparison
MANY = 8  # curves of pairs in a panel; more hide each other


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """The house style, for the figures made inside."""
    import matplotlib

    with matplotlib.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        yield


def new_figure(rows: int = 1, columns: int = 1, *, width: float = 4.2, height: float = 3.1) -> tuple[Any, Any]:
    """A figure and its axes, without pyplot and so without global state; axes are a 2D array."""
    from matplotlib.figure import Figure

    class Sheet(Figure):
        """A figure that notebooks show by themselves, since pyplot does not know of it."""

        def _repr_png_(self) -> bytes:
            return picture_bytes(self, "png")

    figure = Sheet(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def picture_bytes(figure: Any, form: str) -> bytes:
    """A figure as SVG or PNG, the same for the same figure."""
    picture = io.BytesIO()
    figure.savefig(picture, format=form, metadata={"Date": None} if form == "svg" else None)
    return picture.getvalue()


def trained(axes: Any, times: Any, values: Any, *, colour: str, label: str | None = None) -> None:
    """Training, one pale line per seed; `values` is (seed, time)."""
    for number, line in enumerate(np.atleast_2d(values)):
        axes.plot(times, line, color=_paler(colour), lw=4, solid_capstyle="round", label=label if number == 0 else None)


def predicted(axes: Any, times: Any, values: Any, *, colour: str, label: str | None = None) -> None:
    """Theory; `values` is (time,)."""
    axes.plot(times, values, color=_darker(colour), lw=1.3, ls=(0, (4, 2)), label=label, zorder=3)


def _darker(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.6 * part for part in to_rgb(colour))


def _paler(colour: str) -> tuple[float, ...]:
    # Mixed with white instead of transparent: many seeds on top of each other stay pale.
    from matplotlib.colors import to_rgb

    return tuple(0.45 * part + 0.55 for part in to_rgb(colour))


def legend_of_kinds(axes: Any, kinds: Sequence[str] = ("training", "theory"), **options: Any) -> None:
    """Say once which line is which."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color="0.75", lw=4), Line2D([], [], color="0.1", lw=1.3, ls=(0, (4, 2)))]
    axes.legend(lines, kinds, **options)


def clock_of(trajectory: Any) -> str:
    """What the times of a trajectory count."""
    by_steps = trajectory.source in ("probe.torch", "probe.jax") and "lr" not in trajectory.provenance
    own = trajectory.source in ("probe.arrays", "probe.curves")
    return "steps" if by_steps else "recorded time" if own else TIME


def comparison_figure(comparison: Any, names: Sequence[str] | str | None = None) -> Any:
    """One panel per observable that is a curve or a few curves; of distances in layers, one colour for a layer."""
    wanted = (names,) if isinstance(names, str) else names
    drawable = [name for name in (wanted or comparison.names) if _is_drawable(comparison.trained.axes[name])]
    rows = -(-max(len(drawable), 1) // ABREAST)
    with styled():
        figure, panels = new_figure(rows, -(-max(len(drawable), 1) // rows))
        for panel in panels.flat[len(drawable) :]:
            panel.set_axis_off()
        for panel, name in zip(panels.flat, drawable, strict=False):
            theory, colours, left_out = _curves(comparison.theory, name)
            seen, _, _ = _curves(comparison.trained, name)
            for lines, line_of in ((seen, trained), (theory, predicted)):
                for curve, colour in enumerate(colours):
                    for line in lines[:, curve]:
                        line_of(panel, comparison.times, line, colour=COLOURS[colour % len(COLOURS)])
            title = f"{name}: {comparison.theory.source}{left_out}"
            panel.set(xlabel=clock_of(comparison.trained), ylabel=name, title=title)
            legend_of_kinds(panel, _kinds(comparison))
            _legend_of_layers(panel, comparison.trained, name)
    return figure


def _kinds(comparison: Any) -> tuple[str, str]:
    """What the two kinds of lines are: training and theory, unless both were recorded."""
    first, second = comparison.theory.source, comparison.trained.source
    if first != "simulate" and not first.startswith("probe."):
        return "training", "theory"
    return ("second", "first") if first == second else (second, first)


def _is_drawable(axes: tuple[str, ...]) -> bool:
    rest = [axis for axis in axes if axis not in ("seed", "time")]
    return len(rest) <= 1 or rest == ["layer", "pair"]


def _curves(trajectory: Any, name: str) -> tuple[Any, list[int], str]:
    """(seed, curve, time), the colour of each curve, and a word on pairs that are left out."""
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


def _legend_of_layers(panel: Any, trajectory: Any, name: str) -> None:
    """Which colour is which layer, if there are several and few enough for a colour of their own."""
    from matplotlib.lines import Line2D

    count = np.shape(trajectory[name])[-2] if trajectory.axes[name][-2:] == ("layer", "pair") else 1
    if 1 < count <= len(COLOURS):
        labels = [str(layer) for layer in trajectory.coordinates.get("layer", range(count))]
        lines = [Line2D([], [], color=colour, lw=4) for colour in COLOURS[:count]]
        kinds = panel.get_legend()
        panel.legend(lines, labels, title="layer", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        panel.add_artist(kinds)


def fit_figure(fit: Any) -> Any:
    """H, P and w as they were measured and as they were fitted; the verdict above."""
    labels = {"H": "squared distance in the layer", "P": "squared distance in the output", "w": "w = P − dy·Δy*"}
    verdict = "nothing speaks against the theory" if fit.applies else f"the theory does not apply: {fit.applies}"
    what = f"TwoPoint fitted to {fit.named}" if fit.named else "TwoPoint fitted"
    title = f"{what}: η_h = {fit.rates.eta_h:.3g}, η_y = {fit.rates.eta_y:.3g}\n{textwrap.fill(verdict, 130)}"
    with styled():
        figure, panels = new_figure(1, 3)
        for panel, (letter, label), colour, seen, curve, r2 in zip(
            panels[0], labels.items(), COLOURS, fit.measured, fit.predicted, fit.r2, strict=False
        ):
            trained(panel, fit.times, seen, colour=colour)
            predicted(panel, fit.times, curve, colour=colour)
            said = f"R² = {r2:.4f}" if np.isfinite(r2) else "does not change"
            panel.set(xlabel="recorded time", ylabel=label, title=f"{letter}: {said}")
        legend_of_kinds(panels[0, 0], ("measured", "fitted"))
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5)
    return figure
