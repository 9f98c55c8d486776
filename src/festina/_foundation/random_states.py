"""The global random generators of Python, NumPy and torch belong to the user: what festina loads leaves them alone."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def random_states_kept() -> Iterator[None]:
    """Put the global generators back afterwards, however the block ends.

    Loading a library may draw from them: JAX, looking for a cluster, draws from NumPy's. Only libraries already
    loaded can have been seeded, so only their states are saved.
    """
    restore = []
    if "random" in sys.modules:
        python = sys.modules["random"]
        restore.append((python.setstate, python.getstate()))
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        restore.append((numpy.random.set_state, numpy.random.get_state()))
    if hasattr(sys.modules.get("torch"), "get_rng_state"):  # not while torch itself is being loaded
        torch = sys.modules["torch"]
        restore.append((torch.set_rng_state, torch.get_rng_state()))
    try:
        yield
    finally:
        for put_back, state in restore:
            put_back(state)
