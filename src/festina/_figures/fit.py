"""Pictures of fits: what was measured, and the curve that was fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from .style import COLOURS, TITLE_SIZE, legend_of_kinds, new_figure, predicted, styled, trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def fit_figure(
    title: str,
    labels: Mapping[str, str],
    times: Float[np.ndarray, " time"],
    measured: Iterable[Float[np.ndarray, " time"]],
    fitted: Iterable[Float[np.ndarray, " time"]],
    r2: Iterable[float],
) -> Figure:
    """One panel for each curve {name: label}, as it was measured and as it was fitted; the verdict is in the title."""
    with styled():
        figure, panels = new_figure(1, len(labels))
        for panel, (name, label), colour, data, curve, share in zip(
            panels[0], labels.items(), COLOURS, measured, fitted, r2, strict=False
        ):
            trained(panel, times, data, colour=colour)
            predicted(panel, times, curve, colour=colour)
            quality = f"R² = {share:.4f}" if np.isfinite(share) else "does not change"
            panel.set(xlabel="recorded time", ylabel=label, title=f"{name}: {quality}")
        legend_of_kinds(panels[0, 0], ("measured", "fitted"))
        figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE_SIZE)
    return figure
