"""What `festina list`, `show` and `doctor` print: all members, one member in full, and the installation."""

from __future__ import annotations

import inspect
import os
from typing import Any

from .. import experiments, inits, nets, rules, tasks
from .._foundation.compilation_cache import cache_folder, cache_size
from .._foundation.errors import UnknownName
from .._verbs.covering import coverage, members
from .experiment import Experiment
from .provenance import versions


def catalogue() -> dict[str, dict[str, str]]:
    """Every member of every kind with its first line."""
    return {
        "experiments": {name: Experiment.named(name).finding for name in experiments.__all__},
        "theories": {name: _first_line(member) for name, member in sorted(members().items())},
        **{
            kind: {name: _first_line(getattr(module, name)) for name in module.__all__}
            for kind, module in (("tasks", tasks), ("nets", nets), ("inits", inits), ("rules", rules))
        },
    }


def describe(name: str, *, measure: bool = False) -> dict[str, Any]:
    """One member, whole; `measure` measures the assumptions of a theory on its example, which takes seconds."""
    every = catalogue()
    kind = next((kind for kind, members_of_kind in every.items() if name in members_of_kind), None)
    if kind is None:
        raise UnknownName.among("name", name, [n for members_of_kind in every.values() for n in members_of_kind])
    if kind == "experiments":
        experiment = Experiment.named(name)
        text = f"{experiment.finding}\n\n{experiment.description}".strip()
        references = {entry["key"]: f"{entry['where']} — {entry['text']}" for entry in experiment.reference}
        facts = {"parameters": experiment.parameters(), "quick": dict(experiment.module.QUICK), "reference": references}
        facts["presets"] = {k: v for k, v in experiment.presets.items() if k not in ("full", "quick")}
        return {"name": name, "kind": "experiment", "text": text, **facts}
    if kind == "theories":
        theory = members()[name]
        text = inspect.getdoc(inspect.getmodule(theory)) or ""
        facts = {"name": name, "kind": "theory", "text": text, "reference": dict(theory.reference)}
        if measure:
            facts["example"] = {
                a.name: f"{a.statement}; {str(a).removeprefix(f'{a.name}: ')}"
                for a in coverage(theory.example(), theory()).assumptions
            }
        return facts
    module = {"tasks": tasks, "nets": nets, "inits": inits, "rules": rules}[kind]
    member = getattr(module, name)
    text = f"{name}{inspect.signature(member)}\n\n{inspect.getdoc(member)}"
    return {"name": name, "kind": kind.rstrip("s"), "text": text}


def health() -> dict[str, Any]:
    """Versions, devices, precision and caches of this installation."""
    import jax

    devices, settings, folder = jax.devices(), jax.config.values, cache_folder()
    files, size = cache_size(folder)
    return {
        "versions": versions(),
        "devices": [f"{d.platform}:{d.id} {d.device_kind}" for d in devices],
        "cores": os.cpu_count(),
        "precision": "float64 inside festina; JAX's own default is "
        + ("float64" if settings["jax_enable_x64"] else "float32"),
        "caches": {
            "compilation": f"{folder}: {files} files, {size / 1e6:.1f} MB; --no-cache does without",
            "data": os.environ.get("FESTINA_DATA", "none (set FESTINA_DATA)"),
        },
    }


def _first_line(member: Any) -> str:
    return (inspect.getdoc(member) or "").splitlines()[0]
