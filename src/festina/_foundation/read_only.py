"""Results that are remembered and handed out more than once: nobody may write to their arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def read_only(result: T) -> T:
    """The result, whose NumPy arrays now refuse writes."""
    for array in _arrays_in(result):
        array.setflags(write=False)
    return result


def _arrays_in(value: object) -> Iterator[np.ndarray]:
    """The NumPy arrays of a tree of tuples, lists, dicts and dataclasses."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _arrays_in(part)
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _arrays_in(part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _arrays_in(getattr(value, field.name))
