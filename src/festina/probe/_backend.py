"""The contract of a probe backend: where recorded activity comes from, and what its times count.

A new backend is one file of this folder, with a `Backend`, and its names in `__init__.py`. There are two kinds:

- Activity that has been recorded already: a function that adds all of it to a `Record` (`_measure`), and returns
  `record.trajectory(BACKEND, …)`; `_arrays` is an example.
- A network that a loop of the user's own trains: a class that derives from `Probe` (`_probe`), with a `backend` and a
  `_look`, which is called at the steps to record; `_jax` is an example.

Observables are none of its business: those of `festina.observables` that can be read off activity are there at once.

CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import dataclasses
import platform
from importlib import metadata

from .._figures.style import TIME
from .._foundation.version import __version__

STEPS = "steps"
RECORDED_TIME = "recorded time"  # whatever the user's own times are


@dataclasses.dataclass(frozen=True)
class Backend:
    """What a backend is called, what its times count, and which libraries it needs."""

    name: str  # the source of its trajectories
    clock: str
    libraries: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """Versions of festina, Python, NumPy and the libraries."""
        named = {name: metadata.version(name) for name in ("numpy", *self.libraries)}
        return {"festina": __version__, "python": platform.python_version(), **named}

    def clock_facts(self, lr: float | None) -> dict[str, object]:
        """What a trajectory says of its times, which are lr × steps where a learning rate was given."""
        return {"clock": self.clock} if lr is None else {"lr": lr, "clock": TIME}
