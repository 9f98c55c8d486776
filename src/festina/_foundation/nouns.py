"""The `@noun` decorator: frozen dataclasses that are JAX pytrees, such as Setup and its parts.

Numbers that one may want to vary are leaves of the pytree; structure (`static()`) is not. Values are checked when a
user creates an object, never when JAX rebuilds one around traced values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

T = TypeVar("T")


def static(**options: Any) -> Any:
    """A field that is structure: hashable, compared by value, fixed at compile time."""
    return dataclasses.field(metadata={"static": True}, **options)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def noun(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree, equal by value."""
    defines_repr = "__repr__" in cls.__dict__
    dataclass = dataclasses.dataclass(frozen=True, eq=False, repr=not defines_repr)(cls)
    fields = dataclasses.fields(dataclass)  # pyright: ignore[reportArgumentType]
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    structure = tuple(f.name for f in fields if f.metadata.get("static"))

    def flatten_with_keys(node: object):
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in leaves)
        return children, tuple(getattr(node, name) for name in structure)

    def flatten(node: object):
        return tuple(getattr(node, name) for name in leaves), tuple(getattr(node, n) for n in structure)

    def unflatten(meta: tuple[object, ...], children: Iterable[object]) -> object:
        node = object.__new__(dataclass)
        for name, value in (*zip(leaves, children, strict=True), *zip(structure, meta, strict=True)):
            object.__setattr__(node, name, value)
        return node

    jax.tree_util.register_pytree_with_keys(dataclass, flatten_with_keys, unflatten, flatten)
    dataclass.__eq__ = _equal  # pyright: ignore[reportAttributeAccessIssue]
    dataclass.__hash__ = _hash  # pyright: ignore[reportAttributeAccessIssue]
    return dataclass


def settle(node: object, **values: object) -> None:
    """Give fields of a frozen noun the values that its checks return."""
    for name, value in values.items():
        object.__setattr__(node, name, value)


def _equal(node: object, other: object) -> bool:
    if type(node) is not type(other):
        return NotImplemented
    (leaves, structure), (other_leaves, other_structure) = jax.tree.flatten(node), jax.tree.flatten(other)
    same = structure == other_structure
    return same and all(np.array_equal(a, b) for a, b in zip(leaves, other_leaves, strict=True))


def _hash(node: object) -> int:
    return hash((type(node), jax.tree.structure(node)))
