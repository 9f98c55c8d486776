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

from ._foundation.random_states import random_states_kept
from ._foundation.version import __version__

if TYPE_CHECKING:
    from . import gates, inits, nets, probe, rules, tasks, theories
    from ._figures import figures
    from ._formulas.balance import balance
    from ._foundation.compilation_cache import keep_compiled_programs
    from ._foundation.errors import BadInput, Diverged, FestinaError, NoTheory, UnknownName
    from ._reporting.experiment import Experiment
    from ._reporting.report import Report
    from ._reporting.run import run
    from ._setup.setup import Setup
    from ._setup.trajectory import Trajectory
    from ._training.simulate import simulate
    from ._verbs.compare import Comparison, compare
    from ._verbs.covering import Covering, covering
    from ._verbs.fit.fit import fit
    from ._verbs.race.race import race
    from ._verbs.solve import solve
    from .experiments.base import Claim, Result
    from .inits.base import Init
    from .nets.base import Net
    from .observables.saddles import Saddles, saddles
    from .rules.base import Rule
    from .tasks.base import Task
    from .theories.base import Assumption, Reduction, Theory

# Public name → the module that defines it; None for a submodule of the same name.
_WHERE = {
    # nouns
    "Task": "tasks.base",
    "Net": "nets.base",
    "Init": "inits.base",
    "Rule": "rules.base",
    "Setup": "_setup.setup",
    "Theory": "theories.base",
    "Reduction": "theories.base",
    "Assumption": "theories.base",
    "Trajectory": "_setup.trajectory",
    "Comparison": "_verbs.compare",
    "Covering": "_verbs.covering",
    "Experiment": "_reporting.experiment",
    "Result": "experiments.base",
    "Claim": "experiments.base",
    "Report": "_reporting.report",
    "Saddles": "observables.saddles",
    # verbs
    "solve": "_verbs.solve",
    "covering": "_verbs.covering",
    "simulate": "_training.simulate",
    "compare": "_verbs.compare",
    "run": "_reporting.run",
    "balance": "_formulas.balance",
    "race": "_verbs.race.race",
    "fit": "_verbs.fit.fit",
    "saddles": "observables.saddles",
    "keep_compiled_programs": "_foundation.compilation_cache",
    # kinds
    "figures": "_figures",
    "gates": None,
    "probe": None,
    "tasks": None,
    "nets": None,
    "inits": None,
    "rules": None,
    "theories": None,
    # errors
    "FestinaError": "_foundation.errors",
    "BadInput": "_foundation.errors",
    "UnknownName": "_foundation.errors",
    "NoTheory": "_foundation.errors",
    "Diverged": "_foundation.errors",
}

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
    "figures",
    "fit",
    "gates",
    "inits",
    "keep_compiled_programs",
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
