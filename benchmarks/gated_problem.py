"""The work of the gated benchmarks: 8 items in 3 contexts, 24 samples, 60 features; a pathway of 100 units each.

Rate, start and number of epochs are those of the source: rate 0.001 of the loss summed over samples, 8,000 epochs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

EPOCHS = 8000
LR = 0.024  # of the mean over 24 samples
SCALE = 7.14e-6
WIDTH = 100


def task(repeats: int = 1, blocks: Any = ("hierarchy", "ring", "cross")) -> Any:
    """The samples `repeats` times over: the same moments, and the same course of training."""
    import festina as fs

    once = fs.tasks.contextual(blocks=blocks)
    assert once.labels
    labels = {name: np.tile(values, repeats) for name, values in once.labels.items()}
    return fs.tasks.from_arrays(np.tile(once.x, (repeats, 1)), np.tile(once.y, (repeats, 1)), labels=labels)


def setup(given: Any, subsets: Any = 2, records: int = 1, precision: str = "float64") -> Any:
    """A common pathway beside those of the subsets, with `records` evenly spaced over the epochs."""
    import festina as fs

    return fs.Setup(
        given,
        fs.nets.Gated.contexts(subsets=subsets, width=WIDTH),
        fs.inits.SmallRandom(SCALE),
        fs.rules.GradientDescent(LR),
        times=np.linspace(0, EPOCHS * LR, records + 1)[1:],
        precision=precision,
    )
