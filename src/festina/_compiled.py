"""Room for compiled programs: each is several memory maps, and Linux lets a process have only so many.

At the limit (65,530 by default, after some thousand programs) the process is ended without a word.
"""

from __future__ import annotations

from pathlib import Path

import jax

MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")


def make_room() -> bool:
    """Forget all compiled programs if they have used up half of the maps that the system allows; True if so."""
    try:
        with MAPS.open("rb") as maps:
            used = sum(1 for _ in maps)
        full = used > int(LIMIT.read_text()) // 2
    except OSError:  # a system without such a limit, or without these files
        return False
    if full:
        jax.clear_caches()
    return full
