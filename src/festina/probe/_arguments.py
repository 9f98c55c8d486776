"""What goes into a network and what comes out of it: one array, or several by place or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Float

from .._foundation.checks import real_array
from .._foundation.errors import BadInput

MAIN = "logits"  # what classifiers and language models call their output among others
DEEPEST = 32  # tuples and dicts in each other; one that holds itself has no end


def increasing(times: object) -> Float[np.ndarray, " time"]:
    """The times of a record, refused unless they increase."""
    checked = real_array(times, "times", ndim=1)
    if not len(checked) or (np.diff(checked) <= 0).any():
        raise BadInput(f"times = {checked}", "at least one time, increasing", "sort the records by time")
    return checked


def leaves(value: object, where: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The leaves of nested tuples and dicts in their order, each with its place."""
    if depth > DEEPEST:
        _refuse_endless(where)
    if isinstance(value, Mapping):
        parts = [(f"{where}[{key!r}]", part) for key, part in value.items()]
    elif isinstance(value, tuple):
        parts = [(f"{where}[{number}]", part) for number, part in enumerate(value)]
    else:
        yield where, value
        return
    for place, part in parts:
        yield from leaves(part, place, depth + 1)


def _refuse_endless(where: str) -> NoReturn:
    raise BadInput(
        f"{where.partition('[')[0] or 'inputs'} with tuples and dicts in each other without end",
        f"at most {DEEPEST} in each other",
        "give arrays, or one tuple or dict of them",
    )


def mapped(change: Callable[[Any, str], Any], value: object, where: str) -> Any:
    """The same tuples and dicts with change(leaf, place) for every leaf."""
    if where.count("[") > DEEPEST:
        _refuse_endless(where)
    if isinstance(value, Mapping):
        return {key: mapped(change, part, f"{where}[{key!r}]") for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(mapped(change, part, f"{where}[{number}]") for number, part in enumerate(value))
    return change(value, where)


def is_array(value: object) -> bool:
    """An array or tensor with at least one axis."""
    return bool(getattr(value, "shape", ()))


def are_several(inputs: object) -> bool:
    """Whether inputs are several arguments, and not one array, which may be written as a tuple of rows of numbers."""
    if isinstance(inputs, Mapping):
        return True
    return isinstance(inputs, tuple) and any(is_array(leaf) for _, leaf in leaves(inputs, ""))


def joined(inputs: object) -> Any:
    """The numbers of every sample side by side, (sample, number), if inputs are several; one array stays as it is.

    The first array says how many samples there are. What has another first axis, such as a mask, belongs to none.
    """
    if not are_several(inputs):
        return inputs
    arrays = {where: np.asarray(part) for where, part in leaves(inputs, "inputs") if is_array(part)}
    if not arrays:
        raise BadInput(
            f"inputs is {type(inputs).__name__} without an array",
            "at least one array (sample, …) in it",
            "give the arguments of the model: inputs={name: array}, or a tuple in their order",
        )
    samples = len(next(iter(arrays.values())))
    of_samples = {where: array for where, array in arrays.items() if len(array) == samples}
    flat = [real_array(array, where).reshape(samples, -1) for where, array in of_samples.items()]
    return np.concatenate(flat, axis=1)


def shapes(inputs: object) -> str:
    """The shapes of inputs, in words."""
    parts = list(leaves(inputs, ""))
    if len(parts) == 1 and not parts[0][0]:
        return str(tuple(parts[0][1].shape))
    return ", ".join(f"{where} {tuple(part.shape)}" for where, part in parts if is_array(part))


def main_output(output: object, is_tensor: Callable[[object], bool], samples: int) -> tuple[str, Any] | None:
    """The one of several outputs that is taken by default, and its place: the logits, or the first (sample, …).

    An object counts as the dict of its attributes.
    """
    parts = output if isinstance(output, (Mapping, tuple, list)) else dict(getattr(output, "__dict__", {}))
    parts = tuple(parts) if isinstance(parts, list) else parts
    if isinstance(parts, Mapping) and is_tensor(parts.get(MAIN)):
        return repr(MAIN), parts[MAIN]
    for where, part in leaves(parts, ""):
        if is_tensor(part) and is_array(part) and len(part) == samples:
            return where[1:-1], part
    return None
