"""Tasks remember how they were made, so that a setup can be written as a short JSON text."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
from collections.abc import Callable
from typing import Any, ParamSpec

from .._foundation.checks import number_array
from .base import Task

P = ParamSpec("P")


def recipe(make: Callable[P, Task]) -> Callable[P, Task]:
    """Mark a task by the function and the arguments that make it."""

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> Task:
        given = inspect.signature(make).bind(*args, **kwargs)
        given.apply_defaults()
        task = make(*args, **kwargs)
        plain = {name: _plain(value, name) for name, value in given.arguments.items()}
        return dataclasses.replace(task, recipe=(make.__name__, json.dumps(plain)))

    return made


def _plain(value: object, argument: str) -> Any:
    """A checked argument as JSON has it: arrays of any library as lists of Python's numbers."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, range)):
        return [_plain(entry, argument) for entry in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return number_array(value, argument).tolist()
