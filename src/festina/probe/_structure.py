"""Which points of a data set a layer will merge and which it will separate, for all pairs at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist, squareform

from .._formulas.two_points import ends
from .._formulas.two_points.pair import Pair, Start
from .._foundation.arrays import Number, Numbers
from .._foundation.checks import LARGEST, real_array, whole
from .._foundation.errors import BadInput
from .._foundation.precision import in_double
from .._foundation.program_memory import compiled

if TYPE_CHECKING:
    import xarray

Rows: TypeAlias = Float[np.ndarray, "sample unit"]
OfPairs: TypeAlias = Float[np.ndarray, " pair"]  # of samples i < j
CLOSE = 1e-6  # of the squared distance: outputs in float32 miss their targets by this much


def structure(
    inputs: ArrayLike,
    targets: ArrayLike,
    hidden: ArrayLike | Mapping[Hashable, ArrayLike],
    outputs: ArrayLike,
    *,
    tau_h: ArrayLike | None = None,
    tau_y: ArrayLike | None = None,
    kappa: ArrayLike | None = None,
    rates: object = None,
    depth: int | None = None,
) -> xarray.Dataset:
    """What the two-point theory predicts for every pair of points by itself, from the present state of a network.

    Gives an `xarray.Dataset` with the axes (layer, sample, sample_), of squared distances:

    - `distance` now, and `final_distance`, that of the closed form [vanrossem2024, eq. 10];
    - `verdict`, the sign of their difference: +1 the pair separates, −1 it merges, 0 it stays, or is not known;
      except at the saddle it is the sign of Y − P, as H² − AH − B² = κX(P − Y), whatever the layer and the rates,
      and 0 where |Y − P| is at most 10⁻⁶ of the larger of the two, which is a difference of rounding;
    - `regime`, |A|/B: well below 1 the task decides the final distance, well above 1 the initialisation does;
    - `depth_law`, X^(1−l/L) Y^(l/L), the final distance in a balanced chain, if `depth` is given.

    Args:
        inputs: (sample, …).
        targets: (sample, feature).
        hidden: {layer: (sample, …)}, or an array (sample, …) of one layer.
        outputs: (sample, feature), with the same weights.
        tau_h: the time constant of the layer; a number, or one for every layer. Only τ_y/τ_h matters.
        tau_y: that of the outputs, likewise.
        kappa: τ_y/τ_h = η_h/η_y, instead of both.
        rates: a fit, instead of these; of a scan give its `kappa`, reduced to one number for every layer.
        depth: L, the number of weight matrices. All L − 1 hidden layers must then be given in order, or named by
            their numbers, from 0.

    Distances are sums of squared differences, without cancellation, and no array is larger than the answer. What has
    no prediction is NaN, with verdict 0, and counted in `attrs["note"]`: identical inputs with different targets,
    and points that the layer does not tell apart although the inputs differ. Identical inputs with equal targets
    stay at 0, as the diagonal does.
    """
    import xarray

    layers = _layers(hidden)
    x, y, f = _rows(inputs, "inputs"), _rows(targets, "targets"), _rows(outputs, "outputs")
    if len(x) < 2:
        raise BadInput(f"{len(x)} input", "at least two, to form a pair", "give the points as rows")
    shown = {f"hidden[{name!r}]": values for name, values in layers.items()}
    for name, values in {"targets": y, "outputs": f, **shown}.items():
        if len(values) != len(x):
            raise BadInput(f"{len(values)} rows of {name}, and {len(x)} inputs", "one row per input", "match them")
    if y.shape != f.shape:
        raise BadInput(
            f"targets of shape {y.shape}, and outputs of shape {f.shape}",
            "one target for every output",
            "give targets in the shape of the outputs",
        )
    ratios = _ratios(tau_h, tau_y, kappa, rates, len(layers))
    places = None if depth is None else _places(list(layers), depth)
    X, Y, P = _gaps(x), _gaps(y), _gaps(f)
    # w = |dy|² − dy·Δy*, and 2dy·Δy* = |dy|² + |Δy*|² − |dy − Δy*|².
    w = (P + _gaps(f - y) - Y) / 2
    task_verdict = np.where(np.abs(Y - P) <= CLOSE * np.maximum(Y, P), 0.0, np.sign(Y - P))
    with ThreadPoolExecutor() as pool:
        distances = list(pool.map(_gaps, layers.values()))
    shape = len(layers), len(x), len(x)
    kinds = {"distance": float, "final_distance": float, "verdict": np.int8, "regime": float}
    kinds |= {} if places is None else {"depth_law": float}
    values = {name: np.zeros(shape, kind) for name, kind in kinds.items()}
    same, conflicting, blind = (X == 0) & (Y == 0), (X == 0) & (Y > 0), 0
    for i, (H, ratio) in enumerate(zip(distances, ratios, strict=True)):
        lost = conflicting | ((H == 0) & (X > 0))
        blind += int(np.sum((H == 0) & (X > 0)))
        safe = ~(lost | same) & (H > 0)
        final, regime = _predicted([np.where(safe, number, 1.0) for number in (H, P, w, X, Y)], ratio)
        known = {
            "distance": H,
            "final_distance": np.where(safe, final, np.where(same, H, np.nan)),
            "regime": np.where(safe, regime, np.nan),
            # Nothing is left of a distance at the saddle, whatever the sign there, and where equal targets merge.
            "verdict": np.where(safe, np.where(final > 0, task_verdict, -1), 0).astype(np.int8),
        }
        if places is not None:
            known["depth_law"] = np.asarray(_depth_law(X, Y, *places[i]))
        for name, value in known.items():
            values[name][i] = squareform(value, checks=False)
    notes = []
    if conflicting.any():
        first, second = (int(ends[np.argmax(conflicting)]) for ends in np.triu_indices(len(x), 1))
        notes.append(
            f"{int(conflicting.sum())} pairs of identical inputs with different targets, the first {first} and {second}"
        )
    if blind:
        notes.append(f"{blind} pairs that a layer does not tell apart although their inputs differ")
    dims = ("layer", "sample", "sample_")
    return xarray.Dataset(
        {name: (dims, value) for name, value in values.items()},
        coords={"layer": list(layers), "kappa": ("layer", ratios)},
        attrs={"theory": "TwoPoint", **({"note": "; ".join(notes) + ": NaN"} if notes else {})},
    )


def _layers(hidden: object) -> dict[Hashable, Rows]:
    if isinstance(hidden, Mapping):
        if not hidden:
            raise BadInput("hidden = {}", "at least one layer", 'give for example hidden={"hidden": activities}')
        return {name: _rows(values, f"hidden[{name!r}]") for name, values in hidden.items()}
    return {"hidden": _rows(hidden, "hidden")}


def _rows(values: object, argument: str) -> Rows:
    """Numbers in float64, flattened for each sample."""
    array = real_array(values, argument)
    if array.ndim == 0 or 0 in array.shape:
        raise BadInput(f"{argument} = {array}", "an array (sample, …)", "give one row for every point")
    return array.reshape(len(array), -1)


def _gaps(rows: Rows) -> OfPairs:
    """|v_j − v_i|² of all pairs i < j."""
    return pdist(rows, "sqeuclidean")


def _ratios(tau_h: object, tau_y: object, kappa: object, rates: Any, count: int) -> Float[np.ndarray, " layer"]:
    """κ of every layer."""
    ways = {"tau_h and tau_y": (tau_h, tau_y), "kappa": (kappa,), "rates": (rates,)}
    given = [way for way, values in ways.items() if any(value is not None for value in values)]
    if len(given) != 1 or any(value is None for value in ways[given[0]]):
        arguments = {"tau_h": tau_h, "tau_y": tau_y, "kappa": kappa, "rates": rates}
        raise BadInput(
            " and ".join(name for name, value in arguments.items() if value is not None)
            or "neither tau_h and tau_y, nor kappa, nor rates",
            "tau_h and tau_y, or kappa, or rates",
            "give kappa=1.0 for equal rates, or rates=festina.fit(…)",
        )
    if rates is not None:
        if not hasattr(rates, "kappa"):
            raise BadInput(f"rates is {type(rates).__name__}", "a fit", 'give rates=festina.fit("TwoPoint", …)')
        if hasattr(rates.kappa, "dims"):
            others = [str(axis) for axis in rates.kappa.dims if axis != "layer"]
            raise BadInput(
                f"rates is {type(rates).__name__} with kappa ({', '.join(map(str, rates.kappa.dims))}), as of a scan",
                "one kappa, or one for every layer",
                f"give kappa=rates.kappa{f'.median({others})' if others else ''}.values instead of rates",
            )
        named = {"rates.kappa": rates.kappa}
    else:
        named = {"kappa": kappa} if kappa is not None else {"tau_h": tau_h, "tau_y": tau_y}
    numbers = {name: real_array(value, name, ndim=(0, 1)) for name, value in named.items()}
    for name, number in numbers.items():
        if np.any(strange := (number < 1 / LARGEST) | (number > LARGEST)):
            needed = f"{name} > 0, and at most {LARGEST:g}"
            raise BadInput(f"{name} = {number[strange].flat[0]:g}", needed, f"give a positive {name}")
        if number.ndim and len(number) != count:
            raise BadInput(
                f"{len(number)} values of {name}, and {count} layer(s)", "one number, or one per layer", "match them"
            )
    first, *more = numbers.values()
    return np.broadcast_to(more[0] / first if more else first, count).astype(float)


def _places(names: Sequence[Hashable], depth: object) -> list[tuple[int, int]]:
    """(number of the layer, depth) of every layer."""
    depth = whole(depth, "depth", least=2)
    numbers = [int(name) for name in names if isinstance(name, (int, np.integer))]
    numbered = len(numbers) == len(names)
    if numbered and all(0 <= number <= depth - 2 for number in numbers):
        return [(number, depth) for number in numbers]
    if numbered or len(names) != depth - 1:
        raise BadInput(
            f"depth = {depth} and the hidden layer(s) {', '.join(map(str, names))}",
            f"all {depth - 1} hidden layers of {depth} weight matrices, in order, or numbers from 0 to {depth - 2}",
            "give them all, or name each by its number: hidden={0: …, 3: …}",
        )
    return [(i, depth) for i in range(len(names))]


@in_double
def _predicted(numbers: Sequence[OfPairs], ratio: float) -> tuple[Numbers, Numbers]:
    return _compiled(*numbers, ratio)


@compiled
def _compiled(H: OfPairs, P: OfPairs, w: OfPairs, X: OfPairs, Y: OfPairs, ratio: Number) -> tuple[Numbers, Numbers]:
    pair = Pair(X, Y, 1.0, ratio)
    return ends.final_distance(Start(H, P, w), pair), ends.regime(H, P, pair)


_depth_law = in_double(ends.depth_law)
