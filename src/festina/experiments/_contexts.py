"""Items in contexts: gated networks for subsets, and fits of loss curves.

The source descends the loss summed over the N samples; an epoch of it, at rate 10⁻³, is N·10⁻³ of time.
[jarvis2025, sections 4 and 5]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import nets, tasks
from .._setup import Task
from ..tasks.hierarchy import hierarchy_block
from ..theories.context_race import gate_overlap, item_mode

RATE = 1e-3  # of the source, on the summed loss
EPOCHS = "epochs at rate 10⁻³"
SHIFTS = range(-80, 81)  # epochs by which to move a curve onto another
KAPPA = {3: 1.0, 4: 1.1, 5: 1.35}  # size of the context inputs of the source, as run


def subsets_of(sizes: int | Sequence[int], contexts: int) -> list[tuple[int, ...]]:
    """All subsets of the given sizes, small ones first."""
    listed = [sizes] if isinstance(sizes, int) else sizes
    return [subset for size in listed for subset in itertools.combinations(range(contexts), size)]


def gated(sizes: int | Sequence[int], *, contexts: int, items: int, width: Any, training: str = "joint") -> nets.Gated:
    """`Gated.contexts` with numbers for names: nets that differ in their gates alone then share compiled code."""
    common, other = np.broadcast_to(width, 2).tolist()
    others = [
        {"name": f"pathway {k + 1}", "on": {"context": subset}, "sees": tuple(range(items)), "width": other, "rank": 1}
        for k, subset in enumerate(subsets_of(sizes, contexts))
    ]
    return nets.Gated.pathways([{"name": "common", "width": common}, *others], training=training)


def left_by_linear(task: Task) -> Task:
    """The same task with what the best linear map leaves of its answers."""
    left = task.y - task.x @ np.linalg.lstsq(task.x, task.y, rcond=None)[0]
    return tasks.from_arrays(task.x, left, labels=task.labels)


def strengths(task: Task, sizes: int | Sequence[int], contexts: int, items: int) -> np.ndarray:
    """Singular values of every subset's moments with the items, (subset, mode)."""
    moments = gated(sizes, contexts=contexts, items=items, width=1).moments(task)
    return np.array([np.linalg.svd(cov, compute_uv=False) for cov in moments.cov_yx[1:]])


def floor(task: Task) -> float:
    """The least loss of a linear map."""
    return 0.5 * np.mean(np.sum(left_by_linear(task).y ** 2, axis=1))


def fit_closed_form(task, items: int, contexts: int, times, loss, rate: float) -> dict:
    """The closed form from one start for all common modes and one for the rest, by least squares; and with B₀ = a₀."""
    modes = task.modes()
    live = modes.singular_values > 1e-9
    s, d = modes.singular_values[live], modes.variances[live]
    sigma = np.linalg.svd(hierarchy_block(items), compute_uv=False)[1:]
    rest = item_mode(sigma, items=items, contexts=contexts, size=contexts - 1)
    effective = np.full(items - 1, gate_overlap(contexts, contexts - 1) * rest.variance)

    def common_loss(starts):
        left = (s / d)[:, None] - _logistic(times, s, d, starts, rate)
        return 0.5 * np.einsum("k,tkb->bt", d, left**2)

    def rest_loss(starts):
        learned = _logistic(times, rest.residual, effective, starts, rate) * (effective / rest.residual)[:, None]
        return 0.5 * (contexts - 1) / (items * contexts) * np.einsum("k,tkb->bt", sigma**2, (1 - learned) ** 2)

    centre, reach = np.array([1e-8, 1e-5]), 1e3
    for _ in range(5):
        common, other = (np.geomspace(c / reach, c * reach, 31) for c in centre)
        total = common_loss(common)[:, None] + rest_loss(other)
        squares = np.sum((total - loss) ** 2, axis=-1)
        best = np.unravel_index(np.argmin(squares), squares.shape)
        centre, reach = np.array([common[best[0]], other[best[1]]]), reach**0.2
    growth = np.exp(np.minimum(2 * rest.residual[0] * times, 600.0))
    # As printed: growth for decay, and S/(D B₀) for (C − 1)S/(D B₀); of what there is to learn.
    printed = 1 / (1 - (1 - rest.residual[0] / (rest.variance * centre[1])) * growth)
    return {
        "starts": centre,
        "loss": total[best],
        "equal": common_loss(centre[:1])[0] + rest_loss(centre[:1])[0],
        "printed": printed,
    }


def _logistic(times, s, d, starts, rate: float) -> np.ndarray:
    """Strengths (time, mode, start) of two layers [jarvis2025, eq. 7]; a finite step slows s to ln(1 + lr s)/lr."""
    decay = np.exp(-2 * np.log1p(rate * s) / rate * times[:, None])[..., None]
    return starts / (decay + (d / s)[:, None] * starts * (1 - decay))


def output_overlap(items: int, contexts: int) -> float:
    """The cosine of what two all-but-one pathways learn of the broadest mode, by their moments on the residual."""
    net = gated(contexts - 1, contexts=contexts, items=items, width=1)
    moments = net.moments(left_by_linear(tasks.contextual(items, contexts, "hierarchy")))
    v = np.repeat([1.0, -1.0], items // 2)
    first, second = (cov @ v for cov in moments.cov_yx[1:3])
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def plateaus(items: int, contexts: int) -> tuple[float, ...]:
    """Where the loss of a linear network ends, summed over samples: true, and by a closed form of wrong variances.

    The wrong ones are eigenvalues of Σˣ in order of size, with context inputs of 1 and as run.
    """

    def excess(kappa):
        task = tasks.contextual(items, contexts, "hierarchy", context_scale=kappa)
        modes = task.modes()
        s, d = modes.singular_values[:-1], modes.variances[:-1]
        wrong = np.linalg.eigvalsh(task.cov_x)[::-1][: len(s)]
        return 0.5 * items * contexts * np.sum(d * (s / wrong - s / d) ** 2)

    true = floor(tasks.contextual(items, contexts, "hierarchy")) * items * contexts
    return true, true + excess(1.0), true + excess(KAPPA.get(contexts, 1.0))
