"""Tasks remember how they were made, so that a setup can be written as a short JSON text."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from .._errors import BadInput
from .._setup import Task

P = ParamSpec("P")


def recipe(make: Callable[P, Task]) -> Callable[P, Task]:
    """Mark a task by the function and the arguments that make it."""

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Task:
        bound = inspect.signature(make).bind(*args, **kwargs)
        bound.apply_defaults()
        task = make(*args, **kwargs)
        return dataclasses.replace(task, recipe=(make.__name__, json.dumps(bound.arguments, default=_plain)))

    return made


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise BadInput(f"{value!r} as an argument of a task", "numbers, texts, lists", "give plain values")
