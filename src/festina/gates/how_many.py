"""How many gates are enough: the number after which more of them bring a frozen twin no closer to the network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._foundation import checks
from .._foundation.checks import whole
from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory
from ..inits.base import Init
from .clusters import METHODS, clustering
from .frozen_twin import frozen_twin, with_outputs
from .recording import as_trained, recording

if TYPE_CHECKING:
    import xarray

CLOSE = 1.25  # an error within this factor of the smallest counts as small


def elbow(
    trained: Trajectory,
    clusters: Iterable[int] = range(1, 8),
    method: str = "weighted",
    *,
    layer: int = 1,
    width: int | Sequence[int] | str = "share",
    sees: Iterable[int] | None = None,
    n_init: int | None = None,
    seed: int = 0,
    learned: float = 0.99,
    init: Init | None = None,
    progress: bool | None = None,
) -> xarray.Dataset:
    """How close frozen twins with 1, 2, … gates come to a network of one hidden layer; an `xarray.Dataset`.

    `error` (clusters) is the mean square difference of outputs, `pathways` the number of different gates that are on
    for some sample; where there is none, the twin's outputs are 0. attrs["chosen"] is the smallest number whose error
    is within 25 % of the smallest of all. `n_init`, `seed` and `learned` are those of `find`, `init` that of `freeze`.
    """
    import xarray

    trained = as_trained(trained)
    if len(recording(trained).layers) > 1:
        raise BadInput(
            "an elbow for a network of several hidden layers", "one hidden layer", "choose clusters for each layer"
        )
    needed, do = "several numbers of gates to try", "give clusters=range(1, 8)"
    counts = [whole(count, "clusters") for count in checks.listed(clusters, "clusters", needed, do)]
    checks.choice(method, "method", METHODS)
    checks.truth_or_none(progress, "progress")
    # The network itself need not be trained again for every number of gates.
    reference = with_outputs(trained, progress)
    errors, pathways = np.zeros(len(counts)), np.zeros(len(counts), int)
    clustered = clustering(trained, method, layer=layer, n_init=n_init, seed=seed, learned=learned)
    for k, count in enumerate(counts):
        gates = clustered.at_centres(count)
        if gates.gates.any():
            errors[k] = frozen_twin(reference, (gates,), width=width, sees=sees, init=init, progress=progress).error
            pathways[k] = len(gates.pathways())
        else:
            errors[k] = np.mean(reference["outputs"] ** 2)
    table = xarray.Dataset(
        {"error": ("clusters", errors), "pathways": ("clusters", pathways)}, coords={"clusters": counts}
    )
    return table.assign_attrs(chosen=int(counts[int(np.argmax(errors <= CLOSE * errors.min()))]), method=method)
