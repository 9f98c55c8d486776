"""Setup to JSON and back; nothing is evaluated or unpickled."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

import jax
import numpy as np

from .. import inits, nets, rules, tasks
from .._foundation import checks
from .._foundation.checks import is_traced, positive, real_array
from .._foundation.errors import BadInput, UnknownName, shown
from ..inits.base import Init
from ..nets.base import Net
from ..rules.base import Rule
from ..tasks.base import Task, TaskSequence
from .setup import Setup

FORMAT = 1
KINDS = {"net": nets, "init": inits, "rule": rules}
T = TypeVar("T")


def to_spec(setup: Setup) -> dict[str, Any]:
    """The setup as plain numbers, texts, lists and dicts."""
    if is_traced(setup):
        raise BadInput("a setup with traced values", "concrete numbers", "write setups outside jit, grad and vmap")
    parts = {kind: _noun_spec(getattr(setup, kind)) for kind in KINDS}
    return {
        "festina_setup": FORMAT,
        "task": _task_spec(setup.task),
        **parts,
        "times": np.asarray(setup.requested_times).tolist(),
        "precision": setup.precision,
    }


def from_spec(spec: object) -> Setup:
    """The setup that `to_spec` described."""
    if not isinstance(spec, dict) or spec.get("festina_setup") != FORMAT:
        raise BadInput(
            f"a text with festina_setup = {shown(spec.get('festina_setup') if isinstance(spec, dict) else spec)}",
            f"festina_setup = {FORMAT}",
            "write the file with Setup.to_json of this version",
        )
    wanted = {"task", *KINDS, "times", "precision"}
    if missing := wanted - set(spec):
        raise BadInput(
            f"a setup without {', '.join(sorted(missing))}", f"all of {sorted(wanted)}", "add what is missing"
        )
    parts = {kind: _noun_from(spec[kind], kind, module) for kind, module in KINDS.items()}
    times = real_array(spec["times"], "times", ndim=1)
    return Setup(_task_from(spec["task"]), **parts, times=times, precision=spec["precision"])


def to_json(setup: Setup) -> str:
    """The setup as JSON text."""
    return json.dumps(to_spec(setup))


def from_json(text: str) -> Setup:
    """The setup that `to_json` wrote."""
    try:
        spec = json.loads(checks.text(text, "text"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadInput(f"text that is not JSON: {error}", "JSON written by Setup.to_json", "check the file") from None
    return from_spec(spec)


def _noun_spec(part: Net | Init | Rule) -> dict[str, Any]:
    fields = dataclasses.fields(part)  # pyright: ignore[reportArgumentType]
    return {type(part).__name__: {f.name: _plain(getattr(part, f.name)) for f in fields}}


def _noun_from(spec: object, kind: str, module: ModuleType) -> Any:
    name, arguments = _named(spec, kind)
    if name not in module.__all__:
        raise UnknownName.among(kind, name, module.__all__)
    return _call(getattr(module, name), arguments, f"{kind} {name}")


def _task_spec(task: Task | TaskSequence) -> dict[str, Any]:
    if isinstance(task, TaskSequence):
        return {"sequence": {"tasks": [_task_spec(t) for t in task.tasks], "durations": _plain(task.durations)}}
    # The recipe counts only while it still describes the arrays.
    if task.recipe is not None:
        spec = {task.recipe[0]: json.loads(task.recipe[1])}
        if _task_from(spec) == task:
            return spec
    names = {name: list(value) for name in ("inputs", "features") if (value := getattr(task, name)) is not None}
    if task.samples is not None:
        items = {} if task.items is None else {"items": list(task.items)}
        labels = {} if task.labels is None else {"labels": _plain(task.labels)}
        return {"from_arrays": {"x": _plain(task.x), "y": _plain(task.y), **labels, **items, **names}}
    moments = {"cov_yx": _plain(task.cov_yx), "cov_x": _plain(task.cov_x)}
    if task.power is not None:
        # A task keeps of Σʸ its trace alone.
        moments["power"] = float(task.power)
    return {"moments": {**moments, **names}}


def _task_from(spec: object) -> Task | TaskSequence:
    name, arguments = _named(spec, "task")
    if name == "sequence" and isinstance(arguments.get("tasks"), list):
        arguments = {**arguments, "tasks": [_task_from(part) for part in arguments["tasks"]]}
    if name == "moments":
        return _task_of_moments(**arguments)
    if name not in tasks.__all__:
        raise UnknownName.among("task", name, [*tasks.__all__, "moments"])
    return _call(getattr(tasks, name), arguments, f"task {name}")


def _task_of_moments(*, power: object = None, **arguments: object) -> Task:
    power = None if power is None else positive(power, "power", zero=True)
    return dataclasses.replace(_call(tasks.from_moments, arguments, "task moments"), power=power)


def _named(spec: object, kind: str) -> tuple[str, dict[str, Any]]:
    if isinstance(spec, dict) and len(spec) == 1:
        name, arguments = next(iter(spec.items()))
        if isinstance(arguments, dict):
            return name, arguments
    raise BadInput(f"{kind} described by {shown(spec)}", '{"Name": {…arguments…}}', "see Setup.to_json")


def _call(make: Callable[..., T], arguments: dict[str, Any], what: str) -> T:
    try:
        return make(**arguments)
    except TypeError as error:
        raise BadInput(f"{what}: {error}", "the arguments of its function", "see Setup.to_json") from None


def _plain(value: object) -> Any:
    """Arrays as nested lists, which Python's JSON writes and reads without loss."""
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return np.asarray(value).tolist()
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value
