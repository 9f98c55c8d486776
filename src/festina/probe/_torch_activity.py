"""What a torch model does with the probe inputs: the activity of the chosen layers, and the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float

from .._foundation import checks
from .._foundation.errors import BadInput, UnknownName, shown
from ._arguments import main_output
from ._evaluate import as_array, evaluate, is_tensor
from ._layers import Target, names_of, shape_of
from ._measure import flat

if TYPE_CHECKING:
    from torch.nn import Module  # pyright: ignore[reportMissingImports]

Flat: TypeAlias = Float[np.ndarray, "sample unit"]


class ActivityReader:
    """Runs a model on the probe inputs, and reads what its layers and its output give as (sample, unit).

    `part` says which of several outputs was taken, if none was named.
    """

    def __init__(
        self,
        model: Module,
        inputs: object,
        samples: int,
        targets: Sequence[Target],
        select: object,
        output: object,
        needs_outputs: bool,
    ):
        self._model, self._inputs, self._samples, self._targets = model, inputs, samples, targets
        self._select = self._checked_select(select)
        needed, do = "a function of the model's output", "give output=lambda out: out[0]"
        self._output = None if output is None else checks.function(output, "output", needed, do)
        self._needs_outputs = needs_outputs
        self.part = ""

    def read(self) -> tuple[dict[str, Flat], Flat | None]:
        """The activity of every layer now, and the outputs if somebody needs them."""
        calls: dict[int, int] = {}
        held: dict[str, Flat] = {}
        by_module: dict[int, list[Target]] = {}
        for target in self._targets:
            if target.module is not None:
                by_module.setdefault(id(target.module), []).append(target)

        def keep(module: Module, _: object, output: object) -> None:
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
        hidden = {target.label: held[target.label] for target in self._targets}
        return hidden, self.outputs_of(output) if self._needs_outputs else None

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

    def _numbers(self, target: Target, output: Any) -> Flat:
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
        if not is_tensor(output):
            raise BadInput(
                f"{whose} gives {shape_of(output)}",
                "one tensor (sample, …)",
                f"say which part: select={{{target.label!r}: 0}}, a key, or a function",
            )
        do = f"put the sample first: select={{{target.label!r}: lambda h: h.transpose(0, 1)}}"
        return flat(as_array(output), self._samples, whose, do)

    def outputs_of(self, output: Any) -> Flat:
        """The outputs among what the model gives."""
        if self._output is not None:
            try:
                output = self._output(output)
            except Exception as error:
                failed = f"output = {shown(self._output)} fails on what the model gives, {shape_of(output)}: {error}"
                raise BadInput(failed, "a function of the model's output", "give output=lambda out: out[0]") from error
        elif not is_tensor(output):
            main = main_output(output, is_tensor, self._samples)
            if main is not None:
                self.part, output = main
        if not is_tensor(output):
            raise BadInput(
                f"{type(self._model).__name__} gives {shape_of(output)}",
                "one tensor (sample, …) of outputs",
                "say which part: output=lambda out: out[0]",
            )
        return flat(as_array(output), self._samples, "the output", "put the sample first: output=lambda out: …")

    def _checked_select(self, select: object) -> dict[str, Any]:
        do = "give select={layer: 0}, or leave it out"
        picks = {} if select is None else checks.mapping(select, "select", "a dict {layer: index or function}", do)
        known = {name for target in self._targets for name in (target.label, target.name) if name}
        for name in picks:
            if name not in known:
                raise UnknownName.among("layer in select", name, known)
        return picks
