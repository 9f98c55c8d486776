"""Room for compiled programs: each takes about half a megabyte and several memory maps, and JAX forgets none of them.

Linux lets a process have only so many maps. At the limit (65,530 by default, after some thousand programs) the process
is ended without a word.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from pathlib import Path

import jax

MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
MOST = 12_000  # maps that programs may add: those of some seventy shapes of networks, 1.4 GB
PAUSE = 5.0  # seconds between two looks, which take milliseconds


class _Room:
    looked = -PAUSE
    others = 0  # maps that were left when all programs had been forgotten: of libraries, or of the user


def look_for_room() -> None:
    """`make_room`, if it was not done within the last seconds."""
    now = time.monotonic()
    if now - _Room.looked >= PAUSE:
        _Room.looked = now
        make_room()


def make_room() -> bool:
    """Forget all compiled programs if they take too much memory, or half of the maps that are allowed; True if so."""
    try:
        used = _maps()
        full = used > _Room.others + MOST or used > int(LIMIT.read_text()) // 2
    except OSError:  # a system without such a limit, or without these files
        return False
    if full:
        jax.clear_caches()
        gc.collect()
        _give_back()
        _Room.others = _maps()
    return full


def _give_back() -> None:
    """What was freed, to the system: the C library keeps it for later."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _maps() -> int:
    with MAPS.open("rb") as maps:
        return sum(1 for _ in maps)
