"""Room for compiled programs: each takes about half a megabyte and several memory maps, and JAX forgets none of them.

Linux limits the number of memory maps of a process. At the limit (65,530 by default, after some thousand programs) it
ends the process without a message. Programs are compiled again when needed, so that forgetting them costs only time.
That time is the user's: a library call forgets festina's own programs and no others (`make_room_for_programs`). Only a
process that festina itself has started, of the command line or of tests, forgets all (`make_room`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from .program_effort import Effort, Program

MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
MOST = 12_000  # maps that programs may add: those of some seventy shapes of networks, 1.4 GB
PAUSE = 5.0  # seconds between two looks at the maps, which take milliseconds

# The compiled functions of festina; one that is made inside another function ends with it, and its programs too.
_programs: weakref.WeakSet[Program] = weakref.WeakSet()


class _Maps:
    """What is known of the memory maps of this process."""

    looked = -PAUSE  # when they were counted last
    others = 0  # how many were left when programs had been forgotten: those of libraries and of the user


def compiled(function: Callable[..., Any] | None = None, *, effort: Effort = "full", **options: Any) -> Any:
    """`jax.jit` for the functions of festina, whose programs can then be forgotten without those of the user.

    Args:
        effort: "little" for a function that is called about once per setup, so that compiling is most of its time.
        options: of `jax.jit`.
    """
    if function is None:
        return functools.partial(compiled, effort=effort, **options)
    program = Program(function, effort, **options)
    _programs.add(program)
    return program


def make_room_for_programs() -> bool:
    """Forget festina's own programs if memory maps are many; looks again only after some seconds. True if they were."""
    now = time.monotonic()
    if now - _Maps.looked < PAUSE:
        return False
    _Maps.looked = now
    return _forget_if_many(_forget_programs)


def make_room() -> bool:
    """Forget all programs of this process, the user's among them, if memory maps are many; True if so."""
    return _forget_if_many(jax.clear_caches)


def _forget_programs() -> None:
    for program in list(_programs):
        program.clear_cache()


def _forget_if_many(forget: Callable[[], None]) -> bool:
    try:
        # Programs may take too much memory, or half of the maps that others leave.
        many = _count() - _Maps.others > min(MOST, (int(LIMIT.read_text()) - _Maps.others) // 2)
    except OSError:  # a system without such a limit, or without these files
        return False
    if many:
        forget()
        gc.collect()
        _return_memory()
        _Maps.others = _count()
    return many


def _return_memory() -> None:
    """Return what was freed to the system: the C library keeps it for later."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _count() -> int:
    with MAPS.open("rb") as maps:
        return sum(1 for _ in maps)
