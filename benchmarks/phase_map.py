"""A 40 × 40 map of how far the tangent kernel of a 2–2–2 network moves, over balance λ and scale of the start.

λ from −9 to 9, largest singular value of the starting map (the scale) from 1 to 20, time 40. Ours is one compiled
call for all cells, from drawing the weights to the distance. The rivals get the weights, and take 4,000 steps of
rate 0.01 on second moments: all cells at once (stacked matrices, or one array per entry; the faster counts), or
cell by cell. The last trains 16 cells spread over the map, as every one costs the same.

The largest curvature at a start is at most √(λ² + 4·scale²) + ‖Σ − W₂W₁‖ < 64, so that rate 0.01 is stable
(0.64 < 2), but it is not the flow: distances differ by up to 0.01 at the largest scales, a tenth of that at a tenth
of the rate. `TOLERANCE` is for cosines, 1 − distance, which are between 0.83 and 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "map"
TOLERANCE = 0.015
LR, STEPS = 0.01, 4000
LAMS, SCALES = np.linspace(-9, 9, 40), np.linspace(1, 20, 40)
CELLS = len(LAMS) * len(SCALES)
SEED = 1
SOME = np.arange(50, CELLS, 100)  # 16 of the cells


def target() -> np.ndarray:
    """Of the size of the starts: with a much smaller one no kernel moves."""
    return 4 * np.random.default_rng(0).standard_normal((2, 2))


def cells() -> tuple[np.ndarray, np.ndarray]:
    lams, scales = np.meshgrid(LAMS, SCALES, indexing="ij")
    return lams.ravel(), scales.ravel()


def draw(lam: Any, scale: Any) -> Any:
    """The start of one cell; the same singular vectors in all cells, so that the map is smooth.

    One singular value is smaller: where both are equal the first kernel is, but for its size, the same at all scales.
    """
    import jax
    import jax.numpy as jnp

    import festina as fs

    task = fs.tasks.from_moments(target(), np.eye(2))
    return fs.inits.Balanced(lam, scale * jnp.array([1.0, 0.3])).draw(
        jax.random.key(SEED), fs.nets.DeepLinear(hidden=2), task
    )


def reported(distances: np.ndarray) -> list[float]:
    """Cosines of the 16 cells that all contestants have, then their mean over the map: distances may be near 0."""
    return [*(1 - distances[SOME]), 1 - float(distances.mean())]


def exact() -> Call:
    import jax
    import jax.numpy as jnp

    from festina._formulas import balanced_flow, tangent_kernel
    from festina._foundation.precision import in_double

    @in_double
    @jax.jit
    def distances(matrix, lams, scales, time):
        def one(lam, scale):
            start = draw(lam, scale)
            flow = balanced_flow.flow(matrix, start, lam)
            first, last = balanced_flow.weights(flow, balanced_flow.states(flow, time[None])[0])
            return tangent_kernel.distance(
                tangent_kernel.tangent(start), tangent_kernel.tangent((first, last)), jnp.eye(2)
            )

        return jax.vmap(one)(lams, scales)

    matrix, (lams, scales), time = target(), cells(), np.array(LR * STEPS)
    return lambda: reported(distances(matrix, lams, scales, time))


def stacked(start: str) -> Call:
    """All cells at once, as stacks of matrices."""
    (begun_first, begun_last), matrix = read_start(start), target()

    def go():
        first, last = begun_first.copy(), begun_last.copy()
        for _ in range(STEPS):
            error = LR * (matrix - last @ first)
            slope = last.swapaxes(1, 2) @ error
            last += error @ first.swapaxes(1, 2)
            first += slope
        return reported(moved(begun_first, begun_last, first, last))

    return go


def by_entry(start: str) -> Call:
    """All cells at once, each of the entries of a matrix one long array."""
    begun_first, begun_last = read_start(start)
    matrix = target()[..., None]

    def go():
        first, last = (np.ascontiguousarray(np.moveaxis(w, 0, -1)) for w in (begun_first, begun_last))
        for _ in range(STEPS):
            error = LR * (matrix - last[:, :1] * first[0] - last[:, 1:] * first[1])
            slope = last[0, :, None] * error[0] + last[1, :, None] * error[1]
            last += error[:, :1] * first[:, 0] + error[:, 1:] * first[:, 1]
            first += slope
        return reported(moved(begun_first, begun_last, np.moveaxis(first, -1, 0), np.moveaxis(last, -1, 0)))

    return go


def cell_by_cell(start: str) -> Call:
    begun_first, begun_last = (w[SOME] for w in read_start(start))
    matrix = target()

    def go():
        ended_first, ended_last = begun_first.copy(), begun_last.copy()
        for first, last in zip(ended_first, ended_last, strict=True):
            for _ in range(STEPS):
                error = LR * (matrix - last @ first)
                slope = last.T @ error
                last += error @ first.T
                first += slope
        return [*(1 - moved(begun_first, begun_last, ended_first, ended_last))]

    return go


def moved(begun_first: np.ndarray, begun_last: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """1 − cos of the angle between the kernels of each cell, white inputs; the kernels are formed."""

    def kernels(first, last):
        eye = np.eye(2)
        inner, outer = first.swapaxes(1, 2) @ first, last @ last.swapaxes(1, 2)
        both = np.einsum("op,cij->coipj", eye, inner) + np.einsum("cop,ij->coipj", outer, eye)
        return both.reshape(len(first), -1)

    one, other = kernels(begun_first, begun_last), kernels(first, last)
    return 1 - np.sum(one * other, axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def write_start(folder: Path) -> str:
    import jax

    from festina._foundation.precision import in_double

    first, last = in_double(jax.vmap(draw))(*cells())
    path = folder / "phase-map.npz"
    np.savez(path, first=first, last=last)
    return str(path)


def read_start(path: str) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as file:
        return file["first"], file["last"]


def contestants(mode: str, folder: Path) -> list[Contestant]:
    start = {"start": write_start(folder)}
    return [
        Contestant("exact", "benchmarks.phase_map:exact"),
        Contestant("one by one", "benchmarks.phase_map:cell_by_cell", start, units=len(SOME) / CELLS),
        Contestant("stacked", "benchmarks.phase_map:stacked", start),
        Contestant("by entry", "benchmarks.phase_map:by_entry", start),
    ]


def claims(mode: str) -> list[Claim]:
    work = "exact phase map, 1,600 cells"
    return [
        Claim(work, "exact", "NumPy training, cell by cell", ("one by one",), least=100),
        Claim(work, "exact", "NumPy training, all cells at once", ("stacked", "by entry")),
    ]
