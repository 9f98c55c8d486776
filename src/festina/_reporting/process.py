"""How the command line sets up a process of its own: every core, compiled programs kept on disk, little effort on them.

The programs of a quick preset run for less time than XLA would need to make them fast.
"""

from __future__ import annotations

import os

from .._foundation.compilation_cache import CHOSEN, keep_compiled_programs
from .._foundation.program_effort import spend_little_effort


def prepare(*, quick: bool, cache: bool = True) -> None:
    """Set up JAX for this process, which is festina's own; settings of the user's environment win."""
    _use_all_cores()
    if quick:
        spend_little_effort()
    if cache:
        keep_compiled_programs()
    elif CHOSEN in os.environ:
        import jax

        jax.config.update("jax_enable_compilation_cache", False)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _use_all_cores() -> None:
    """One JAX device per core, so that seeds run side by side."""
    import jax

    # On few cores XLA can deadlock: a program that runs on one of its own threads needs the others.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    if "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "") or "JAX_NUM_CPU_DEVICES" in os.environ:
        return
    jax.config.update("jax_num_cpu_devices", cores())
