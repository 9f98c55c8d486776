"""Training as experiments do it: Ctrl-C ends the whole experiment, since half of one proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from numpy.typing import ArrayLike

from ..._setup.setup import Setup
from ..._setup.trajectory import Trajectory
from ..._training.simulate import simulate as train


def simulate(
    setup: Setup,
    seeds: int | Sequence[int] = 1,
    observe: str | Iterable[str] | None = None,
    *,
    pairs: ArrayLike | None = None,
) -> Trajectory:
    """`festina.simulate`, which Ctrl-C ends."""
    return train(setup, seeds, observe, pairs=pairs, interrupt="raise")
