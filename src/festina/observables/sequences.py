"""A sequence of tasks: the loss of each of them while another one is trained."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._setup.loss import Moments, Samples, evidence_of, loss
from ..nets.base import Net
from .base import Observable, Occasion, Part, View
from .lacking import no_sequence


def _nets_and_evidence(occasion: Occasion) -> tuple[tuple[Net, Moments | Samples], ...]:
    setup = occasion.setup
    lifted = [setup.net.lifted(task) for task in occasion.tasks]
    return tuple((net, evidence_of(net, task, full_batch=setup.rule.full_batch)) for net, task in lifted)


_TASKS = Part("tasks", _nets_and_evidence)  # the net, and what the loss is computed from, for every task


def _task_losses(view: View, weights: Weights) -> Float[AnyArray, " task"]:
    return jnp.stack([loss(net, evidence, weights) for net, evidence in view[_TASKS]])


OBSERVABLES = {"task_loss": Observable(("task",), _task_losses, no_sequence, (_TASKS,), narrow=True)}
