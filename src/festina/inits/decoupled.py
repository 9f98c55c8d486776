"""Edges of a gated network along the modes of its paths."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from .._foundation.arrays import RandomKey, Weights
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle
from ..nets.base import Net
from ..nets.gated import Gated
from ..nets.gated.path_bases import bases_of_paths
from ..tasks.base import Task
from ..tasks.hierarchy import hierarchy
from ._pieces import basis, one_for_each, one_or_several
from .base import Init


@noun
class Decoupled(Init):
    """Every edge of a gated net along the modes of its paths: W = R diag(b) Rᵀ between the bases of its two nodes.

    `strength` is the b of all modes, one number or one for each edge. Inputs and outputs have the bases in which the
    moments of the paths are diagonal (`festina.nets.gated.path_bases`), hidden nodes random ones; modes that do not fit
    through a hidden node start, and stay, at zero. An edge that no sample opens is zero.
    """

    strength: Any
    sees_samples: ClassVar[bool] = True

    def __post_init__(self):
        settle(self, strength=one_or_several(self.strength, "strength"))

    @classmethod
    def example(cls) -> tuple[Task, Net, Decoupled]:
        return hierarchy(levels=3), Gated.example(), cls(0.1)

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        graph = net.graph
        if graph is None or not net.has_paths:
            raise BadInput(
                f"init Decoupled with {net!r}",
                "a gated network, whose paths have moments",
                "use nets.Gated, or inits.Aligned with a deep linear network",
            )
        shapes = net.shapes(task.d_in, task.d_out)
        do = "match the number of edges: len(net.edges)"
        sizes = one_for_each(self.strength, "strength", len(shapes), "edges of the net", do)
        bases = bases_of_paths(net, task)  # pyright: ignore[reportArgumentType], which wants Gated
        count, component = bases.strengths.shape[1], {}
        for p in bases.open:
            component |= dict.fromkeys(bases.moments.paths[p].edges, bases.component[p])
        keys = jax.random.split(key, len(graph.hidden) + 1)
        hidden = {node: basis(k, graph.size[node], count) for k, node in zip(keys, graph.hidden, strict=False)}
        weights = []
        for k, (source, target) in enumerate(graph.edges):
            if k in component:
                ends = (source, component[k]), (target, component[k])
                into, out = (hidden[n] if n in hidden else bases.nodes[at, n] for n, at in ends)
                weights.append(sizes[k] * (out @ into.T))
            else:
                weights.append(jnp.zeros(shapes[k]))
        return tuple(weights)
