"""Probing a torch model inside the user's own training loop."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np

from .. import _checks
from .._errors import BadInput, FestinaError, UnknownName, shown
from .._spec import to_spec
from ._arguments import is_array, joined, main_output, mapped, shapes
from ._chain import Chain, chain_of, not_descent, setup_of
from ._evaluate import as_array, evaluate, is_compiled, library, taken, tensor, usable
from ._layers import Chooser, Target, names_of, shape_of
from ._measure import OBSERVABLES, Record, flat
from ._names import listed
from ._probe import At, Probe


class TorchProbe(Probe):
    """Looks into a torch model while a loop trains it; made by `probe.torch`."""

    source = "probe.torch"
    libraries = ("torch",)

    def __init__(
        self, model: Any, layers: Any, inputs: Any, targets: Any, pairs: Any, at: Any, observe: Any,
        functions: Any, select: Any, output: Any, lr: Any,
    ):  # fmt: skip
        self._torch = library()
        self._model = usable(model)
        self._compiled = is_compiled(model)
        self._inputs = taken(inputs)
        known = None if targets is None else as_array(tensor(targets, "targets"))
        seen = mapped(lambda part, _: as_array(part) if is_array(part) else part, self._inputs, "")
        super().__init__(joined(seen), known, pairs, at, observe, lr)
        self._need_a_run()
        chooser = Chooser(self._model, self._inputs)
        self._targets = chooser.choose(layers, functions)
        self._select = self._checked_select(select)
        needed, do = "a function of the model's output", "give output=lambda out: out[0]"
        self._output = None if output is None else _checks.function(output, "output", needed, do)
        self._note, self._said, self._part = chooser.note, chooser.said, ""
        self._handle = None
        self._by_hand = False
        self._stepping: list[tuple[weakref.ref, str]] = []  # optimisers that have made steps
        # A rehearsal: what cannot be recorded is refused now and not after hours of training.
        hidden, outputs = self._seen()
        self._record = Record(self._points, self._names, hidden, outputs)
        self._chain: Chain | str = "its gates were not asked for"
        if "gates" in self._names:
            self._chain = chain_of(self._model, self._inputs, hidden, self._outputs)
        self._start: list[Any] = []  # the weights of a chain before the first step
        self._sizes: list[np.ndarray] = []  # of its units, at every record
        self._other_rule = ""  # why its rule of training is not plain gradient descent

    def _need_a_run(self) -> None:
        try:
            evaluate(self._model, self._inputs, ())
        except FestinaError:
            raise
        except Exception as error:
            raise BadInput(
                f"{type(self._model).__name__} cannot be run on inputs of shape {shapes(self._inputs)}: {error}",
                "probe inputs as the model takes them, the sample first",
                "try model(inputs) by itself; for model(*inputs) give a tuple, for model(**inputs) a dict",
            ) from error

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers that are recorded."""
        return tuple(target.label for target in self._targets)

    def step(self) -> None:
        """A step of training begins: call it first thing in every turn of the loop, before the weights change."""
        self._need_open()
        if not self._by_hand and self.steps:
            raise BadInput(
                f"probe.step() after {self.steps} steps that were counted by themselves",
                "one way to count: the steps of torch optimisers, or probe.step() from the first turn on",
                "call probe.step() first thing in every turn of the loop, before optimizer.step(), or not at all",
            )
        self._by_hand = True
        self._count()

    def __enter__(self) -> Self:
        super().__enter__()
        optimizer = importlib.import_module("torch.optim.optimizer")
        # The steps of an optimiser may themselves be compiled.
        hook = self._torch.compiler.disable(self._before_step) if "torch._dynamo" in sys.modules else self._before_step
        self._handle = optimizer.register_optimizer_step_pre_hook(hook)
        return self

    def __exit__(self, kind, error, trace) -> None:
        super().__exit__(kind, error, trace)
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        # Without a counted step the state may be that after a loop that was never seen.
        if kind is None and self.steps and self.steps in self._due:
            self._look()

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        if isinstance(self._chain, Chain) and not self._other_rule and self._holds(optimizer):
            self._other_rule = not_descent(optimizer, self._model, self._lr)
        if not self._by_hand and self._holds(optimizer):
            if not any(known() is optimizer for known, _ in self._stepping):
                self._stepping.append((weakref.ref(optimizer), type(optimizer).__name__))
            self._count()

    def _holds(self, optimizer: Any) -> bool:
        """Whether an optimiser has a parameter of the model."""
        ours = {id(parameter) for parameter in self._model.parameters()}
        return any(id(parameter) in ours for group in optimizer.param_groups for parameter in group["params"])

    def _count(self) -> None:
        if not self.steps and isinstance(self._chain, Chain):
            self._start = self._chain.weights()
        super()._count()

    def _look(self) -> None:
        assert self._record is not None
        self._record.add(self._time, *self._seen())
        if isinstance(self._chain, Chain):
            self._sizes.append(self._chain.unit_sizes())

    def _beside(self) -> Mapping[str, tuple[tuple[str, ...], Any]]:
        return {"unit_size": (("time", "unit"), np.stack(self._sizes))} if self._sizes else {}

    def _seen(self) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
        """Activities of every layer and the outputs now, as (sample, unit)."""
        calls: dict[int, int] = {}
        held: dict[str, np.ndarray] = {}
        by_module: dict[int, list[Target]] = {}
        for target in self._targets:
            if target.module is not None:
                by_module.setdefault(id(target.module), []).append(target)

        def keep(module: Any, _: Any, output: Any) -> None:
            call = calls.get(id(module), 0)
            calls[id(module)] = call + 1
            for target in by_module[id(module)]:
                if target.call in (None, call):
                    held[target.label] = self._numbers(target, output)

        modules = {id(target.module): target.module for target in self._targets if target.module is not None}
        functions = [target for target in self._targets if target.function is not None]
        output, values = evaluate(
            self._model,
            self._inputs,
            [(module, keep) for module in modules.values()],
            [target.function for target in functions if target.function is not None],
        )
        for target in self._targets:
            if target.module is not None:
                self._need_one_call(target, calls.get(id(target.module), 0))
        for target, value in zip(functions, values, strict=True):
            held[target.label] = self._numbers(target, value)
        needed = any(OBSERVABLES[name].needs_outputs for name in self._names)
        return {target.label: held[target.label] for target in self._targets}, self._outputs(output) if needed else None

    def _need_one_call(self, target: Target, calls: int) -> None:
        model = type(self._model).__name__
        now = names_of(self._model).get(target.name)
        if not calls and now is not target.module:
            instead = "nothing" if now is None else "another module"
            raise BadInput(
                f"layer {target.label!r} was replaced: {model} now has {instead} there",
                "the modules that the model had when the probe was made",
                "copy weights into the old module (load_state_dict), or end the probe and make a new one",
            )
        if not calls:
            raise BadInput(
                f"layer {target.label!r} is not called when {model} runs in eval mode",
                "a module that the forward pass calls, as module(x) and not module.forward(x)",
                "name another, or compute it: functions={name: lambda model, x: …}",
            )
        if target.call is None and calls > 1:
            raise BadInput(
                f"layer {target.label!r} is called {calls} times in one forward pass of {model}",
                "which call is meant, counted from 0",
                f'name it: layers="{target.name}[1]", or layers={{"{target.label}": ("{target.name}", 1)}}',
            )
        if target.call is not None and target.call >= calls:
            raise BadInput(
                f"call {target.call} of layer {target.name!r}, which {model} calls {calls} times",
                f"a call from 0 to {calls - 1}",
                "count calls from 0",
            )

    def _numbers(self, target: Target, output: Any) -> np.ndarray:
        """What a layer gives, copied at once: a later in-place operation may overwrite it."""
        pick = self._select.get(target.label, self._select.get(target.name, target.part))
        whose = f"layer {target.label!r}"
        if pick is not None:
            try:
                output = pick(output) if callable(pick) else output[pick]
            except Exception as error:  # a function of the user's own, or an index that a tensor does not have
                raise BadInput(
                    f"select[{target.label!r}] = {shown(pick)} does not fit: {whose} gives {shape_of(output)}",
                    "an index or a key of it, or a function",
                    f"choose one that is there ({error})",
                ) from None
        if not isinstance(output, self._torch.Tensor):
            raise BadInput(
                f"{whose} gives {shape_of(output)}",
                "one tensor (sample, …)",
                f"say which part: select={{{target.label!r}: 0}}, a key, or a function",
            )
        do = f"put the sample first: select={{{target.label!r}: lambda h: h.transpose(0, 1)}}"
        return flat(as_array(output), self._points.samples, whose, do)

    def _outputs(self, output: Any) -> np.ndarray:
        if self._output is not None:
            try:
                output = self._output(output)
            except Exception as error:
                seen = f"output = {shown(self._output)} fails on what the model gives, {shape_of(output)}: {error}"
                raise BadInput(seen, "a function of the model's output", "give output=lambda out: out[0]") from error
        elif not isinstance(output, self._torch.Tensor):
            found = main_output(output, lambda part: isinstance(part, self._torch.Tensor), self._points.samples)
            if found is not None:
                self._part, output = found
        if not isinstance(output, self._torch.Tensor):
            raise BadInput(
                f"{type(self._model).__name__} gives {shape_of(output)}",
                "one tensor (sample, …) of outputs",
                "say which part: output=lambda out: out[0]",
            )
        return flat(as_array(output), self._points.samples, "the output", "put the sample first: output=lambda out: …")

    def _checked_select(self, select: Any) -> dict[str, Any]:
        do = "give select={layer: 0}, or leave it out"
        select = {} if select is None else _checks.mapping(select, "select", "a dict {layer: index or function}", do)
        known = {name for target in self._targets for name in (target.label, target.name) if name}
        for name in select:
            if name not in known:
                raise UnknownName.among("layer in select", name, known)
        return select

    def _facts(self) -> Mapping[str, Any]:
        notes = [self._note] if self._note else []
        if self._part:
            notes.append(f"of several outputs part {self._part} was taken: choose another with output=lambda out: …")
        if self._compiled:
            notes.append("compiled parts were recorded from their uncompiled code")
        if len(self._stepping) > 1:
            names = ", ".join(name for _, name in self._stepping)
            notes.append(f"every step of {len(self._stepping)} optimisers counts ({names})")
        return {
            "model": type(self._model).__name__,
            "layers": {target.label: target.described for target in self._targets},
            **({"chosen": self._said} if self._said else {}),
            "counted": "probe.step()" if self._by_hand else "optimiser steps",
            **(self._network() if "gates" in self._names else {}),
            **({"note": "; ".join(notes)} if notes else {}),
        }

    def _network(self) -> dict[str, Any]:
        """What `festina.gates` has to know of a network: its setup, or what of it is known and what is not."""
        if isinstance(self._chain, str):
            return {"no_network": self._chain}
        if self._points.targets is None:
            return {"no_network": "the probe was given no targets"}
        assert self._record is not None
        several = "several optimisers trained it" if len(self._stepping) > 1 else ""
        unknown = "the probe was given no lr" if self._lr is None else self._other_rule or several
        setup = setup_of(self._chain, self._points, self._start, self._record.times, None if unknown else self._lr)
        spec = functools.partial(to_spec, setup)
        known = {"network": spec, "no_setup": unknown} if unknown else {"setup": spec}
        return known if self._chain.after else {**known, "before_activations": True}

    def __repr__(self) -> str:
        return f"{super().__repr__()}; layers {listed(self.layers)}" + (f"; {self._said}" if self._said else "")

    def _how_to_count(self) -> str:
        return "train with a torch optimiser of this model, or call probe.step() first thing in every turn of the loop"


