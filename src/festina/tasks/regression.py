"""Random regression: outputs that are independent of the inputs, so that they can only be memorised."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from .._foundation import checks
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays
from .whitened import white_rows

__all__ = ["regression"]


@recipe
def regression(d_in: int = 5, d_out: int = 5, samples: int = 25, seed: int = 0, whiten: bool = True) -> Task:
    """Independent standard Gaussian inputs and outputs; the inputs are made exactly white unless `whiten` is false."""
    rng = np.random.default_rng(checks.seed(seed))
    x = gaussian_inputs(rng, samples, d_in, whiten)
    return from_arrays(x, rng.normal(size=(len(x), whole(d_out, "d_out"))))


def gaussian_inputs(
    rng: np.random.Generator, samples: int, d_in: int, whiten: bool
) -> Float[np.ndarray, "sample d_in"]:
    """Standard Gaussian rows; where `whiten`, with second moments of exactly I."""
    samples, d_in, whiten = whole(samples, "samples"), whole(d_in, "d_in"), checks.truth(whiten, "whiten")
    x = rng.normal(size=(samples, d_in))
    if whiten and samples < d_in:
        raise BadInput(
            f"samples = {samples} with d_in = {d_in}",
            f"at least {d_in} samples: fewer cannot vary in all input directions, so they cannot be made white",
            f"give samples={d_in} or more, or whiten=False",
        )
    return white_rows(x) if whiten else x
