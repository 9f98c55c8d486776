"""Finding a few gates that stand for the many patterns of a trained network [jarvis2025, algorithm 1]."""

from __future__ import annotations

from .._foundation.errors import BadInput
from .._setup.trajectory import Trajectory
from ..tasks.base import Task
from .clusters import Found, clustering
from .how_many import elbow

MOST_TRIED = 7  # clusters, where their number is to be found


def find(
    trained: Trajectory,
    clusters: int | None = 4,
    method: str = "weighted",
    *,
    layer: int = 1,
    n_init: int | None = None,
    seed: int = 0,
    learned: float = 0.99,
    task: Task | None = None,
) -> Found:
    """A few gates that stand for the patterns of all units of a hidden layer: the centres of their clusters.

    The patterns of all units at all recorded times of all seeds are clustered by k-means. With method="as_printed"
    every one of them counts once, also those of dead units and from before learning [jarvis2025, algorithm 1]. With
    "weighted" a unit counts by its size |incoming| |outgoing|, as a share of its layer at that time; units that are off
    for all samples and times at which the loss is above `learned` of the first are left out.

    `clusters=None` takes the number after which more gates bring a frozen twin no closer to the network. k-means
    starts `n_init` times (as printed 1, weighted 10) from the seed and keeps the best; one start often misses a gate.

    A `task`, if given, must show the samples of the recording; gates have the names of its contexts, which a probe does
    not know.

    What is found is a sequence of gates; `find(trained).net(width=100)` is the gated net that has them.
    """
    clustered = clustering(trained, method, layer=layer, n_init=n_init, seed=seed, learned=learned, task=task)
    if clusters is None:
        if not clustered.layer.setup.init.fits_any_width:
            raise BadInput(
                "clusters = None for a network that started from Given weights, as that of a probe does",
                "a number of gates, or a law for the start of the twins that tell which is enough",
                "give clusters=4, or choose: gates.elbow(trained, init=inits.SmallRandom(1e-3))",
            )
        tried = range(1, min(MOST_TRIED, len(clustered.patterns.counts)) + 1)
        options = {"layer": layer, "n_init": clustered.n_init, "seed": clustered.seed, "learned": learned}
        return clustered.at_centres(int(elbow(trained, tried, method, **options).attrs["chosen"]))
    return clustered.at_centres(clusters)
