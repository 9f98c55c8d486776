"""Which parts of a torch model to record: found by name, pattern, module, predicate or order."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._foundation.checks import listed, mapping
from .._foundation.errors import BadInput, FestinaError, UnknownName, shown
from ._activations import first_of, is_activation, is_recurrent
from ._evaluate import evaluate, is_module, is_tensor, taken, usable
from ._names import is_pattern, matching, unknown, with_call

if TYPE_CHECKING:
    from torch.nn import Module  # pyright: ignore[reportMissingImports]


@dataclasses.dataclass(frozen=True)
class Target:
    """One layer to record: the output of a module, at one of its calls if there are several, or a function."""

    label: str
    name: str = ""
    module: Module | None = None
    call: int | None = None
    function: Callable[[Any, Any], Any] | None = None
    part: Callable[[Any], object] | None = None  # of what the module gives, where that is more than one tensor

    @property
    def described(self) -> str:
        """The layer as provenance names it."""
        if self.function is not None:
            return f"function {getattr(self.function, '__name__', type(self.function).__name__)}"
        return f"{type(self.module).__name__} {self.name}" + ("" if self.call is None else f", call {self.call}")


class Call(NamedTuple):
    """One call of a module during a forward pass."""

    module: Module
    shape: str
    acts: bool  # as an activation does
    output: object  # kept for the last call only


def names_of(model: Module) -> dict[str, Module]:
    """Every name of every submodule; the layer that torch.compile puts around a module has no name of its own.

    A model without parts is its only layer, called by its class.
    """
    named = {}
    for name, module in model.named_modules(remove_duplicate=False):
        named[".".join(part for part in name.split(".") if part != "_orig_mod")] = module
    named.pop("", None)
    return named or {type(model).__name__: model}


def traced(model: Module, inputs: object) -> tuple[list[Call], Any]:
    """Every call of every submodule in the order in which they end, and the model's output."""
    calls: list[Call] = []
    act: dict[int, bool] = {}

    def note(module: Module, args: tuple[object, ...], output: object) -> None:
        if calls:
            calls[-1] = calls[-1]._replace(output=None)
        if id(module) not in act:
            act[id(module)] = is_activation(module, args, output)
        calls.append(Call(module, shape_of(output), act[id(module)], output))

    output, _ = evaluate(model, inputs, [(m, note) for m in dict.fromkeys(names_of(model).values())])
    return calls, output


def shape_of(value: object) -> str:
    """The shape of a tensor, or in words what else it is."""
    if is_tensor(value):
        return str(tuple(value.shape))
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with {', '.join(map(repr, value))}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"{type(value).__name__} of {len(value)} ({', '.join(type(part).__name__ for part in value)})"
    return type(value).__name__


class Choice(NamedTuple):
    """The layers that are recorded by default, in the order in which they run; what was chosen in words, and a note."""

    targets: list[Target]
    said: str
    note: str


def hidden_layers(model: Module, calls: Sequence[Call], output: object) -> Choice:
    """The calls of activations and recurrent modules, all but one that gives the model's output.

    Where that leaves none, recurrent modules that give the output; without any, the calls of modules without parts
    that have parameters, all but the last.
    """
    names = {id(module): name for name, module in reversed(names_of(model).items())}
    total: dict[int, int] = {}
    leaf_calls: list[tuple[Call, int]] = []
    for call in calls:
        key = id(call.module)
        if not any(call.module.children()):
            leaf_calls.append((call, total.get(key, 0)))
        total[key] = total.get(key, 0) + 1
    weighted = [(call, n) for call, n in leaf_calls if any(True for _ in call.module.parameters())]
    chosen = [(call, n) for call, n in leaf_calls if call.acts and not _gives(call, output)]
    chosen = chosen or [(call, n) for call, n in leaf_calls if is_recurrent(call.module)]
    note = ""
    if not chosen:
        chosen = weighted[:-1]
        note = "no activation modules: layers are modules with parameters, before any functional activation"
    if not chosen:
        raise BadInput(
            f"{type(model).__name__} has no module that is a hidden layer",
            "activations as modules, or the layers by name",
            'give layers="name", or functions={"hidden": lambda model, x: …}; probe.layers(model) lists the names',
        )
    targets = []
    for call, n in chosen:
        name = names[id(call.module)]
        several = total[id(call.module)] > 1
        part = first_of if is_recurrent(call.module) else None
        targets.append(
            Target(f"{name}[{n}]" if several else name, name, call.module, n if several else None, part=part)
        )
    picked = {id(call) for call, _ in chosen}
    left = [call for call, _ in leaf_calls if id(call) not in picked]
    said = f"layers=None took {_counted([call for call, _ in chosen])}" + (
        f", and not {_counted(left)}" if left else ""
    )
    # Fewer layers than modules with weights: some of their activations may be functions, which no one can see.
    if not note and len(chosen) < len(weighted) - 1:
        note = f"{said}; activations that are functions are not seen"
    return Choice(targets, said, note)


