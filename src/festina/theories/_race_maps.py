"""The map of a gated network, put together from the strengths of the modes of its paths.

A gated network is a linear map of gated inputs (see `festina.nets.gated.lifted`). Where every path p has the map
U_p diag(B_p) V_pᵀ, the map of gated inputs is left diag(B) rightᵀ: `left` and `right` hold the bases of all paths at
the outputs that each path writes and at the gated inputs that it maps. Loss, map and outputs are read off from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._foundation.arrays import AnyArray
from .._foundation.checks import is_traced
from .._foundation.nouns import noun
from .._setup.loss import Moments, loss_of_map
from .._setup.setup import Setup
from ..nets.gated.graph import Path
from ..nets.gated.paths import PathMoments
from ..nets.gated.plan import Plan, plan_of
from ..tasks.base import Task
from .base import Readout

Bases = Sequence[Float[AnyArray, "_ _"]]  # of every path: (row or column, mode)


def blocks_of_paths(plan: Plan, paths: Sequence[Path]) -> list[int | None]:
    """The block of gated inputs that each path maps; None for a path that is closed."""
    ways = dict(plan.ways)
    number = {block: k for k, block in enumerate(plan.blocks)}
    blocks: list[int | None] = []
    for path in paths:
        way = next((way for way, steps in ways[path.source] if not steps), None)
        for k, node in zip(path.edges, path.nodes[1:], strict=True):
            way = next((later for later, steps in ways[node] if (k, way) in steps), None)
        blocks.append(None if way is None else number[way.source, way.opening])
    return blocks


@noun
class Assembly:
    """The map of gated inputs, left diag(B) rightᵀ, with B of all modes of all paths."""

    left: Float[AnyArray, "out path_mode"]
    right: Float[AnyArray, "in path_mode"]

    def map(self, strengths: Float[AnyArray, "time path mode"]) -> Float[AnyArray, "time out in"]:
        flat = strengths.reshape(strengths.shape[0], -1)
        return jnp.einsum("om,tm,im->toi", self.left, flat, self.right)


def assembly(paths: Sequence[Path], left: Bases, right: Bases, plan: Plan) -> Assembly:
    """How the maps U_p diag(B_p) V_pᵀ of all paths add up to that of a lifted net."""
    writes, reads = dict(plan.writes), dict(plan.reads)
    ends = np.cumsum([0, *(len(reads[source]) for source, _ in plan.blocks)])
    xp = jnp if is_traced(left, right) else np
    lefts, rights = [], []
    for path, block, u, v in zip(paths, blocks_of_paths(plan, paths), left, right, strict=True):
        columns = [0] * v.shape[0] if block is None else list(range(ends[block], ends[block + 1]))
        lefts.append(np.eye(plan.d_out)[:, list(writes[path.target])] @ u)
        rights.append((block is not None) * np.eye(ends[-1])[:, columns] @ v)
    return Assembly(xp.concatenate(lefts, axis=1), xp.concatenate(rights, axis=1))


def gated_inputs(moments: PathMoments, plan: Plan, task: Task) -> Float[np.ndarray, "sample in"] | None:
    """The gated inputs of every sample; None for a task without samples."""
    if task.x is None:
        return None
    reads, blocks = dict(plan.reads), blocks_of_paths(plan, moments.paths)
    opening = {block: moments.openings[p] for p, block in enumerate(blocks) if block is not None}
    return np.concatenate(
        [opening[k][:, None] * task.x[:, list(reads[source])] for k, (source, _) in enumerate(plan.blocks)], axis=1
    )


@noun
class PathModes:
    """How loss, map and outputs are read off the strengths of the modes of paths."""

    assembly: Assembly
    evidence: Moments
    inputs: Float[AnyArray, "sample in"] | None  # gated ones


def path_modes(setup: Setup, moments: PathMoments, left: Bases, right: Bases) -> PathModes:
    lifted = setup.lifted()
    plan, task = plan_of(lifted.net), lifted.single_task
    return PathModes(
        assembly(moments.paths, left, right, plan),
        Moments.of(task),
        gated_inputs(moments, plan, setup.single_task),
    )


def path_readouts(strengths: Callable[[Any, Any], Float[AnyArray, "time path mode"]]) -> dict[str, Readout]:
    """Readouts of a theory that has `PathModes` in `constants.modes`, from the strengths of its states."""

    def maps(constants: Any, states: Any) -> Float[AnyArray, "time out in"]:
        return constants.modes.assembly.map(strengths(constants, states))

    def losses(constants: Any, states: Any) -> Float[AnyArray, " time"]:
        return jax.vmap(lambda matrix: loss_of_map(constants.modes.evidence, matrix))(maps(constants, states))

    def outputs(constants: Any, states: Any) -> Float[AnyArray, "time sample out"]:
        return jnp.einsum("si,toi->tso", constants.modes.inputs, maps(constants, states))

    return {
        "loss": Readout((), losses),
        "map": Readout(("feature", "input"), maps),
        "outputs": Readout(("sample", "feature"), outputs),
        "path_modes": Readout(("path", "mode"), strengths),
    }
