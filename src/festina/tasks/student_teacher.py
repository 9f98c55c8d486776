"""A teacher to copy: outputs of a linear network with one hidden layer [braun2022, figure 1]."""

from __future__ import annotations

import numpy as np

from .._foundation.checks import positive, whole
from .._foundation.checks import seed as checked_seed
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays
from .regression import gaussian_inputs


@recipe
def student_teacher(
    d_in: int = 5,
    d_out: int = 2,
    hidden: int = 10,
    scale: float = 0.35,
    samples: int = 10,
    seed: int = 0,
    whiten: bool = True,
) -> Task:
    """Gaussian inputs with the outputs of a two-layer linear teacher, whose weights are Gaussian of std `scale`.

    The inputs are made exactly white unless `whiten` is false. A linear student can reach loss 0.
    """
    rng = np.random.default_rng(checked_seed(seed))
    x = gaussian_inputs(rng, samples, d_in, whiten)
    hidden, scale = whole(hidden, "hidden"), positive(scale, "scale")
    first = scale * rng.normal(size=(hidden, x.shape[1]))
    second = scale * rng.normal(size=(whole(d_out, "d_out"), hidden))
    return from_arrays(x, x @ first.T @ second.T)
