"""The printed solution of λ-balanced networks has a wrong last term and fails where the larger layer has to rotate.

The last term of eq. 15 of the slides, (e^(λ⊥t) − 1)/λ⊥, must be (e^(2λ⊥t) − 1)/(2λ⊥), where λ⊥ is λ/2 or −λ/2, for more
outputs or more inputs. The term does not occur if both are as many, and is right for λ = 0. For sgn λ = sgn(N_o − N_i)
the layer of larger weights has to rotate, and the printed map is wrong by as much as the task itself; for the other
sign of λ the error is small. With the right last term eqs. 13-15 are the library's solution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import xarray

from .. import BadInput, solve
from .._figures.overlay import overlay
from .._figures.panels import key, mark, panels
from .._figures.style import COLOURS, THIN
from ._kit import printed_formulas
from ._kit.balanced_starts import (
    ALL_SHAPES,
    BalancedNetworks,
    Shape,
    Shapes,
    contrasts,
    loss_of,
    named,
    possible,
    slow_balance,
)
from ._kit.labelled import labelled, table
from ._kit.parameters import AtLeast, Numbers, Positive, Seed, checked
from ._kit.training import simulate
from .base import Claim, Result, at_most, ours, paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

    from .. import Setup, Trajectory

THEME, PLACE = "regimes", 6
REFERENCE = {"saxe_slides": "eqs. 13-15"}
QUICK = dict(shapes=((4, 4, 4), (6, 3, 3)), lr=0.02, points=120)
CAPTION = """
**a** Loss of a linear network whose layer of larger weights has to rotate, in training and by the library's theory,
which is eqs. 13-15 of the slides with the last term of eq. 15 corrected. The curve of the printed solution ends where
its exponents exceed what float64 can hold. **b** Every network, with its numbers of inputs, hidden units and outputs
and the balance λ of its layers: largest entry of the difference between the map in training and that of the printed
solution (circles) or of the theory (crosses), over all times at which the solution is known, relative to the largest
singular value of the target.
"""
ALT = """
The printed loss leaves the loss in training soon and turns upwards, while the theory lies on it. In most rows the two
marks coincide at a small gap; where the larger layer has to rotate, the printed one is far to the right.
"""
PRINTED = COLOURS[1]


@checked
def run(
    *,
    shapes: Shapes = ALL_SHAPES,
    lams: Numbers = (-5.0, 0.0, 5.0),
    strongest: Positive = 2.0,
    weakest: Positive = 1.0,
    scale: Positive = 0.2,
    until: Positive = 12.0,
    lr: Positive = 0.01,
    points: Annotated[int, AtLeast(20)] = 300,
    seed: Seed = 0,
) -> Result:
    """Networks of all `shapes`, (inputs, hidden units, outputs), at all `lams`, trained at `lr`/4.

    Singular values of the target are spaced evenly from `strongest` to `weakest`; those of the initial map are `scale`.
    """
    if min(lams) >= 0 or max(lams) <= 0:
        raise BadInput(f"lams = {list(lams)}", "one below 0 and one above", "add the missing one")
    networks, (_, uneven) = BalancedNetworks(scale, (strongest, weakest), until, lr, points, seed), contrasts(shapes)
    runs = [(shape, lam) for shape in shapes for lam in lams if possible(shape, lam)]
    setups = {_name(*run): networks.setup(*run) for run in runs}
    theories = {name: solve(setup, "BalancedRiccati") for name, setup in setups.items()}
    maps = {_name(*run): _maps(setups[_name(*run)], theories[_name(*run)], run[1]) for run in runs}
    worst = _name(uneven, slow_balance(uneven, lams))
    data = xarray.Dataset(
        {
            "printed_gap": table([_gap(each.printed, each.training) for each in maps.values()], "network"),
            "theory_gap": table([_gap(each.theory, each.training) for each in maps.values()], "network"),
            "corrected_gap": table([_gap(each.corrected, each.theory) for each in maps.values()], "network"),
            "without_term": table([shape[0] == shape[2] or lam == 0 for shape, lam in runs], "network"),
            **{kind: loss_of(each, setups[worst]) for kind, each in maps[worst].data_vars.items()},
        },
        coords={"network": list(setups)},
        attrs={"worst": worst, "strongest": strongest},
    )
    return Result(data, {worst: setups[worst]}, {worst: theories[worst]})


def _name(shape: Shape, lam: float) -> str:
    return f"{named(shape)}, λ = " + f"{lam:g}".replace("-", "−")


def _maps(setup: Setup, theory: Trajectory, lam: float) -> Dataset:
    """The map in training, in theory, and by eqs. 13-15 as printed and corrected."""
    exact, trained = labelled(theory, "map"), labelled(simulate(setup, [0], "map"), "map", seed=0)
    printed, corrected = (
        exact.copy(data=printed_formulas.balanced_map(setup, setup.times, lam, mended=mended))
        for mended in (False, True)
    )
    return xarray.Dataset({"training": trained, "theory": exact, "printed": printed, "corrected": corrected})


def _gap(one: DataArray, other: DataArray) -> float:
    """Largest entry of the difference, where both are known."""
    return float(abs(one - other).max())


def claims(result: Result) -> list[Claim]:
    data = result.data
    printed, without = data.printed_gap / data.attrs["strongest"], data.without_term
    return [
        paper(
            "Eq. 15 as printed fits training for N_i ≠ N_o and λ ≠ 0: largest gap / map",
            at_most(printed[~without].max(), 0.02),
            fails="its last term (e^(λ⊥t) − 1)/λ⊥ must be (e^(2λ⊥t) − 1)/(2λ⊥)",
            headline=True,
            panel="b",
        ),
        paper(
            "Eq. 15 as printed fits training for N_i = N_o or λ = 0: largest gap of the map / largest singular value",
            at_most(printed[without].max(), 0.02),
            panel="b",
        ),
        ours(
            "Eqs. 13-15 with the right last term are the library's solution: largest gap",
            at_most(data.corrected_gap.max(), 1e-8),
        ),
    ]


def figure(result: Result) -> Figure:
    data = result.data
    sheet, at = panels("ab", row=max(3.2, 0.8 + 0.2 * data.sizes["network"]))
    overlay(at["a"], data.training, data.theory)
    at["a"].plot(data.time, data.printed, color=PRINTED, lw=THIN)
    known = data.time[data.printed.notnull().values]
    at["a"].set(xlim=(0, 1.6 * float(known[-1])), ylim=(0, 1.25 * float(data.training.max())))
    at["a"].set(title=f"The printed loss is wrong ({data.attrs['worst']})", ylabel="loss")
    gaps = {"printed": (data.printed_gap, PRINTED, "o"), "theory": (data.theory_gap, COLOURS[0], "x")}
    for gap, colour, shape in gaps.values():
        at["b"].plot(gap / data.attrs["strongest"], range(data.sizes["network"]), shape, color=colour, mfc="none")
    at["b"].set_yticks(range(data.sizes["network"]), list(data.network.values))
    at["b"].set(title="Difference from training", xscale="log", xlabel="largest gap of the map, relative")
    at["b"].invert_yaxis()
    key(
        sheet,
        {"printed solution": PRINTED},
        marks=[
            mark("printed solution (b)", "o", colour=PRINTED, mfc="none"),
            mark("theory (b)", "x", colour=COLOURS[0]),
        ],
    )
    return sheet
