"""Running a torch model at the probe inputs so that training does not notice."""

from __future__ import annotations

import collections
import contextlib
import copy
import importlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from .._foundation import checks
from .._foundation.errors import BadInput
from .._foundation.random_states import random_states_kept
from ._arguments import are_several, is_array, leaves, mapped

if TYPE_CHECKING:
    from torch import Tensor  # pyright: ignore[reportMissingImports]
    from torch.nn import Module  # pyright: ignore[reportMissingImports]

CONTAINERS = (list, dict, set, collections.OrderedDict, collections.deque, collections.defaultdict)
PARALLEL = {"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule"}


def library() -> ModuleType:
    """torch, which is an extra of festina."""
    try:
        with random_states_kept():
            return importlib.import_module("torch")
    except ImportError as error:
        raise BadInput(
            f"torch cannot be imported ({error})", "PyTorch, to probe its models", 'pip install "festina[torch]"'
        ) from None


def is_module(value: object) -> TypeGuard[Module]:
    return isinstance(value, library().nn.Module)


def is_tensor(value: object) -> TypeGuard[Tensor]:
    return isinstance(value, library().Tensor)


def usable(model: object) -> Module:
    """The module behind a model, unpacked from torch.compile; refuses what cannot be looked into."""
    if is_module(model):
        return _open_to_view(getattr(model, "_orig_mod", model))
    raise BadInput(
        f"model is {type(model).__name__}",
        "a torch.nn.Module",
        "give the module itself; for other frameworks use probe.jax or probe.arrays",
    )


def _open_to_view(model: Module) -> Module:
    torch = library()
    if PARALLEL & {kind.__name__ for kind in type(model).__mro__}:
        raise BadInput(
            f"model is a {type(model).__name__}", "a model on one device", "probe the module inside: model.module"
        )
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise BadInput(
            f"{type(model).__name__} is or holds a torch.jit.ScriptModule",
            "modules that run as Python, so that their layers can be seen",
            "probe the model before torch.jit.script or torch.jit.trace",
        )
    if any(torch.nn.parameter.is_lazy(value) for value in (*model.parameters(), *model.buffers())):
        raise BadInput(
            f"{type(model).__name__} has parameters without a shape",
            "a model that has seen one batch",
            "run it once, model(batch), before the probe",
        )
    if is_compiled(model) and not hasattr(torch.compiler, "set_stance"):
        raise BadInput(
            f"{type(model).__name__} holds parts compiled by torch {torch.__version__}",
            "torch >= 2.6, which can run them uncompiled for the probe",
            "upgrade torch, or train without torch.compile",
        )
    return model


def is_compiled(model: Module) -> bool:
    """Whether the model or a part of it has been compiled by torch.compile."""
    return any(hasattr(module, "_orig_mod") or module._compiled_call_impl for module in model.modules())


class _Before:
    """What a module holds before the probe runs it: buffers, tensors, containers and other attributes."""

    def __init__(self, torch: ModuleType, module: Module):
        self.torch, self.module = torch, module
        self.training = module.training
        self.attributes = dict(module.__dict__)
        held = [value for value in self.attributes.values() if type(value) in CONTAINERS]
        self.containers = [(value, copy.copy(value)) for value in held]
        tensors = [*module._buffers.values(), *self.attributes.values()]
        dense = [value for value in tensors if isinstance(value, torch.Tensor) and value.layout == torch.strided]
        self.tensors = [(value, value.detach().clone()) for value in dense if not value.is_meta]

    def restore(self) -> None:
        """Put back what differs, and touch nothing else."""
        self.module.training = self.training
        for container, was in self.containers:
            if not _same(container, was):
                container.clear()
                getattr(container, "update" if isinstance(was, (dict, set)) else "extend")(was)
        now = self.module.__dict__
        for name in [name for name in now if name not in self.attributes]:
            del now[name]
        for name, was in self.attributes.items():
            if now.get(name) is not was:
                now[name] = was
        for tensor, was in self.tensors:
            if not self.torch.equal(tensor, was):
                tensor.copy_(was)


def _same(container: Collection[object], was: Collection[object]) -> bool:
    """The same objects in the same order."""
    if isinstance(container, dict) and isinstance(was, dict):
        return list(container) == list(was) and _same([*container.values()], [*was.values()])
    return len(container) == len(was) and all(now is before for now, before in zip(container, was, strict=True))


