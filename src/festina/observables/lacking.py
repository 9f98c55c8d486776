"""Why a setup does not have an observable: each function says so in words, or "" where nothing is missing."""

from __future__ import annotations

from .._setup.setup import Setup
from ..tasks.base import TaskSequence


def not_linear(setup: Setup) -> str:
    return "" if setup.net.linear else f"{type(setup.net).__name__} is not linear, so it is no single matrix"


def no_linear_layers(setup: Setup) -> str:
    """Require a linear net with a hidden layer."""
    return not_linear(setup) or ("" if setup.net.hidden else "the net has no hidden layer")


def no_samples(setup: Setup) -> str:
    return "" if setup.task.samples is not None else "the task has moments and no samples"


def no_hidden_activity(setup: Setup) -> str:
    """Require samples, and a hidden layer in which they have an activity."""
    return no_samples(setup) or ("" if setup.net.hidden else "the net has no hidden layer")


def no_chain_of_layers(setup: Setup) -> str:
    """Require a chain of two or more layers of weights."""
    net = setup.net
    if net.has_paths or net.skip:
        return f"a {'gated net' if net.has_paths else 'net with skips'} is no chain of layers"
    return "" if net.is_chain and net.hidden else "the net is no chain of two or more layers"


def no_sequence(setup: Setup) -> str:
    return "" if isinstance(setup.task, TaskSequence) else "the task is not a sequence of tasks"