def torch(
    model: Any,
    layers: Any = None,
    *,
    inputs: Any,
    targets: Any = None,
    pairs: Iterable[tuple[int, int]] | None = None,
    at: At = 1,
    observe: str | Iterable[str] | None = None,
    functions: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    select: Mapping[str, Any] | None = None,
    output: Callable[[Any], Any] | None = None,
    lr: float | None = None,
) -> TorchProbe:
    """Record how a torch model represents some inputs while your own loop trains it.

        with fs.probe.torch(model, "hidden.*", inputs=x, pairs=[(0, 1)], at=range(0, 6000, 20)) as probe:
            ...  # your loop
        probe.trajectory["distance"]  # (time, layer, pair)

    The probe runs the model on `inputs` before chosen optimiser steps, and training does not notice: weights come
    out the same bit for bit, and nothing stays attached to the model. Steps count from 0; record k is the state
    before step k + 1, so record 0 is the start. Steps of all optimisers that hold a parameter of the model count by
    themselves; in loops without a torch optimiser, or to count turns of the loop, call `probe.step()` first thing in
    every turn. The state after the last step is recorded when the block ends well.

    Args:
        model: a torch.nn.Module; a compiled one is recorded from its uncompiled code.
        layers: a name from `probe.layers(model)`; a call of a module used several times, "relu[1]"; a pattern, in
            which `*` stands for one part between dots and `**` for any; a list of these; {alias: name, module,
            (name, call) or function (model, x) -> tensor}; a module; a predicate (name, module) -> bool; "middle",
            number L // 2 of the L layers of None; None, all calls of activation and recurrent modules except one that
            gives the model's output, or, in a model without, all calls of modules with parameters except the last.
            Activations are those of torch, and modules without weights that change every number by itself.
        inputs: (sample, …); moved to the device and precision of the model. Several arguments are a tuple, for
            model(*inputs), or a dict, for model(**inputs): the first array says how many samples there are, what has
            another first axis is passed on as it is, and X is summed over the rest. One dict as an argument: ({…},).
        targets: (sample, feature) of the inputs, for "output_alignment", "loss" and "mean_gap".
        pairs: pairs of inputs to compare, counted from 0; all of them if there are at most 100 inputs.
        at: the steps to record, or an int k for every k-th.
        observe: any of "distance" |h₂ − h₁|² (time, layer, pair), "output_distance" |f₂ − f₁|² (time, pair),
            "output_alignment" |f₂ − f₁|² − (f₂ − f₁)·(y₂ − y₁) (time, pair), "loss" ½ mean |y − f|² over the probe
            inputs (time), "cosine" of h₂ − h₁ with what it was at the first record (time, layer, pair), NaN where
            either is 0, "mean_gap" |ȳ − f̄|² of the means of a pair (time, pair), "similarity" h hᵀ (time, layer,
            sample, sample_), "gates", which units are above 0, one bit per sample packed into bytes (time, unit,
            byte), "outputs" (time, sample, feature), and "representation", kept as `probe.representations`. Default:
            the first five, as far as targets allow.
        functions: {name: function (model, x) -> tensor} for activations that are no module.
        select: {layer: index, key or function} for layers that give more than one tensor.
        output: a function of the model's output, if that is more than one tensor; None takes its `logits`, or else the
            first that is (sample, …), and says so in a note.
        lr: the learning rate; times are then lr × steps, as those of `simulate` and `solve`. None counts steps. It is
            taken at its word: with momentum or a schedule these are not the times of a gradient flow.

    Activities are those that leave a module, after its own forward hooks, flattened for each sample. The model runs
    in eval mode, so dropout is off and batch norm uses its running statistics; optimiser steps are counted after the
    forward pass of their batch, which has updated these, and `probe.step()` comes before it. Forward hooks of your
    own run once more at every record. Out of sight: state outside the model or deep inside containers, random
    generators of your own, scripted and data-parallel models.
    """
    return TorchProbe(model, layers, inputs, targets, pairs, at, observe, functions, select, output, lr)
