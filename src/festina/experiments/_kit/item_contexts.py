"""Items in contexts [jarvis2025, sections 4 and 5]: gated networks for subsets of contexts, and fits of loss curves.

The source descends the loss summed over the N samples; one of its epochs, at rate 10⁻³, is N·10⁻³ of time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ... import nets, tasks
from ..._formulas import mode_at_depth
from ...tasks.base import Task
from ...tasks.hierarchy import hierarchy_block
from ...theories.context_race import gate_overlap, item_mode

RATE = 1e-3  # of the source, on the summed loss
EPOCHS = "epochs at rate 10⁻³"
SHIFTS = range(-80, 81)  # epochs by which to move a curve onto another
KAPPA = {3: 1.0, 4: 1.1, 5: 1.35}  # by number of contexts: size of the context inputs of the source, as run
Times = Float[np.ndarray, " time"]


def subsets_of(sizes: int | Sequence[int], contexts: int) -> list[tuple[int, ...]]:
    """All subsets of the given sizes, small ones first."""
    all_sizes = [sizes] if isinstance(sizes, int) else sizes
    return [subset for size in all_sizes for subset in itertools.combinations(range(contexts), size)]


def gated(
    sizes: int | Sequence[int],
    *,
    contexts: int,
    items: int,
    width: int | Sequence[int],
    training: str = "joint",
) -> nets.Gated:
    """`Gated.contexts` with numbers for names: nets that differ in their gates alone then share compiled code.

    `width` is that of every pathway, or of the common one and of the others.
    """
    common, other = np.broadcast_to(width, 2).tolist()
    others = [
        {"name": f"pathway {k + 1}", "on": {"context": subset}, "sees": tuple(range(items)), "width": other, "rank": 1}
        for k, subset in enumerate(subsets_of(sizes, contexts))
    ]
    return nets.Gated.pathways([{"name": "common", "width": common}, *others], training=training)


def left_by_linear(task: Task) -> Task:
    """The same task, with the residual of the best linear map as its targets."""
    left = task.y - task.x @ np.linalg.lstsq(task.x, task.y, rcond=None)[0]
    return tasks.from_arrays(task.x, left, labels=task.labels)


def strengths(task: Task, sizes: int | Sequence[int], contexts: int, items: int) -> Float[np.ndarray, "subset mode"]:
    """Singular values of the correlations between targets and items, for every subset of contexts."""
    moments = gated(sizes, contexts=contexts, items=items, width=1).moments(task)
    return np.array([np.linalg.svd(cov, compute_uv=False) for cov in moments.cov_yx[1:]])


def floor(task: Task) -> float:
    """The least loss of a linear map."""
    return 0.5 * np.mean(np.sum(left_by_linear(task).y ** 2, axis=1))


def fit_closed_form(
    task: Task, items: int, contexts: int, times: Times, loss: Times, rate: float
) -> dict[str, np.ndarray]:
    """The closed form of a loss curve, fitted by least squares over two starts; `rate` is the learning rate.

    All common modes have one start, a₀, and all others another, B₀. Returned are these `starts`, the fitted `loss`, and
    the loss with `equal` starts B₀ = a₀.
    """
    modes = task.modes()
    live = modes.singular_values > 1e-9
    s, d = np.asarray(modes.singular_values[live]), np.asarray(modes.variances[live])
    sigma = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    rest = item_mode(sigma, items=items, contexts=contexts, size=contexts - 1)
    to_learn = np.asarray(rest.residual)
    effective = np.full(items - 1, gate_overlap(contexts, contexts - 1) * rest.variance)

    def common_loss(starts: Float[np.ndarray, " start"]) -> Float[np.ndarray, "start time"]:
        left = (s / d)[:, None] - _logistic(times, s, d, starts, rate)
        return 0.5 * np.einsum("k,tkb->bt", d, left**2)

    def rest_loss(starts: Float[np.ndarray, " start"]) -> Float[np.ndarray, "start time"]:
        learned = _logistic(times, to_learn, effective, starts, rate) * (effective / to_learn)[:, None]
        return 0.5 * (contexts - 1) / (items * contexts) * np.einsum("k,tkb->bt", sigma**2, (1 - learned) ** 2)

    centre, reach = np.array([1e-8, 1e-5]), 1e3
    best = loss
    for _ in range(5):
        common, other = (np.geomspace(c / reach, c * reach, 31) for c in centre)
        total = common_loss(common)[:, None] + rest_loss(other)
        squares = np.sum((total - loss) ** 2, axis=-1)
        k, m = np.unravel_index(np.argmin(squares), squares.shape)
        centre, reach, best = np.array([common[k], other[m]]), reach**0.2, total[k, m]
    return {
        "starts": centre,
        "loss": best,
        "equal": common_loss(centre[:1])[0] + rest_loss(centre[:1])[0],
    }


def _logistic(
    times: Times,
    s: Float[np.ndarray, " mode"],
    d: Float[np.ndarray, " mode"],
    starts: Float[np.ndarray, " start"],
    rate: float,
) -> Float[np.ndarray, "time mode start"]:
    """Strengths of two layers [jarvis2025, eq. 7]; a finite step slows s to ln(1 + lr s)/lr."""
    decay = np.exp(-2 * np.log1p(rate * s) / rate * times[:, None])[..., None]
    return starts / (decay + (d / s)[:, None] * starts * (1 - decay))


def output_overlap(items: int, contexts: int) -> float:
    """The cosine between what two pathways for all but one context learn of the broadest mode, from their moments.

    The moments are those on what the best linear map leaves.
    """
    net = gated(contexts - 1, contexts=contexts, items=items, width=1)
    moments = net.moments(left_by_linear(tasks.contextual(items, contexts, "hierarchy")))
    v = np.repeat([1.0, -1.0], items // 2)
    first, second = (cov @ v for cov in moments.cov_yx[1:3])
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def closed_form_loss(
    task: Task, items: int, contexts: int, times: Times, starts: tuple[float, float] | None
) -> Float[np.ndarray, " time"]:
    """The loss of the closed form from one start of all common modes and one of the others; NaN without starts."""
    if starts is None:
        return np.full(len(times), np.nan)
    modes = task.modes()
    live = modes.singular_values > 1e-9
    s, d = modes.singular_values[live], modes.variances[live]
    sigma = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    rest = item_mode(sigma, items=items, contexts=contexts, size=contexts - 1)
    effective = gate_overlap(contexts, contexts - 1) * rest.variance
    common = np.asarray(mode_at_depth.strength(times[:, None], s, d, starts[0], 2))
    others = np.asarray(mode_at_depth.strength(times[:, None], rest.residual, effective, starts[1], 2))
    left = np.sum(d * (s / d - common) ** 2, axis=1)
    share = (contexts - 1) / (items * contexts)
    return 0.5 * (left + share * np.sum((sigma * (1 - others * effective / rest.residual)) ** 2, axis=1))
