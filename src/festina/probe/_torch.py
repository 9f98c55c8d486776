"""Probing a torch model inside the user's own training loop."""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from .._foundation.errors import BadInput, FestinaError
from .._setup.spec import to_spec
from ._arguments import is_array, joined, mapped, shapes
from ._backend import STEPS, Backend
from ._chain import Chain, ChainWeights, chain_of, not_descent, setup_of
from ._evaluate import as_array, evaluate, is_compiled, library, taken, tensor, usable
from ._layers import Chooser
from ._measure import Record, needs_outputs
from ._names import first_few
from ._probe import At, Probe
from ._torch_activity import ActivityReader

if TYPE_CHECKING:
    from torch.nn import Module  # pyright: ignore[reportMissingImports]
    from torch.optim import Optimizer  # pyright: ignore[reportMissingImports]

# A name or pattern, a module, a predicate (name, module) → bool, a list, {alias: one of these}, or None.
LayerChoice: TypeAlias = Any


class TorchProbe(Probe):
    """Looks into a torch model while a loop trains it; made by `probe.torch`."""

    backend = Backend("probe.torch", STEPS, ("torch",))

    def __init__(
        self,
        model: object,
        layers: object,
        inputs: object,
        targets: object,
        pairs: object,
        at: object,
        observe: object,
        functions: object,
        select: object,
        output: object,
        lr: object,
    ):
        self._torch = library()
        self._model = usable(model)
        self._compiled = is_compiled(self._model) or self._model is not model
        self._inputs = taken(inputs)
        known = None if targets is None else as_array(tensor(targets, "targets"))
        arrays = mapped(lambda part, _: as_array(part) if is_array(part) else part, self._inputs, "")
        super().__init__(joined(arrays), known, pairs, at, observe, lr)
        self._need_a_run()
        chooser = Chooser(self._model, self._inputs)
        self._targets = chooser.choose(layers, functions)
        self._reader = ActivityReader(
            self._model,
            self._inputs,
            self._points.samples,
            self._targets,
            select,
            output,
            needs_outputs(self._names),
        )
        self._note, self._said = chooser.note, chooser.said
        self._handle = None
        self._by_hand = False
        self._stepping: list[tuple[weakref.ref, str]] = []  # optimisers that have made steps
        # A rehearsal: what cannot be recorded is refused now and not after hours of training.
        hidden, outputs = self._reader.read()
        self._record = Record(self._points, self._names, hidden, outputs)
        self._chain: Chain | str = "its gates were not asked for"
        if "gates" in self._names:
            self._chain = chain_of(self._model, self._inputs, hidden, self._reader.outputs_of)
        self._start: ChainWeights = []  # of a chain, before the first step
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
        """A step of training begins: call it first thing in every iteration of the loop, before the weights change."""
        self._need_open()
        if not self._by_hand and self.steps:
            raise BadInput(
                f"probe.step() after {self.steps} steps that were counted by themselves",
                "one way to count: the steps of torch optimisers, or probe.step() from the first iteration on",
                "call probe.step() first thing in every iteration of the loop, before optimizer.step(), or not at all",
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        # Without a counted step, the state may be that after a loop of which no step was noticed.
        if kind is None and self.steps and self.steps in self._due:
            self._look()

    def _before_step(self, optimizer: Optimizer, *_: object) -> None:
        if isinstance(self._chain, Chain) and not self._other_rule and self._holds(optimizer):
            self._other_rule = not_descent(optimizer, self._model, self._lr)
        if not self._by_hand and self._holds(optimizer):
            if not any(known() is optimizer for known, _ in self._stepping):
                self._stepping.append((weakref.ref(optimizer), type(optimizer).__name__))
            self._count()

    def _holds(self, optimizer: Optimizer) -> bool:
        """Whether an optimiser has a parameter of the model."""
        ours = {id(parameter) for parameter in self._model.parameters()}
        return any(id(parameter) in ours for group in optimizer.param_groups for parameter in group["params"])

    def _count(self) -> None:
        if not self.steps and isinstance(self._chain, Chain):
            self._start = self._chain.weights()
        super()._count()

    def _look(self) -> None:
        assert self._record is not None
        self._record.add(self._time, *self._reader.read())
        if isinstance(self._chain, Chain):
            self._sizes.append(self._chain.unit_sizes())

    def _weight_records(self) -> Mapping[str, tuple[tuple[str, ...], np.ndarray]]:
        return {"unit_size": (("time", "unit"), np.stack(self._sizes))} if self._sizes else {}

    def _facts(self) -> Mapping[str, object]:
        notes = [self._note] if self._note else []
        if part := self._reader.part:
            notes.append(f"of several outputs part {part} was taken: choose another with output=lambda out: …")
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

    def _network(self) -> Mapping[str, object]:
        """What `festina.gates` needs of a network: its setup, or the parts that are known and why others are not."""
        if isinstance(self._chain, str):
            return {"no_network": self._chain}
        if self._points.targets is None:
            return {"no_network": "the probe was given no targets"}
        assert self._record is not None
        several = "several optimisers trained it" if len(self._stepping) > 1 else ""
        unknown = "the probe was given no lr" if self._lr is None else self._other_rule or several
        setup = setup_of(self._chain, self._points, self._start, self._record.times, None if unknown else self._lr)
        spec = functools.partial(to_spec, setup)
        known: dict[str, object] = {"network": spec, "no_setup": unknown} if unknown else {"setup": spec}
        return known if self._chain.after else {**known, "before_activations": True}

    def __repr__(self) -> str:
        return f"{super().__repr__()}; layers {first_few(self.layers)}" + (f"; {self._said}" if self._said else "")

    def _how_to_count(self) -> str:
        return "train with a torch optimiser of this model, or call probe.step() first thing in every iteration"


def torch(
    model: Module,
    layers: LayerChoice = None,
    *,
    inputs: object,
    targets: object = None,
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
    themselves; in loops without a torch optimiser, or to count iterations of the loop, call `probe.step()` first thing
    in every iteration. The state after the last step is recorded when the block ends well.

    Args:
        model: a torch.nn.Module; a compiled one is recorded from its uncompiled code.
        layers: which layers to record, in one of the forms listed below; None takes every activation and recurrent
            module except the output.
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

    `layers` is one of

    - None (default): every call of an activation or recurrent module, except one that gives the model's output. In a
      model without such modules, every call of a module with parameters, except the last. Activations are those of
      torch, and modules without parameters that change every number by itself;
    - "middle": the middle one of the layers recorded by default, number L // 2 of L, counted from 0;
    - a name from `probe.layers(model)`; "relu[1]" is the second call of a module that is used several times;
    - a pattern of names, in which `*` stands for one part between dots and `**` for any number of parts;
    - a module of the model;
    - a list of names, patterns and modules;
    - a predicate (name, module) -> bool, which is true of the modules to record;
    - {alias: layer}, where a layer is a name, a module, (name, call) or a function (model, x) -> tensor.

    Activities are those that leave a module, after its own forward hooks, flattened for each sample. The model runs
    in eval mode, so dropout is off and batch norm uses its running statistics; optimiser steps are counted after the
    forward pass of their batch, which has updated these, and `probe.step()` comes before it. Forward hooks of your
    own run once more at every record. Out of sight: state outside the model or deep inside containers, random
    generators of your own, scripted and data-parallel models.
    """
    return TorchProbe(model, layers, inputs, targets, pairs, at, observe, functions, select, output, lr)