@contextlib.contextmanager
def undisturbed(model: Module, inputs: object) -> Iterator[None]:
    """Eval mode without gradients, autocast or compilation; afterwards all is as it was, random numbers included.

    Seen and put back: the training flag, buffers, tensors and other attributes of every submodule (containers one
    level deep), the random states of torch on the devices of the model, of NumPy and of Python.
    """
    torch = library()
    given = [part for _, part in leaves(inputs, "") if isinstance(part, torch.Tensor)]
    tensors = (*given, *model.parameters(), *model.buffers())
    devices = {value.device for value in tensors if value.device.type not in ("cpu", "meta")}
    kind = next((device.type for device in devices), "cpu")
    before = [_Before(torch, module) for module in model.modules()]
    versions = [(name, value, value._version) for name, value in model.named_parameters()]
    forked = {"devices": sorted(device.index or 0 for device in devices), "device_type": kind if devices else "cuda"}
    with (
        torch.no_grad(),
        torch.random.fork_rng(**forked),
        random_states_kept(),
        torch.autocast(kind, enabled=False),
        _uncompiled(torch),
    ):
        try:
            for state in before:
                state.module.training = False
            yield
        finally:
            for state in before:
                state.restore()
    if changed := [name for name, value, version in versions if value._version != version]:
        raise BadInput(
            f"the forward pass of {type(model).__name__} changes its parameter {changed[0]!r}",
            "a forward pass that leaves the parameters alone, since the probe adds forward passes",
            "change parameters in the training loop",
        )


def _uncompiled(torch: ModuleType) -> contextlib.AbstractContextManager[object]:
    """A context in which compiled code runs as the Python that it was made from, with all its hooks."""
    if "torch._dynamo" not in sys.modules:  # loaded by the first torch.compile, and slow to load for nothing
        return contextlib.nullcontext()
    try:
        return torch.compiler.set_stance("force_eager")
    except RuntimeError as error:
        raise BadInput(
            f"a record inside a function that torch.compile runs ({error})",
            "probe.step() in the Python loop, outside compiled functions",
            "move it there, or leave the counting to the optimiser and compile before the `with` block",
        ) from None


def taken(inputs: object) -> Any:
    """Copies of probe inputs as tensors; what the caller changes later is not ours. A dict gives arguments by name."""
    if not are_several(inputs):
        return tensor(inputs, "inputs")
    return mapped(
        lambda part, where: tensor(part, where) if is_array(part) or isinstance(part, list) else part, inputs, "inputs"
    )


def tensor(values: object, argument: str) -> Tensor:
    """A copy of values as a tensor."""
    if isinstance(values, np.ma.MaskedArray):  # torch would drop the mask
        values = checks.number_array(values, argument)
    try:
        return library().as_tensor(values).detach().clone()
    except Exception as error:  # of things that are no arrays, in whatever way
        raise BadInput(
            f"{argument} is {type(values).__name__} ({error})",
            f"{argument} as one tensor or array, the sample first",
            "stack samples: torch.stack([…]); several arguments of the model are a tuple, or a dict by name",
        ) from None


def placed(inputs: object, model: Module) -> Any:
    """A fresh copy of the probe inputs on the device of the model, numbers in its precision; models may write to it."""
    first = next((value for value in model.parameters() if value.is_floating_point()), None)

    def moved(part: object, _: str) -> object:
        if not is_tensor(part):
            return part
        if first is None:
            return part.clone()
        return part.to(first.device, first.dtype if part.is_floating_point() else part.dtype, copy=True)

    return mapped(moved, inputs, "")


def _called(model: Module, inputs: object) -> Any:
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def evaluate(
    model: Module,
    inputs: object,
    hooks: Iterable[tuple[Module, Callable[..., None]]],
    functions: Iterable[Callable[[Module, Any], object]] = (),
) -> tuple[Any, list[Any]]:
    """(the model's output, the values of functions(model, inputs)), with hooks for this one pass on some modules."""
    with undisturbed(model, inputs):
        handles = []
        try:
            for module, hook in hooks:
                handles.append(module.register_forward_hook(hook))
            output = _called(model, placed(inputs, model))
        finally:
            for handle in handles:
                handle.remove()
        return output, [function(model, placed(inputs, model)) for function in functions]


def as_array(tensor: Tensor) -> np.ndarray:
    """A tensor on the host; bfloat16 and other numbers that NumPy lacks become float64."""
    here = tensor.detach().cpu()
    return here.double().numpy() if here.is_floating_point() else here.numpy()
