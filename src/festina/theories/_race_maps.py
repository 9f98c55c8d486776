"""What theories of the modes of paths share: the map of gated inputs, put together from them, and what is read off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._graph import Path
from .._noun import is_traced, noun
from .._objective import Moments, loss_of_map
from .._paths import PathMoments
from .._setup import Setup
from .._task import Task
from .base import Readout


def blocks_of_paths(plan: Any, paths: Sequence[Path]) -> list[int | None]:
    """The block of gated inputs that each path maps; None for a path that is closed."""
    ways = dict(plan.ways)
    number = {block: k for k, block in enumerate(plan.blocks)}
    found: list[int | None] = []
    for path in paths:
        way = next((way for way, steps in ways[path.source] if not steps), None)
        for k, node in zip(path.edges, path.nodes[1:], strict=True):
            way = next((later for later, steps in ways[node] if (k, way) in steps), None)
        found.append(None if way is None else number[way.source, way.opening])
    return found


@noun
class Assembly:
    """The map of gated inputs, left diag(B) rightᵀ, (feature, path and mode) and (gated input, path and mode)."""

    left: Any
    right: Any

    def map(self, strengths: Float[Array, "time path mode"]) -> Float[Array, "time feature input"]:
        flat = strengths.reshape(strengths.shape[0], -1)
        return jnp.einsum("om,tm,im->toi", self.left, flat, self.right)


def assembly(paths: Sequence[Path], left: Sequence[Any], right: Sequence[Any], plan: Any) -> Assembly:
    """How the maps U_p diag(B_p) V_pᵀ of all paths add up to that of a bound net."""
    writes, size = dict(plan.writes), dict(plan.graph.sizes)
    ends = np.cumsum([0, *(size[source] for source, _ in plan.blocks)])
    xp = jnp if is_traced(left, right) else np
    lefts, rights = [], []
    for path, block, own_left, own_right in zip(paths, blocks_of_paths(plan, paths), left, right, strict=True):
        is_open = block is not None
        columns = range(ends[block], ends[block + 1]) if is_open else [0] * own_right.shape[0]
        lefts.append(np.eye(plan.d_out)[:, list(writes[path.target])] @ own_left)
        rights.append(is_open * np.eye(ends[-1])[:, list(columns)] @ own_right)
    return Assembly(xp.concatenate(lefts, axis=1), xp.concatenate(rights, axis=1))


def gated_inputs(moments: PathMoments, plan: Any, task: Task) -> Any:
    """The gated inputs of every sample, (sample, gated input); None for a task without samples."""
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
    seen: Moments
    inputs: Any  # (sample, gated input)


def path_modes(setup: Setup, moments: PathMoments, left: Sequence[Any], right: Sequence[Any]) -> PathModes:
    bound = setup.bound()
    plan, task = bound.net.plan, bound.task
    return PathModes(
        assembly(moments.paths, left, right, plan),
        Moments.of(task),
        gated_inputs(moments, plan, setup.task),
    )


def path_readouts(strengths: Callable[[Any, Any], Any]) -> dict[str, Readout]:
    """Readouts of a theory with `constants.modes`, from the (time, path, mode) strengths of its states."""

    def maps(constants, states):
        return constants.modes.assembly.map(strengths(constants, states))

    def losses(constants, states):
        return jax.vmap(lambda one: loss_of_map(constants.modes.seen, one))(maps(constants, states))

    def outputs(constants, states):
        return jnp.einsum("si,toi->tso", constants.modes.inputs, maps(constants, states))

    return {
        "loss": Readout((), losses),
        "map": Readout(("feature", "input"), maps),
        "outputs": Readout(("sample", "feature"), outputs),
        "path_modes": Readout(("path", "mode"), strengths),
    }
