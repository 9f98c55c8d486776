"""The public names of festina, and what the API pages show of each."""

from __future__ import annotations

import functools
import inspect
from types import ModuleType
from typing import Any

import festina


def kinds() -> dict[str, ModuleType]:
    """The public modules, by the name that they have below `festina`."""
    values = {name: getattr(festina, name) for name in festina.__all__}
    return {name: value for name, value in values.items() if isinstance(value, ModuleType)}


@functools.cache
def public_names() -> frozenset[str]:
    """Every public name below `festina`, dotted; the modules themselves are not among them."""
    members = {f"{kind}.{name}": getattr(module, name) for kind, module in kinds().items() for name in module.__all__}
    own = {name: getattr(festina, name) for name in festina.__all__ if name not in kinds()}
    # A noun that is public twice, such as Theory, stands where it is a name of its kind.
    twice = {id(value) for value in members.values()}
    return frozenset({name for name, value in own.items() if id(value) not in twice} | set(members))


@functools.cache
def places() -> dict[str, str]:
    """Where a single class name stands, for types in signatures: Setup is festina.Setup."""
    found: dict[str, str] = {}
    for name in sorted(public_names(), key=lambda name: name.count(".")):
        found.setdefault(name.rpartition(".")[2], f"festina.{name}")
    return found


def value_of(name: str) -> Any:
    """What a dotted name below `festina` stands for."""
    value: Any = festina
    for part in name.split("."):
        value = getattr(value, part)
    return value


def target_of(name: str) -> str | None:
    """The full name under which the API documents a name; None if it is not public."""
    if name in kinds():
        return f"festina.{name}"
    if name in public_names():
        return f"festina.{name}"
    if name in festina.__all__:
        return places()[name]
    owner, _, member = name.rpartition(".")
    if owner and (place := target_of(owner)) and owner not in kinds():
        value = value_of(owner)
        if inspect.isclass(value) and not member.startswith("_") and hasattr(value, member):
            return f"{place}.{member}"
    return None
