"""What all nouns share: frozen dataclasses that are JAX pytrees.

Numbers one may want to vary are leaves; structure (`static()`) is not. Validation runs
when a user builds a noun, never when JAX rebuilds one around traced values.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from jax.core import Tracer

from ._errors import BadInput

T = TypeVar("T")


def static(**options) -> Any:
    """A field that is structure: hashable, compared by value, fixed at compile time."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def noun(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree, equal by value."""
    own_repr = "__repr__" in cls.__dict__
    dataclass = dataclasses.dataclass(frozen=True, eq=False, repr=not own_repr)(cls)
    fields = dataclasses.fields(dataclass)  # pyright: ignore[reportArgumentType]
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    structure = tuple(f.name for f in fields if f.metadata.get("static"))

    def flatten_with_keys(node):
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in leaves)
        return children, tuple(getattr(node, name) for name in structure)

    def flatten(node):
        return tuple(getattr(node, name) for name in leaves), tuple(getattr(node, n) for n in structure)

    def unflatten(meta, children):
        node = object.__new__(dataclass)
        for name, value in (*zip(leaves, children, strict=True), *zip(structure, meta, strict=True)):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(dataclass, flatten_with_keys, unflatten, flatten)
    dataclass.__eq__ = _equal  # pyright: ignore[reportAttributeAccessIssue]
    dataclass.__hash__ = _hash  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass


def _equal(one: Any, other: object) -> bool:
    if type(one) is not type(other):
        return NotImplemented
    (mine, shape), (theirs, other_shape) = jax.tree.flatten(one), jax.tree.flatten(other)
    return shape == other_shape and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))


def _hash(one: Any) -> int:
    return hash((type(one), jax.tree.structure(one)))


def is_traced(*trees: Any) -> bool:
    """True where JAX is tracing: values are then unknown and cannot be checked."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(trees))


def real_array(value: Any, argument: str, ndim: int | tuple[int, ...] | None = None) -> Any:
    """`value` as a finite float64 array of the wanted rank; traced values pass untouched."""
    if is_traced(value):
        return value
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":  # text, complex numbers and objects are not converted in silence
        raise BadInput(
            f"{argument} is {type(value).__name__}: {_short(value)}",
            f"{argument} as real numbers in a rectangular array",
            f"convert it first, for example numpy.asarray({argument}, dtype=float)",
        )
    array = array.astype(np.float64)  # a copy: what a caller changes later is not ours
    array.setflags(write=False)
    wanted = (ndim,) if isinstance(ndim, int) else ndim
    if wanted is not None and array.ndim not in wanted:
        raise BadInput(
            f"{argument} has shape {array.shape}",
            f"{' or '.join(map(str, wanted))} dimension(s)",
            f"reshape {argument}" + (f", for example {argument}[:, None]" if array.ndim == 1 and 2 in wanted else ""),
        )
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise BadInput(
            f"{argument} has {int((~np.isfinite(array)).sum())} value(s) that are NaN or infinite, "
            f"the first at index {where}",
            f"finite numbers in {argument}",
            "remove or impute these entries",
        )
    return array


def positive(value: Any, argument: str, *, zero: bool = False) -> Any:
    """`value` as a positive finite number (or zero, where allowed); traced values pass."""
    if is_traced(value):
        return value
    number = real_array(value, argument, ndim=0)
    if number < 0 or (number == 0 and not zero):
        raise BadInput(
            f"{argument} = {value}",
            f"{argument} {'>=' if zero else '>'} 0",
            f"give a {'non-negative' if zero else 'positive'} {argument}",
        )
    return float(number)


def whole(value: Any, argument: str, *, least: int = 1) -> int:
    """`value` as an int of at least `least`; booleans and fractions are refused."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise BadInput(
            f"{argument} = {_short(value)}",
            f"a whole number >= {least} for {argument}",
            f"give {argument} as an int, for example {max(least, 8)}",
        )
    return int(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