def _gives(call: Call, output: object) -> bool:
    return call.output is output or (isinstance(call.output, tuple) and any(part is output for part in call.output))


def _counted(calls: Sequence[Call]) -> str:
    """How many calls of modules of each type, in words."""
    kinds = collections.Counter(type(call.module).__name__ for call in calls)
    return ", ".join(kind if count == 1 else f"{kind} × {count}" for kind, count in kinds.items())


class Chooser:
    """Turns the `layers` argument of a probe into targets."""

    def __init__(self, model: Module, inputs: object):
        self.model, self.inputs = model, inputs
        self.names = names_of(model)
        self.note = self.said = ""

    def choose(self, layers: object, functions: object) -> list[Target]:
        """All targets; functions alone if no layers are given beside them."""
        needed, do = "a dict {name: function (model, x) -> tensor}", "give functions={name: function}, or leave it out"
        named = {} if functions is None else mapping(functions, "functions", needed, do)
        for label, function in named.items():
            if not callable(function) or is_module(function):
                raise BadInput(
                    f"functions[{label!r}] is {type(function).__name__}",
                    "a function (model, x) -> tensor",
                    "give a function; modules go into layers",
                )
        chosen = [] if layers is None and named else self._chosen(layers)
        chosen += [Target(str(label), function=function) for label, function in named.items()]
        targets = {target.label: target for target in reversed(chosen)}
        for target in chosen:
            if targets[target.label] != target:
                raise BadInput(f"two layers called {target.label!r}", "different names", "rename one of them")
        return list({target.label: target for target in chosen}.values())

    def _chosen(self, layers: object) -> list[Target]:
        if layers is None or (isinstance(layers, str) and layers == "middle"):
            calls, output = traced(self.model, self.inputs)
            default, self.said, self.note = hidden_layers(self.model, calls, output)
            return default if layers is None else [default[len(default) // 2]]
        if isinstance(layers, Mapping):
            return [self._aliased(str(alias), value) for alias, value in layers.items()]
        if isinstance(layers, str) or is_module(layers):
            return self._named(layers)
        if callable(layers):
            try:
                fulfilling = [name for name, module in self.names.items() if layers(name, module)]
            except Exception as error:
                failed = f"layers = {shown(layers)} fails on the names and modules of the model: {error}"
                raise BadInput(
                    failed, "a function (name, module) -> bool", "see the modules: probe.layers(model)"
                ) from error
            if not fulfilling:
                raise BadInput(
                    "layers is a predicate that no module fulfils",
                    "a function (name, module) -> bool that is true of some",
                    "see the modules: probe.layers(model)",
                )
            return [Target(name, name, self.names[name]) for name in fulfilling]
        needed = 'a name, a pattern, a list of names, {alias: name}, a module, a predicate or "middle"'
        entries = listed(layers, "layers", needed, "see the names: probe.layers(model)")
        return [target for entry in entries for target in self._named(entry)]

    def _named(self, which: object) -> list[Target]:
        """Targets of a name, a call of one, a pattern or a module."""
        if is_module(which):
            wanted = getattr(which, "_orig_mod", which)
            names = [name for name, module in self.names.items() if module is wanted]
            if not names:
                raise BadInput(
                    f"layers holds a {type(wanted).__name__} that is no part of {type(self.model).__name__}",
                    "a submodule of the model",
                    "the outputs of the whole model are recorded anyway; see probe.layers(model)",
                )
            return [Target(names[0], names[0], wanted)]
        if not isinstance(which, str):
            raise BadInput(
                f"layers holds {shown(which)}", "names or modules", "for calls of a module: {alias: (name, 1)}"
            )
        if which in self.names:
            return [Target(which, which, self.names[which])]
        if (called := with_call(which)) and called[0] in self.names:
            return [Target(which, called[0], self.names[called[0]], called[1])]
        fitting = matching(which, self.names) if is_pattern(which) else []
        if not fitting:
            raise self._unknown(which)
        return [Target(name, name, self.names[name]) for name in fitting]

    def _aliased(self, alias: str, value: object) -> Target:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int) and value[1] >= 0:
            return dataclasses.replace(self._aliased(alias, value[0]), call=value[1])
        if isinstance(value, str) or is_module(value):
            targets = self._named(value)
            if len(targets) > 1:
                raise BadInput(
                    f"layers[{alias!r}] = {shown(value)} fits {len(targets)} modules",
                    "one module for each alias",
                    f"name one: {', '.join(repr(target.name) for target in targets[:3])}, …",
                )
            return dataclasses.replace(targets[0], label=alias)
        if callable(value):
            return Target(alias, function=value)
        raise BadInput(
            f"layers[{alias!r}] = {shown(value)}",
            "a name, a module, (name, call) or a function (model, x) -> tensor",
            "see the names: probe.layers(model)",
        )

    def _unknown(self, name: str) -> UnknownName:
        return unknown(name, self.names, type(self.model).__name__, "probe.layers(model)")


class Layers(tuple):
    """The modules of a model: rows (name, type, shapes of its outputs at every call, recorded by default)."""

    def __repr__(self) -> str:
        wide = [max([len(row[column]) for row in self], default=0) for column in (0, 1)]
        lines = []
        for name, kind, shapes, hidden in self:
            shape = "" if shapes is None else "not called" if not shapes else shapes[0]
            several = f"  × {len(shapes)} calls" if shapes and len(shapes) > 1 else ""
            lines.append(f"{name:<{wide[0]}}  {kind:<{wide[1]}}  {shape}{several}{'  *' * hidden}".rstrip())
        starred = "* taken by layers=None" if any(row[3] for row in self) else ""
        return "\n".join([*lines, starred] if starred else lines)


def layers(model: Module, inputs: object = None) -> Layers:
    """The modules of a torch model, by the names that a probe takes.

    With `inputs` it runs the model once, as a probe does, and also shows the shape of every output, modules that
    are called several times or not at all, and which layers a probe records by default.
    """
    model = usable(model)
    named = names_of(model)
    if inputs is None:
        return Layers((name, type(module).__name__, None, False) for name, module in named.items())
    try:
        calls, output = traced(model, taken(inputs))
    except FestinaError:
        raise
    except Exception as error:  # whatever torch, or the model, has against them
        raise BadInput(
            f"inputs = {shown(inputs)} cannot be run by {type(model).__name__}: {error}",
            "inputs as the model takes them, the sample first",
            "try model(inputs) by itself",
        ) from error
    try:
        hidden = {target.name for target in hidden_layers(model, calls, output).targets}
    except BadInput:  # there is none; the list shows what there is
        hidden = set()
    shapes = {name: tuple(call.shape for call in calls if call.module is module) for name, module in named.items()}
    return Layers((name, type(module).__name__, shapes[name], name in hidden) for name, module in named.items())
