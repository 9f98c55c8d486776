"""Tasks solved one after another: each stage starts from the weights that the one before ends with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from .._formulas import tangent_kernel
from .._foundation.arrays import AnyArray, Weights
from .._foundation.errors import NoTheory, UnknownName
from .._foundation.precision import in_double
from .._setup.joined import FORGETTING, concatenated, forgotten, joined
from .._setup.loss import Moments, loss_of_map
from .._setup.setup import Setup
from .._setup.stages import Stage, is_sequence, label, stages, tasks_of
from .._setup.trajectory import Trajectory
from ..inits.given import Given
from ..observables import OBSERVABLES
from ..tasks.base import Task
from ..theories._stated_error import Carried
from ..theories.base import KINDS


def solved(
    setup: Setup,
    asked: tuple[str, ...],
    seed: int,
    solve: Callable[..., tuple[Trajectory, Callable[[], Carried]]],
) -> Trajectory:
    """Every stage solved from the weights that the one before ends with.

    `solve(setup, names, *carried)` solves one stage, and also returns a function that gives the error of its last
    weights, which the next stage carries on.
    """
    stages_solved, parts, init, carried = stages(setup), [], setup.init, ()
    of_one_task = tuple(name for name in asked if name not in ("task_loss", FORGETTING))
    for stage in stages_solved:
        part, end_error = solve(stage.setup.replace(init=init), of_one_task, *carried)
        parts.append(part)
        if stage.hands_on:
            init, carried = Given(_handed_on(part, len(parts))), (end_error(),)
    shared = [name for name in parts[0] if all(name in part for part in parts)]
    if "map" in shared and OBSERVABLES["map"].lacks(setup):
        shared.remove("map")
    values: dict[str, Any] = {name: functools.partial(concatenated, stages_solved, parts, name) for name in shared}
    axes = {name: parts[0].axes[name] for name in shared}
    if {"input_representation", "output_representation"} <= set(shared) and setup.net.depth == 2:
        # A stage measures the kernel distance from its own start; here it counts from the first.
        grams = (values["input_representation"], values["output_representation"])
        values["kernel_distance"] = functools.partial(_kernel_distance, setup, setup.weights(seed), *grams)
    else:
        values.pop("kernel_distance", None)
    if "map" in shared and setup.net.linear and is_sequence(setup):
        losses = functools.cache(lambda: [_losses(setup, part["map"]) for part in parts])
        values["task_loss"] = lambda: np.concatenate(
            [v[s.on_grid] for s, v in zip(stages_solved, losses(), strict=True)]
        )
        values[FORGETTING] = lambda: forgotten(stages_solved, [np.asarray(loss)[None] for loss in losses()])[0]
        axes |= dict.fromkeys(("task_loss", FORGETTING), ("time", "task"))
    whole = joined(setup, stages_solved, parts, values, axes, _facts(setup, stages_solved, parts))
    for name in asked:
        if name not in values:
            raise UnknownName.among(f"observable of {whole.source}", name, values)
        whole[name]
    return whole


def _facts(setup: Setup, stages_solved: Sequence[Stage], parts: Sequence[Trajectory]) -> dict[str, Any]:
    """Assumptions and errors of all stages; the kind is that of the weakest theory."""
    assumptions = [
        {**assumption, "name": f"{label(setup, stage)}: {assumption['name']}"}
        for stage, part in zip(stages_solved, parts, strict=True)
        for assumption in part.provenance["assumptions"]
    ]
    kind = max((part.provenance["kind"] for part in parts), key=KINDS.index)
    errors = [functools.partial(part._fact, "error") for part in parts]
    return {
        "assumptions": assumptions,
        "exact": kind == "exact",
        "kind": kind,
        "error": lambda: max(error() for error in errors),
    }


def _handed_on(part: Trajectory, number: int) -> Weights:
    if part.weights is None:
        raise NoTheory(
            f"{part.source} does not know the weights that task {number} ends with",
            "a theory that hands weights on to the next task",
            "use BalancedRiccati, or train the sequence with simulate",
        )
    return part.weights


@in_double
def _losses(setup: Setup, maps: Float[AnyArray, "time feature input"]) -> Float[AnyArray, "time task"]:
    """The loss of every task under the predicted map."""

    def of_task(task: Task) -> Float[AnyArray, " time"]:
        return jax.vmap(functools.partial(loss_of_map, Moments.of(task)))(maps)

    return jnp.stack([of_task(task) for task in tasks_of(setup)], axis=1)


def _kernel_distance(
    setup: Setup,
    start: Weights,
    inner: Callable[[], Float[AnyArray, "time input input"]],
    outer: Callable[[], Float[AnyArray, "time feature feature"]],
) -> Float[AnyArray, " time"]:
    """The distance of the tangent kernel from that before the first task."""

    @in_double
    def at_all_times(
        cov_x: Float[AnyArray, "input input"],
        start: Weights,
        inner: Float[AnyArray, "time input input"],
        outer: Float[AnyArray, "time feature feature"],
    ) -> Float[AnyArray, " time"]:
        first = tangent_kernel.tangent(start)

        def distance(inner: Float[AnyArray, "input input"], outer: Float[AnyArray, "feature feature"]) -> AnyArray:
            return tangent_kernel.distance(first, tangent_kernel.two_layers(inner, outer), cov_x)

        return jax.vmap(distance)(jnp.asarray(inner), jnp.asarray(outer))

    return at_all_times(setup.first_task.cov_x, start, inner(), outer())
