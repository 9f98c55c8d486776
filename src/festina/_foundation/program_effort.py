"""How much effort XLA spends on a program: all it can, or little where compiling takes longer than running.

Most programs of festina run once, for milliseconds, while XLA needs up to a second to make each of them fast. With
little effort it needs a third of that, and the program runs several times slower. Results agree to rounding, which is
why programs on float32 numbers always get full effort: there, rounding shows after long training.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np
from jax.core import Tracer

Effort = Literal["full", "little"]

# No optimisation of machine code, and loops written without MLIR, whose compiler is slow.
LITTLE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}

_probe = jax.jit(lambda: 0)  # a tracer while a function is being traced; much cheaper than an operation


class _Process:
    """Settings for all programs of this process."""

    effort: Effort = "full"


def spend_little_effort() -> None:
    """Compile every program of this process with little effort; for a process that festina itself has started."""
    _Process.effort = "little"


def is_tracing() -> bool:
    """Whether a function is being traced here, so that operations on plain numbers become part of its program."""
    return isinstance(_probe(), Tracer)


class Program:
    """A function that `jax.jit` compiles once for each shape of its arguments, with full or little effort.

    Inside another function that is being compiled it becomes a part of that program, and is compiled as that is.
    """

    def __init__(self, function: Callable[..., Any], effort: Effort, **options: Any):
        functools.update_wrapper(self, function)
        self._function, self._effort, self._options = function, effort, options
        self._full = jax.jit(function, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._effort == "full" and _Process.effort == "full":
            return self._full(*args, **kwargs)
        suits = not is_tracing() and all(map(_suits_little_effort, jax.tree.leaves((args, kwargs))))
        return (self._quick if suits else self._full)(*args, **kwargs)

    @functools.cached_property
    def _quick(self) -> Any:
        options = _understood_options()
        return jax.jit(self._function, compiler_options=options, **self._options) if options else self._full

    def clear_cache(self) -> None:
        """Forget what has been compiled."""
        for program in self._compiled():
            program.clear_cache()

    def _cache_size(self) -> int:
        return sum(program._cache_size() for program in self._compiled())

    def _compiled(self) -> list[Any]:
        return [self._full, *([self._quick] if "_quick" in self.__dict__ else [])]


def _suits_little_effort(leaf: object) -> bool:
    """Whether an argument is a number, or a batch of numbers inside `jax.vmap`, and not in float32."""
    if getattr(leaf, "dtype", None) == np.float32:
        return False
    while isinstance(leaf, Tracer) and type(leaf).__name__ == "BatchTracer":  # JAX has no public name for it
        leaf = leaf.val
    return not isinstance(leaf, Tracer)


@functools.cache
def _understood_options() -> dict[str, Any] | None:
    """The options of little effort if this version of XLA and this device know them."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=LITTLE)()
    except (ValueError, RuntimeError):  # options come and go with versions of XLA
        return None
    return LITTLE
