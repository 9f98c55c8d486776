"""What has been computed from a setup, remembered by it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TypeVar

from .._foundation.read_only import read_only

T = TypeVar("T")


class Memory:
    """Cached results of one setup, by name and seed; a dozen assumptions ask for the same initial weights.

    A memory belongs to one setup. A setup with other times or another rule may begin with a copy: a result depends on
    the task, the net and the init alone, unless its name says on what else.
    """

    def __init__(self, results: Mapping[Hashable, object] = MappingProxyType({})):
        self._results = dict(results)

    def copy(self) -> Memory:
        return Memory(self._results)

    def recall(self, name: Hashable, compute: Callable[[], T]) -> T:
        """The result of this name, computed when it is first asked for; copies share its arrays: they refuse writes."""
        if name not in self._results:
            self._results[name] = read_only(compute())
        return self._results[name]  # pyright: ignore[reportReturnType]
