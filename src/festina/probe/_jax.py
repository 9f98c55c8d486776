"""Probing a JAX function inside the user's own training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from jaxtyping import PyTree
from numpy.typing import ArrayLike

from .._foundation import checks
from .._foundation.checks import is_traced
from .._foundation.errors import BadInput, shown
from ._arguments import joined
from ._backend import STEPS, Backend
from ._measure import Record, flat, needs_outputs
from ._names import is_pattern, matching, unknown
from ._probe import At, Probe

Network: TypeAlias = Callable[[Any, Any], tuple[Any, Mapping[str, Any]]]  # (params, inputs) → outputs, activities


class JaxProbe(Probe):
    """Looks into a JAX network while a loop trains it; made by `probe.jax`."""

    backend = Backend("probe.jax", STEPS, ("jax",))

    def __init__(
        self,
        function: Network,
        layers: object,
        inputs: object,
        targets: object,
        pairs: object,
        at: object,
        observe: object,
        lr: object,
    ):
        if not callable(function):
            raise BadInput(
                f"function is {type(function).__name__}",
                "a function (params, inputs) -> (outputs, {layer: activity})",
                "write one that returns the activities beside the outputs",
            )
        known = None if targets is None else checks.real_array(targets, "targets")
        super().__init__(checks.number_array(joined(inputs), "inputs"), known, pairs, at, observe, lr)
        check_layers(layers)
        self._function, self._layers, self._inputs = function, layers, inputs
        self._params: PyTree = None

    def step(self, params: PyTree) -> None:
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
            answer = self._function(self._params, self._inputs)
        except Exception as error:
            raise BadInput(
                f"function fails on the params of step {self.steps} and the inputs: {error}",
                "a function (params, inputs) -> (outputs, {layer: activity}), and its params",
                "try function(params, inputs) by itself",
            ) from error
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Mapping)):
            raise BadInput(
                f"the function gives {type(answer).__name__}",
                "(outputs, {layer: activity})",
                "return the activities beside the outputs",
            )
        outputs, activities = answer
        samples, do = self._points.samples, "put the sample first"
        hidden = {
            label: flat(activities[name], samples, f"layer {label!r}", do)
            for label, name in chosen(self._layers, [str(name) for name in activities]).items()
        }
        outputs = flat(outputs, samples, "the output", do) if needs_outputs(self._names) else None
        if self._record is None:
            self._record = Record(self._points, self._names, hidden, outputs)
        self._record.add(self._time, hidden, outputs)

    def _facts(self) -> Mapping[str, object]:
        assert self._record is not None
        return {"layers": list(self._record.units), "counted": "probe.step()"}

    def _how_to_count(self) -> str:
        return "call probe.step(params) first thing in every iteration of the loop"


def check_layers(layers: object) -> None:
    """Refuse a value that cannot name layers, before their names are known."""
    known = layers is None or isinstance(layers, (str, Mapping))
    if not known and not all(isinstance(name, str) for name in _listed(layers)):
        checks.names(layers, "layers")


def _listed(layers: object) -> tuple[Any, ...]:
    needed = 'a name, a pattern, a list, {alias: name} or "middle"'
    return checks.listed(layers, "layers", needed, "give layers=None for all of them")


def chosen(layers: object, names: list[str]) -> dict[str, str]:
    """{label: name} of the layers that a user chooses, where layers are known by name only."""
    if not names:
        raise BadInput("no layers", "activities by name", "give at least one: {layer: activity}")
    if layers is None:
        return {name: name for name in names}
    if isinstance(layers, Mapping):
        return {str(alias): _known(name, names) for alias, name in layers.items()}
    if layers == "middle" and "middle" not in names:
        return {names[len(names) // 2]: names[len(names) // 2]}
    if not isinstance(layers, Iterable):
        raise BadInput(
            f"layers = {shown(layers)}",
            'a name, a pattern, a list, {alias: name} or "middle"',
            f"from: {', '.join(names)}",
        )
    asked = [layers] if isinstance(layers, str) else [str(entry) for entry in layers]
    picked = [
        name for entry in asked for name in (matching(entry, names) if is_pattern(entry) else [_known(entry, names)])
    ]
    if not picked:
        raise unknown(str(asked[0]) if asked else "", names, "the network", ", ".join(names))
    return {name: name for name in picked}


def _known(name: object, names: list[str]) -> str:
    if not isinstance(name, str) or name not in names:
        raise unknown(str(name), names, "the network", ", ".join(names))
    return name


def jax(
    function: Network,
    layers: str | Iterable[str] | Mapping[str, str] | None = None,
    *,
    inputs: object,
    targets: ArrayLike | None = None,
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
    (number L // 2 of all L, from 0); None takes all. Nothing tells the probe of the end of the last step, so call
    `step` once more after the loop. The rest is as in `probe.torch`.
    """
    return JaxProbe(function, layers, inputs, targets, pairs, at, observe, lr)
