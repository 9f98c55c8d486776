"""festina: how neural networks learn, predicted by theory and checked against training.

    import festina as fs
    setup = fs.Setup(fs.tasks.hierarchy(levels=3), fs.nets.DeepLinear(hidden=32), fs.inits.Aligned(1e-3))
    theory = fs.solve(setup)
    trained = fs.simulate(setup, seeds=4)
    fs.compare(theory, trained).plot()

Importing festina does nothing else: JAX is loaded at first use, and its settings are not touched.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._random_states import random_states_kept
from ._version import __version__

if TYPE_CHECKING:
    from . import gates, inits, nets, probe, rules, tasks, theories
    from ._balance import balance
    from ._compare import Comparison, compare
    from ._contest import race
    from ._errors import BadInput, Diverged, FestinaError, NoTheory, UnknownName
    from ._fit import fit
    from ._report import Claim, Experiment, Report, Result, run
    from ._saddles import Saddles, saddles
    from ._setup import Init, Net, Rule, Setup, Task
    from ._simulate import simulate
    from ._solve import Covering, covering, solve
    from ._trajectory import Trajectory
    from .theories.base import Assumption, Reduction, Theory

# Public name → the module that defines it; None for a submodule of the same name.
_WHERE = {
    # nouns
    "Task": "_setup", "Net": "_setup", "Init": "_setup", "Rule": "_setup", "Setup": "_setup",
    "Theory": "theories.base", "Reduction": "theories.base", "Assumption": "theories.base",
    "Trajectory": "_trajectory", "Comparison": "_compare", "Covering": "_solve",
    "Experiment": "_report", "Result": "_report", "Claim": "_report", "Report": "_report",
    "Saddles": "_saddles",
    # verbs
    "solve": "_solve", "covering": "_solve", "simulate": "_simulate", "compare": "_compare", "run": "_report",
    "balance": "_balance", "race": "_contest", "fit": "_fit",
    "saddles": "_saddles",
    # kinds
    "gates": None, "probe": None, "tasks": None, "nets": None, "inits": None, "rules": None, "theories": None,
    # errors
    "FestinaError": "_errors", "BadInput": "_errors", "UnknownName": "_errors", "NoTheory": "_errors",
    "Diverged": "_errors",
}  # fmt: skip

__all__ = [
    "Assumption",
    "BadInput",
    "Claim",
    "Comparison",
    "Covering",
    "Diverged",
    "Experiment",
    "FestinaError",
    "Init",
    "Net",
    "NoTheory",
    "Reduction",
    "Report",
    "Result",
    "Rule",
    "Saddles",
    "Setup",
    "Task",
    "Theory",
    "Trajectory",
    "UnknownName",
    "__version__",
    "balance",
    "compare",
    "covering",
    "fit",
    "gates",
    "inits",
    "nets",
    "probe",
    "race",
    "rules",
    "run",
    "saddles",
    "simulate",
    "solve",
    "tasks",
    "theories",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'festina' has no attribute {name!r}")
    with random_states_kept():
        module = importlib.import_module(f".{_WHERE[name] or name}", __name__)
    value = getattr(module, name) if _WHERE[name] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
