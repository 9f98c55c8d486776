"""The map of a linear net, and its strengths along the modes of the task."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas.modes import Modes, level_members, modes_at, shared_modes
from .._foundation.arrays import AnyArray, Weights
from .._foundation.program_memory import compiled
from .._setup.setup import Setup
from ..nets.base import Net
from ..tasks.base import Task, TaskSequence
from .base import Observable, Occasion, Part, View, of_map
from .lacking import not_linear


def _modes_of_starts(occasion: Occasion) -> Modes:
    task, net, weights = occasion.lifted.single_task, occasion.lifted.net, occasion.weights
    if task.d_out <= 2 * task.d_in:
        return modes_of_starts(task.moments_only(), net, weights)
    starts = [jax.tree.map(lambda leaf, k=k: leaf[k], weights) for k in range(len(jax.tree.leaves(weights)[0]))]
    modes = [modes_at(task.cov_yx, task.cov_x, net.map(start)) for start in starts]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *modes)


@compiled(effort="little")
def modes_of_starts(task: Task, net: Net, weights: Weights) -> Modes:
    """The task's modes, fitted to the start of every seed."""
    return jax.vmap(lambda start: shared_modes(task.cov_yx, task.cov_x, net.map(start)))(weights)


# The modes of the task; where singular values are equal, in the basis that fits the start.
MODES = Part("modes", _modes_of_starts, of_seed=lambda setup, seed: setup.modes(seed))
# Shares of the modes in each level of equal singular values, (level, mode).
_LEVELS = Part(
    "levels", lambda occasion: level_members(np.asarray(occasion.lifted.single_task.modes().singular_values))
)


def _no_map(setup: Setup) -> str:
    """Require a linear net, or a gated net whose gated inputs do not change during the run."""
    if not setup.net.has_paths:
        return not_linear(setup)
    starts = setup.task.starts[1:] if isinstance(setup.task, TaskSequence) else ()
    changes = any(time <= setup.times[-1] for time in (*starts, *setup.net.switch_times))
    return "the map of a gated net is one of gated inputs, and these change during the run" if changes else ""


def _level_strengths(view: View, matrix: Float[AnyArray, "out in"]) -> Float[AnyArray, " level"]:
    return jnp.asarray(view[_LEVELS] @ view[MODES].strengths(matrix))


OBSERVABLES = {
    "map": Observable(("feature", "input"), lambda view, w: view.net.map(w), _no_map, narrow=True),
    "modes": Observable(
        ("mode",), lambda view, w: view[MODES].strengths(view.net.map(w)), not_linear, (MODES,), narrow=True
    ),
    "levels": of_map(("level",), _level_strengths, not_linear, (MODES, _LEVELS)),
}
