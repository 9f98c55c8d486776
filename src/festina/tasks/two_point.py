"""Two points: the smallest task, on which the two-point theory of representations is stated.

One input and one target, x₁ = −1 and x₂ = −1 + dx with y₁ = 0.6 and y₂ = 0.6 + dy. The source prints dx = 0.5 and
dy = 1 [vanrossem2024, appendix B.1]; its figures come from dx² = 1 and dy² = 0.5, the defaults here: with the printed
values the twenty-layer networks do not converge in the printed number of epochs.
"""

from __future__ import annotations

import numpy as np

from .._foundation.checks import LARGEST, number
from .._foundation.errors import BadInput
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays

FIRST_INPUT, FIRST_TARGET = -1.0, 0.6


@recipe
def two_point(dx: float = 1.0, dy: float = 0.5**0.5) -> Task:
    """Two samples with inputs −1 and −1 + dx, and targets 0.6 and 0.6 + dy."""
    gaps = [number(value, name, least=-LARGEST, most=LARGEST) for value, name in ((dx, "dx"), (dy, "dy"))]
    if gaps[0] == 0:
        raise BadInput("dx = 0: two identical inputs", "two different inputs", "give dx=1.0")
    x, y = (first + np.array([[0.0], [gap]]) for first, gap in zip((FIRST_INPUT, FIRST_TARGET), gaps, strict=True))
    return from_arrays(x, y, items=("first", "second"))
