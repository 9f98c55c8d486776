"""Probing a JAX function inside the user's own training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import _checks
from .._errors import BadInput, shown
from .._noun import is_traced
from ._arguments import joined
from ._measure import OBSERVABLES, Record, flat
from ._names import is_pattern, matching, unknown
from ._probe import At, Probe


class JaxProbe(Probe):
    """Looks into a JAX network while a loop trains it; made by `probe.jax`."""

    source = "probe.jax"
    libraries = ("jax",)

    def __init__(
        self, function: Any, layers: Any, inputs: Any, targets: Any, pairs: Any, at: Any, observe: Any, lr: Any
    ):
        if not callable(function):
            raise BadInput(
                f"function is {type(function).__name__}",
                "a function (params, inputs) -> (outputs, {layer: activity})",
                "write one that returns the activities beside the outputs",
            )
        known = None if targets is None else _checks.real_array(targets, "targets")
        super().__init__(_checks.number_array(joined(inputs), "inputs"), known, pairs, at, observe, lr)
        check_layers(layers)
        self._function, self._layers, self._inputs = function, layers, inputs
        self._params: Any = None

    def step(self, params: Any) -> None:
        """A step of training begins with these parameters; call it once more after the loop for its end."""
        self._need_open()
        if is_traced(params):
            raise BadInput(
                "probe.step(params) inside a function that JAX is tracing",
                "parameters with values",
                "call it in the Python loop, outside jit, grad and scan",
            )
        self._params = params
        try:
            self._count()
        finally:
            self._params = None

    def _look(self) -> None:
        try:
            found = self._function(self._params, self._inputs)
        except Exception as error:
            raise BadInput(
                f"function fails on the params of step {self.steps} and the inputs: {error}",
                "a function (params, inputs) -> (outputs, {layer: activity}), and its params",
                "try function(params, inputs) by itself",
            ) from error
        if not (isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], Mapping)):
            raise BadInput(
                f"the function gives {type(found).__name__}",
                "(outputs, {layer: activity})",
                "return the activities beside the outputs",
            )
        outputs, activities = found
        samples, do = self._points.samples, "put the sample first"
        hidden = {
            label: flat(activities[name], samples, f"layer {label!r}", do)
            for label, name in chosen(self._layers, [str(name) for name in activities]).items()
        }
        needed = any(OBSERVABLES[name].needs_outputs for name in self._names)
        outputs = flat(outputs, samples, "the output", do) if needed else None
        if self._record is None:
            self._record = Record(self._points, self._names, hidden, outputs)
        self._record.add(self._time, hidden, outputs)

    def _facts(self) -> Mapping[str, Any]:
        assert self._record is not None
        return {"layers": list(self._record.units), "counted": "probe.step()"}

    def _how_to_count(self) -> str:
        return "call probe.step(params) first thing in every turn of the loop"


def check_layers(layers: Any) -> None:
    """Refuse what can name no layers, before there are any to choose from."""
    known = layers is None or isinstance(layers, (str, Mapping))
    if not known and not all(isinstance(name, str) for name in _listed(layers)):
        _checks.names(layers, "layers")


def _listed(layers: Any) -> tuple[Any, ...]:
    needed = 'a name, a pattern, a list, {alias: name} or "middle"'
    return _checks.listed(layers, "layers", needed, "give layers=None for all of them")


def chosen(layers: Any, names: list[str]) -> dict[str, str]:
    """{label: name} of what a user says about layers that are known by name only."""
    if not names:
        raise BadInput("no layers", "activities by name", "give at least one: {layer: activity}")
    if layers is None:
        return {name: name for name in names}
    if isinstance(layers, Mapping):
        return {str(alias): _one(name, names) for alias, name in layers.items()}
    if layers == "middle" and "middle" not in names:
        return {names[len(names) // 2]: names[len(names) // 2]}
    if not isinstance(layers, Iterable):
        raise BadInput(
            f"layers = {shown(layers)}",
            'a name, a pattern, a list, {alias: name} or "middle"',
            f"from: {', '.join(names)}",
        )
    listed = [layers] if isinstance(layers, str) else [str(one) for one in layers]
    found = [name for one in listed for name in (matching(one, names) if is_pattern(one) else [_one(one, names)])]
    if not found:
        raise unknown(str(listed[0]) if listed else "", names, "the network", ", ".join(names))
    return {name: name for name in found}


def _one(name: Any, names: list[str]) -> str:
    if name not in names:
        raise unknown(str(name), names, "the network", ", ".join(names))
    return name


def jax(
    function: Callable[[Any, Any], tuple[Any, Mapping[str, Any]]],
    layers: Any = None,
    *,
    inputs: Any,
    targets: Any = None,
    pairs: Iterable[tuple[int, int]] | None = None,
    at: At = 1,
    observe: str | Iterable[str] | None = None,
    lr: float | None = None,
) -> JaxProbe:
    """Record how a JAX network represents some inputs while your own loop trains it.

        with fs.probe.jax(activities, inputs=x, pairs=[(0, 1)], at=20) as probe:
            for batch in batches:
                probe.step(params)
                params = update(params, batch)
            probe.step(params)  # the end

    `function(params, inputs)` gives (outputs, {layer: activity}), each (sample, …); `params` is whatever the loop
    trains, an Equinox model for example. It is called only at the steps to record. `inputs` is what it takes: an array,
    or a tuple or dict of them. `layers` chooses among the names: one, a pattern, a list, {alias: name} or "middle"
    (number L // 2); None is all. Nothing tells the probe of the end of the last step, so call `step` once more after
    the loop. The rest is as in `probe.torch`.
    """
    return JaxProbe(function, layers, inputs, targets, pairs, at, observe, lr)
