"""The two-point theory neglects rotation, which changes the final distance little at small weights and by a seventh at
weights of order 1.

H is the squared distance of two points in the hidden layer of a linear network. The theory neglects that the difference
of their hidden activities changes its direction. With one output the rotating network is solved exactly, too, which
gives the error of this neglect. From small weights the difference rotates by about 40° while it is still small:
learning begins at another time, but ends at nearly the same H. From large weights it hardly rotates. In between, at
weights of order 1, the median error of the final distance is largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray

from .._figures.overlay import colours_of, overlay
from .._figures.panels import key, panels
from .._figures.style import COLOURS, INK
from ..theories.two_point import final_distance, rotated_final_distance, rotating, trajectory
from ._kit.exact_integration import integrated
from ._kit.labelled import table
from ._kit.parameters import Positives, Seed, Several, checked
from .base import Claim, Result, at_most, between, ours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THEME, PLACE = "pairs", 1.2
REFERENCE = {"vanrossem2024": "appendix A, eqs. 7 and 10"}
QUICK = dict(draws=60, width=30)
CAPTION = """
Random linear networks with one hidden layer and one output; H is the squared distance of two points in the hidden
layer. **a** H from one draw of initial weights at each scale: the exact closed form, in which the difference of the
hidden activities rotates, and that of the two-point theory, which neglects rotation. All time constants and the squared
distances of inputs and targets are 1, and time is in units of the time constants. **b** Error if rotation is neglected:
relative error of the final H, and largest error of H over time relative to its largest change; medians over draws,
bands from 10 to 90 %. **c** Angle between the first and the last difference of hidden activities: a circle for each
draw, a line through the medians. Nothing is fitted.
"""
ALT = """
The error of the final distance rises with the scale of the weights by orders of magnitude and is largest near 1; that
of the time course is never small. The angle is near 40° at small weights and falls towards zero at large ones.
"""
ONES = dict(input_gap=1.0, target_gap=1.0, tau_h=1.0, tau_y=1.0)
UNTIL, RECORDS, INTEGRATED = 60.0, 241, 10  # times, and the number of draws that are integrated, too
ERRORS = {"unturned_final": "final H (b)", "unturned_course": "course of H (b)"}


@checked
def run(
    *,
    scales: Positives = (0.01, 0.1, 0.3, 1.0, 2.0),
    width: Several = 100,
    draws: Several = 400,
    seed: Seed = 0,
) -> Result:
    """`draws` networks of `width` units, whose weights have a standard deviation of each of `scales` over √width."""
    rng, times, few = np.random.default_rng(seed), np.linspace(0, UNTIL, RECORDS), min(draws, INTEGRATED)
    scale = np.array(scales)
    shape = len(scale), draws, width
    u, v = (scale[:, None, None] / np.sqrt(width) * rng.normal(size=shape) for _ in range(2))
    squares = [np.sum(a * b, axis=-1) for a, b in ((u, u), (v, v), (u, v))]
    start = dict(zip(("distance0", "decoder0", "along0"), squares, strict=True))
    output = squares[2]
    straight = dict(distance0=squares[0], output0=output**2, alignment0=output**2 - output)
    rotated = np.asarray(rotating(times, **start, **ONES).distance)
    without_rotation = np.asarray(trajectory(times, **straight, **ONES).distance)
    change = np.abs(rotated - rotated[..., :1]).max(axis=-1)

    def speed(_: float, flat: np.ndarray) -> np.ndarray:
        u, v = flat.reshape(2, -1, width)
        error = np.sum(u * v, axis=-1, keepdims=True) - 1
        return np.stack([-v * error, -u * error]).ravel() / 2

    flat = np.stack([u[:, :few].reshape(-1, width), v[:, :few].reshape(-1, width)])
    after = integrated(speed, flat, [0, UNTIL / 12, UNTIL], rtol=1e-10, atol=1e-13)[:, 0]
    cosine = np.sum(after[0] * after[-1], axis=-1) / np.prod(np.linalg.norm(after[[0, -1]], axis=-1), axis=0)
    integral = np.sum(after**2, axis=-1).reshape(3, len(scale), few)
    closed_form = np.moveaxis(rotated[:, :few, [0, RECORDS // 12, -1]], -1, 0)
    final = np.abs(final_distance(**straight, **ONES) / rotated_final_distance(**start, **ONES) - 1)
    angle = np.degrees(np.arccos(np.clip(cosine, -1, 1))).reshape(len(scale), few)
    data = {
        "turned": table(rotated[:, 0], "scale", "time", long_name="H"),
        "unturned": table(without_rotation[:, 0], "scale", "time"),
        "turned_gap": table(np.max(np.abs(closed_form - integral) / integral, axis=(0, 2)), "scale"),
        "unturned_final": table(final, "scale", "draw"),
        "unturned_course": table(np.abs(without_rotation - rotated).max(axis=-1) / change, "scale", "draw"),
        "angle": table(angle, "scale", "few"),
    }
    return Result(xarray.Dataset(data, coords={"scale": scale, "time": ("time", times)}))


def claims(result: Result) -> list[Claim]:
    data = result.data
    return [
        ours(
            "Relative error of the final distance if rotation is neglected: median over draws, largest over scales",
            between(data.unturned_final.median("draw").max(), 0.1, 0.2),
            headline=True,
            panel="b",
        ),
        ours(
            "Closed form with rotation, one output: largest relative gap of H from numerical integration",
            at_most(data.turned_gap.max(), 1e-7),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab;ac")
    colours = colours_of(data.scale.values)
    overlay(at["a"], data.turned, data.unturned, by="scale", colours=colours)
    errors = dict(zip(ERRORS, (INK, COLOURS[6]), strict=True))
    for name, colour in errors.items():
        low, middle, high = data[name].quantile([0.1, 0.5, 0.9], "draw").transpose("quantile", "scale")
        at["b"].loglog(data.scale, middle, "o-", color=colour, ms=4)
        at["b"].fill_between(data.scale, low, high, color=colour, alpha=0.2, lw=0)
    at["c"].semilogx(data.scale, data.angle, "o", color=INK, ms=4, mfc="none")
    at["c"].semilogx(data.scale, data.angle.median("few"), color=INK, lw=1)
    at["a"].set(title="One draw at each scale", xlabel="time (time constants)", xlim=(0, 30))
    at["a"].set_ylabel("squared distance in the hidden layer, H")
    at["b"].set(title="Error if rotation is neglected", xlabel="scale of the weights", ylabel="relative error")
    at["c"].set(
        title="Rotation of the hidden difference", xlabel="scale of the weights", ylabel="angle (°)", ylim=(0, 90)
    )
    names = {f"scale {scale}": colour for scale, colour in colours.items()}
    names |= {ERRORS[name]: colour for name, colour in errors.items()}
    key(sheet, names, kinds=("with rotation", "without rotation"))
    return sheet
