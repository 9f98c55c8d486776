"""Comparing networks with their gated twins: loss curves, outputs, and the geometry of hidden activity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._formulas.classical_scaling import centred, principal_points
from .._formulas.curves import time_to_fraction
from .._formulas.modes import FAINT
from .._foundation import checks
from .._foundation.checks import real_array, whole
from .._foundation.errors import BadInput, shown
from .._setup.trajectory import Trajectory
from ..tasks.base import Task
from .recording import same_samples

if TYPE_CHECKING:
    import xarray

LEVELS = np.linspace(0.99, 0.01, 99)  # of the loss, at which two curves are compared for a shift
FINER = 41  # shifts to try between those at neighbouring levels


def compare(
    reference: Trajectory,
    candidates: Mapping[str, Trajectory] | Trajectory,
    *,
    fractions: ArrayLike = (0.5, 0.1, 0.01),
    at: ArrayLike | None = None,
) -> xarray.Dataset:
    """How near twins come to a network, in a table; `fs.compare` puts theory and training side by side instead.

    The table is an `xarray.Dataset` with one entry for each candidate.

    Args:
        reference: the network, most often a ReLU one, as recorded by `simulate` or `gates.record`.
        candidates: {name: trajectory}, or one trajectory, of the same task, times and seeds; seed by seed they are
            compared with the reference. One without seeds, from `solve`, is compared with every seed.
        fractions: of the loss at the start, for the times to reach them.
        at: times at which to compare outputs and hidden activity, each taken to the nearest that is recorded; None
            takes all.

    All numbers are averages over seeds, and distances of losses are in units of the loss of the reference at the start:

    - `raw`, `raw_mean` (candidate): the largest distance of losses over time, and its mean over the recorded times.
    - `time_shift`, `raw_after_shift` (candidate): the one time by which to move the curves of a candidate, for all
      seeds, so that the largest distance is least (negative: the candidate is late), and what is left of it.
    - `time_to` (candidate, fraction), `reference_time_to` (fraction): when the loss falls to a fraction of its start;
      infinite if for one seed it never does.
    - `output_gap`, `output_mean_square` (candidate, time): ‖ŷ − ŷ_ref‖/‖ŷ_ref‖ over all samples and features, and the
      mean of (ŷ − ŷ_ref)² over these; where both have recorded "outputs".
    - `geometry` (candidate, time): see `geometry`; where both have "representation", or both "similarity".

    What a candidate has not recorded is NaN, and a variable that none has is left out.
    """
    import xarray

    twins = _named({"candidate": candidates} if isinstance(candidates, Trajectory) else candidates, "candidates")
    _named({"reference": reference}, "reference")
    for name, twin in twins.items():
        _check_twin(name, twin, reference)
    times, loss = reference.times, _by_seed(reference, "loss")
    losses = [_by_seed(twin, "loss") for twin in twins.values()]
    shifts = [shifted_distance(times, candidate_loss, loss) for candidate_loss in losses]
    when = _recorded(times, at)
    table = xarray.Dataset(
        {
            "raw": ("candidate", [largest_distance(candidate_loss, loss) for candidate_loss in losses]),
            "raw_mean": ("candidate", [mean_distance(candidate_loss, loss) for candidate_loss in losses]),
            "time_shift": ("candidate", [shift for shift, _ in shifts]),
            "raw_after_shift": ("candidate", [left for _, left in shifts]),
            "time_to": learning_times(twins, fractions).time_to,
            "reference_time_to": learning_times({"": reference}, fractions).time_to[0].drop_vars("candidate"),
        },
        coords={"candidate": list(twins), "time": times[when]},
    )
    observed = {
        "output_gap": (_output_gap, ("outputs",)),
        "output_mean_square": (_output_mean_square, ("outputs",)),
        "geometry": (_geometry_of, ("similarity", "representation")),
    }
    for name, (measure, sources) in observed.items():
        rows = [_over_time(measure, twin, reference, sources, when) for twin in twins.values()]
        if any(row is not None for row in rows):
            nothing = np.full(len(when), np.nan)
            table[name] = (("candidate", "time"), np.stack([nothing if row is None else row for row in rows]))
    return table


def learning_times(
    trained: Mapping[str, Trajectory] | Trajectory, fractions: ArrayLike = (0.5, 0.1, 0.01)
) -> xarray.Dataset:
    """When each of several networks has learned; an `xarray.Dataset` over candidates and fractions of the first loss.

    `time_to` is the mean over seeds, infinite if one of them never comes to the fraction; `reached` is the share of
    seeds that do.
    """
    import xarray

    named = _named({"candidate": trained} if isinstance(trained, Trajectory) else trained, "trained")
    levels = np.atleast_1d(real_array(fractions, "fractions", ndim=(0, 1)))
    if not len(levels) or (levels <= 0).any() or (levels >= 1).any():
        raise BadInput(f"fractions = {fractions}", "shares of the first loss between 0 and 1", "give (0.5, 0.1, 0.01)")
    when = [np.stack([times_to(one.times, _by_seed(one, "loss"), level) for level in levels]) for one in named.values()]
    return xarray.Dataset(
        {
            "time_to": (("candidate", "fraction"), [time.mean(axis=1) for time in when]),
            "reached": (("candidate", "fraction"), [np.isfinite(time).mean(axis=1) for time in when]),
        },
        coords={"candidate": list(named), "fraction": levels},
    )


def times_to(times: np.ndarray, losses: np.ndarray, fraction: float) -> np.ndarray:
    """When each of the curves (…, time) falls to a fraction of its start; infinite if it never does."""
    return np.apply_along_axis(lambda loss: time_to_fraction(times, loss, fraction), -1, losses)


def largest_distance(losses: np.ndarray, others: np.ndarray) -> float:
    """The largest distance of losses over time, in units of the initial loss of `others`, averaged over seeds."""
    return float(_gaps(losses, others).max(axis=-1).mean())


def mean_distance(losses: np.ndarray, others: np.ndarray) -> float:
    """The mean distance of losses over time, in units of the initial loss of `others`, averaged over seeds."""
    return float(_gaps(losses, others).mean())


def _gaps(losses: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.abs(np.asarray(losses) - np.asarray(others)) / np.asarray(others)[..., :1]


def shifted_distance(
    times: np.ndarray, losses: np.ndarray, others: np.ndarray, shifts: Iterable[Any] | None = None
) -> tuple[Any, float]:
    """The shift in time that brings the first curves (…, time) closest to the others, and the remaining distance.

    Curves are interpolated linearly. Without `shifts`, the delays between the mean curves at all levels of the loss are
    tried, since the best shift of falling curves lies among them, and then values between neighbouring delays.
    """

    def left(shift: float) -> float:
        moved = [np.interp(times - shift, times, loss) for loss in np.atleast_2d(losses)]
        return largest_distance(np.array(moved), np.atleast_2d(others))

    tried = _gaps_in_time(times, losses, others) if shifts is None else list(shifts)
    best = min(tried, key=left)
    if shifts is None:
        k = tried.index(best)
        best = min([best, *np.linspace(tried[max(k - 1, 0)], tried[min(k + 1, len(tried) - 1)], FINER)], key=left)
    return best, left(best)


def _gaps_in_time(times: np.ndarray, losses: np.ndarray, others: np.ndarray) -> list[float]:
    """The delays of `others` behind `losses` at every level of the loss, for curves averaged over seeds; and 0."""
    first, other = (np.atleast_2d(curves).mean(axis=0) for curves in (losses, others))
    reached = np.array([[time_to_fraction(times, curve, level) for curve in (first, other)] for level in LEVELS])
    reached = reached[np.isfinite(reached).all(axis=1)]
    return np.union1d(0.0, reached[:, 1] - reached[:, 0]).tolist()


def geometry(h: ArrayLike, other: ArrayLike, *, similarity: bool = False) -> float | Float[np.ndarray, "*leading"]:
    """How alike two representations lay out samples: the correlation of their distances between all pairs of samples.

    It is Pearson's, of Euclidean distances (not squared), of activity (…, sample, unit) or, with `similarity`, of
    products hhᵀ (…, sample, sample). Turning, moving and scaling a representation leave it as it is. Leading axes are
    kept; NaN where a representation has all samples equally far apart.
    """
    similarity = checks.truth(similarity, "similarity")
    pair = [_contrasts(_products(value, name, similarity)) for name, value in (("h", h), ("other", other))]
    leading = [part.shape[:-1] for part in pair]
    if pair[0].shape[-1] != pair[1].shape[-1] or (all(leading) and leading[0] != leading[1]):
        shapes = " and ".join(str(np.shape(value)) for value in (h, other))
        raise BadInput(
            f"representations of shapes {shapes}",
            "the same samples, and leading axes, in both",
            "compare them on one task",
        )
    correlation = np.sum(pair[0] * pair[1], axis=-1)
    return float(correlation) if correlation.ndim == 0 else correlation


def _contrasts(products: np.ndarray) -> np.ndarray:
    """Distances between all pairs of samples, less their mean and of norm 1, (…, pair); NaN where they are equal."""
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    i, j = np.triu_indices(products.shape[-1], 1)
    distances = np.sqrt(np.maximum(squares[..., i] + squares[..., j] - 2 * products[..., i, j], 0))
    centred = distances - distances.mean(axis=-1, keepdims=True)
    spread = np.linalg.norm(centred, axis=-1, keepdims=True)
    differ = spread > FAINT * np.linalg.norm(distances, axis=-1, keepdims=True)
    return np.where(differ, centred / np.where(differ, spread, 1), np.nan)


def scaling(h: ArrayLike, dimensions: int = 2, *, similarity: bool = False) -> np.ndarray:
    """Classical multidimensional scaling: points (…, sample, dimension) whose distances are nearly those of activity.

    They are the leading principal components of activity (…, sample, unit) or, with `similarity`, of products hhᵀ. It
    is one eigenvalue problem, exact where `dimensions` suffice; unlike scaling by descent on a stress it has no
    start, and needs no seed. Signs are fixed: the largest entry of each dimension is positive. To compare two layouts
    lay one onto the other with `aligned`.
    """
    products = _products(h, "h", checks.truth(similarity, "similarity"))
    if whole(dimensions, "dimensions") > products.shape[-1]:
        raise BadInput(
            f"dimensions = {dimensions} for {products.shape[-1]} samples",
            "no more dimensions than samples",
            "give dimensions=2",
        )
    return principal_points(products, dimensions)


def aligned(points: ArrayLike, onto: ArrayLike, *, scale: bool = False) -> np.ndarray:
    """Points (…, sample, dimension) moved, turned and mirrored to lie as near to others as they can (Procrustes).

    With `scale` they may also grow or shrink. Leading axes are kept, and those of `onto` may be fewer.
    """
    moved, other, scale = real_array(points, "points"), real_array(onto, "onto"), checks.truth(scale, "scale")
    if min(moved.ndim, other.ndim) < 2 or moved.shape[-2:] != other.shape[-2:]:
        raise BadInput(
            f"points of shape {moved.shape} and onto of shape {other.shape}",
            "as many samples and dimensions in both",
            "scale both to the same dimensions: scaling(h, dimensions)",
        )
    centre = other.mean(axis=-2, keepdims=True)
    moved, other = moved - moved.mean(axis=-2, keepdims=True), other - centre
    left, values, right = np.linalg.svd(np.swapaxes(moved, -1, -2) @ other, full_matrices=False)
    rotated = moved @ (left @ right)
    if scale:
        power = np.sum(moved**2, axis=(-2, -1))
        rotated = rotated * (values.sum(axis=-1) / np.where(power > 0, power, 1))[..., None, None]
    return rotated + centre


def _products(h: ArrayLike, name: str, similarity: bool) -> np.ndarray:
    """hhᵀ (…, sample, sample) of activity around its mean over samples."""
    array = real_array(h, name)
    if array.ndim < 2 or 0 in array.shape or (similarity and array.shape[-1] != array.shape[-2]):
        raise BadInput(
            f"{name} has shape {array.shape}",
            f"(…, sample, {'sample' if similarity else 'unit'})",
            'record it with observe="similarity"' if similarity else 'record it with observe="representation"',
        )
    if similarity:
        return centred(array)
    around_mean = array - array.mean(axis=-2, keepdims=True)
    return around_mean @ np.swapaxes(around_mean, -1, -2)


def _geometry_of(twin_value: np.ndarray, reference_value: np.ndarray, of: str) -> Any:
    return geometry(twin_value, reference_value, similarity=of == "similarity")


def _output_gap(twin_value: np.ndarray, reference_value: np.ndarray, of: str) -> np.ndarray:
    size = np.linalg.norm(reference_value, axis=(-2, -1))
    return np.where(
        size > 0, np.linalg.norm(twin_value - reference_value, axis=(-2, -1)) / np.where(size > 0, size, 1), np.nan
    )


def _output_mean_square(twin_value: np.ndarray, reference_value: np.ndarray, of: str) -> np.ndarray:
    return np.mean((twin_value - reference_value) ** 2, axis=(-2, -1))


def _over_time(
    measure: Callable[[np.ndarray, np.ndarray, str], Any],
    twin: Trajectory,
    reference: Trajectory,
    sources: tuple[str, ...],
    when: np.ndarray,
) -> np.ndarray | None:
    """A measure of the first of the sources that both have recorded, averaged over seeds, (time,)."""
    shared = [name for name in sources if name in twin and name in reference]
    if not shared:
        return None
    twin_value, reference_value = _by_seed(twin, shared[0]), _by_seed(reference, shared[0])
    return np.array([np.mean(measure(twin_value[:, k], reference_value[:, k], shared[0])) for k in when])


def _by_seed(trajectory: Trajectory, name: str) -> np.ndarray:
    """An observable (seed, time, …), of one seed where it has none."""
    value = np.asarray(trajectory[name], float)
    return value if "seed" in trajectory.axes[name] else value[None]


def _recorded(times: np.ndarray, at: ArrayLike | None) -> np.ndarray:
    """The indices of recorded times nearest to those asked for."""
    if at is None:
        return np.arange(len(times))
    wanted = np.atleast_1d(real_array(at, "at", ndim=(0, 1)))
    if not len(wanted) or wanted.min() < times[0] or wanted.max() > times[-1]:
        raise BadInput(f"at = {at}", f"times between {times[0]:g} and {times[-1]:g}", "give times that are recorded")
    return np.unique(np.abs(times - wanted[:, None]).argmin(axis=1))


def _named(trained: object, argument: str) -> dict[str, Trajectory]:
    """Trajectories by name, each of which has a loss."""
    if not isinstance(trained, Mapping) or isinstance(trained, Trajectory) or not trained:
        raise BadInput(
            f"{argument} are {'empty' if isinstance(trained, Mapping) else type(trained).__name__}",
            "trajectories by name",
            'give {"two contexts": simulate(setup)}',
        )
    for name, value in trained.items():
        if not isinstance(value, Trajectory) or "loss" not in value:
            what = f"has {', '.join(value)}" if isinstance(value, Trajectory) else f"is {type(value).__name__}"
            raise BadInput(
                f"{argument}: {shown(name)} {what}",
                "a Trajectory with the loss",
                'simulate(setup, observe=["loss", …])',
            )
    return {str(name): value for name, value in trained.items()}


def _check_twin(name: str, twin: Trajectory, reference: Trajectory) -> None:
    """Refuse a candidate that has other times, seeds or samples than the reference."""
    spans = [f"{len(one.times)} times {one.times[0]:g} … {one.times[-1]:g}" for one in (twin, reference)]
    close = FAINT * abs(reference.times[-1])
    if len(twin.times) != len(reference.times) or np.abs(twin.times - reference.times).max() > close:
        raise BadInput(
            f"the times differ: {name!r} has {spans[0]}, the reference {spans[1]}",
            "trajectories on one time grid",
            "give both setups the same times=, and learning rates whose steps meet them",
        )
    seeds = [one.coordinates["seed"].tolist() for one in (twin, reference) if "seed" in one.axes["loss"]]
    if len(seeds) == 2 and seeds[0] != seeds[1]:
        raise BadInput(
            f"the seeds differ: {name!r} has {seeds[0]}, the reference {seeds[1]}",
            "the same seeds in both",
            f"simulate(setup, seeds={seeds[1]})",
        )
    tasks = [one.setup.task for one in (twin, reference)]
    if tasks[0] != tasks[1] and not (isinstance(tasks[1], Task) and same_samples(tasks[0], tasks[1])):
        raise BadInput(
            f"{name!r} has learned {tasks[0]!r}, the reference {tasks[1]!r}, with other samples",
            "twins of one task",
            "build the setup of the twin with reference.setup.replace(net=…)",
        )
