"""A torch model that is a chain of linear layers with ReLUs between, as the MLP that festina trains by itself.

What a model does is not read off its code: the chain of its linear layers is computed beside it, and must give the
same outputs and the same activities of recorded layers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jaxtyping import Float

from .._setup.setup import Setup
from ..inits.given import Given
from ..nets._activations import OFF_SLOPE
from ..nets.mlp import MLP
from ..observables.compared_points import Points
from ..rules.gradient_descent import GradientDescent
from ..rules.gradient_flow import GradientFlow
from ..tasks.own_data import from_arrays
from ._evaluate import as_array, evaluate, is_tensor, library

if TYPE_CHECKING:
    from torch.nn import Linear, Module  # pyright: ignore[reportMissingImports]
    from torch.optim import Optimizer  # pyright: ignore[reportMissingImports]

CLOSE = {"float64": 1e-10, "float32": 1e-5}  # of the largest number: by how much products may differ

ChainWeights: TypeAlias = list[np.ndarray] | list[tuple[np.ndarray, np.ndarray]]  # W, or (W, b), of every layer


@dataclasses.dataclass(frozen=True)
class Chain:
    """The linear layers of a model in their order, and the activation between them."""

    layers: tuple[Linear, ...]
    activation: str
    after: bool  # whether what was recorded leaves the activations, and does not enter them

    @property
    def bias(self) -> bool:
        return self.layers[0].bias is not None

    @property
    def hidden(self) -> tuple[int, ...]:
        return tuple(layer.out_features for layer in self.layers[:-1])

    @property
    def precision(self) -> str:
        return str(self.layers[0].weight.dtype).removeprefix("torch.")

    def weights(self) -> ChainWeights:
        """Copies of W, or (W, b), of every layer."""
        if self.bias:
            return [(as_array(layer.weight).copy(), as_array(layer.bias).copy()) for layer in self.layers]
        return [as_array(layer.weight).copy() for layer in self.layers]

    def unit_sizes(self) -> Float[np.ndarray, " unit"]:
        """|incoming| |outgoing| of every hidden unit, its bias counted among the incoming, as `simulate` has it."""
        matrices = [as_array(layer.weight) for layer in self.layers]
        incoming = [np.sum(matrix**2, axis=1) for matrix in matrices[:-1]]
        if self.bias:
            incoming = [size + as_array(layer.bias) ** 2 for size, layer in zip(incoming, self.layers, strict=False)]
        outgoing = [np.sum(matrix**2, axis=0) for matrix in matrices[1:]]
        return np.concatenate([np.sqrt(i * o) for i, o in zip(incoming, outgoing, strict=True)])

    def computes(
        self,
        x: Float[np.ndarray, "sample d_in"],
        hidden: Iterable[Float[np.ndarray, "sample _"]],
        outputs: Float[np.ndarray, "sample d_out"],
    ) -> bool:
        """Whether these are its outputs, and what leaves the activations of its hidden layers, or enters them."""
        slope, close = OFF_SLOPE[self.activation], CLOSE[self.precision]
        for layer, recorded in zip(self.layers, (*hidden, outputs), strict=True):
            before = x @ as_array(layer.weight).T + (as_array(layer.bias) if self.bias else 0.0)
            x = np.where(before > 0, before, slope * before)
            computed = x if self.after and recorded is not outputs else before
            if np.abs(computed - recorded).max() > close * np.abs(computed).max():
                return False
        return True


def chain_of(
    model: Module,
    inputs: object,
    hidden: Mapping[str, Float[np.ndarray, "sample _"]],
    read: Callable[[Any], Float[np.ndarray, "sample feature"]],
) -> Chain | str:
    """The chain that a model is, as far as outputs and recorded hidden activities can tell; or why it is none.

    `read` gives the outputs (sample, feature) of what the model returns.
    """
    torch = library()
    calls: list[Linear] = []
    if not is_tensor(inputs):
        return "it takes several inputs"
    given = as_array(inputs)
    linear: list[Any] = [module for module in model.modules() if type(module) is torch.nn.Linear]
    output, _ = evaluate(model, inputs, [(module, lambda module, *_: calls.append(module)) for module in linear])
    others = [name for name, owner in _owners(model) if not any(owner is call for call in calls)]
    if others:
        return f"its parameter {others[0]!r} belongs to no linear layer that is called"
    if len(calls) < 2 or len(calls) != len(linear):
        return "it is no chain of two or more linear layers, each called once"
    if len({(call.bias is None, call.weight.dtype) for call in calls}) > 1:
        return "its layers differ in precision, or some have biases and some have none"
    x = given.astype(float).reshape(len(given), -1)
    widths = [x.shape[1], *(values.shape[1] for values in hidden.values())]
    if widths != [call.in_features for call in calls]:
        return "the recorded layers are not all hidden layers of a chain from the inputs on, in their order"
    chains = [Chain(tuple(calls), activation, after) for after in (True, False) for activation in OFF_SLOPE]
    if chains[0].precision not in CLOSE:
        return f"its weights are {chains[0].precision}"
    outputs = read(output)
    fits = [chain for chain in chains if chain.computes(x, hidden.values(), outputs)]
    if not fits:
        return "it does not compute what its linear layers do with ReLUs, or leaky ones of slope 0.01, between them"
    return fits[0]


def _owners(model: Module) -> list[tuple[str, Module]]:
    """Every parameter by name, and the module that holds it."""
    return [
        (f"{name}.{parameter}" if name else parameter, module)
        for name, module in model.named_modules()
        for parameter, _ in module.named_parameters(recurse=False)
    ]


def not_descent(optimizer: Optimizer, model: Module, lr: float | None) -> str:
    """Why steps of an optimiser are not those of plain gradient descent of all weights at a rate; empty if they are."""
    name = type(optimizer).__name__
    if name != "SGD":
        return f"it was trained by {name}"
    for group in optimizer.param_groups:
        if extra := [key for key in ("momentum", "weight_decay", "maximize") if group.get(key)]:
            return f"it was trained by SGD with {extra[0]}"
        if lr is not None and float(group["lr"]) != lr:
            return f"SGD made steps of rate {float(group['lr']):g}, and the probe was given lr = {lr:g}"
    held = {id(value) for group in optimizer.param_groups for value in group["params"] if value.requires_grad}
    return "" if all(id(value) in held for value in model.parameters()) else "some of its weights were not trained"


def setup_of(
    chain: Chain,
    points: Points,
    start: ChainWeights,
    times: Sequence[float],
    lr: float | None,
) -> Setup:
    """The chain as a setup on the probe's inputs, from its weights before the first step; any rule without lr."""
    assert points.inputs is not None
    assert points.targets is not None
    task = from_arrays(points.inputs.reshape(points.samples, -1), points.targets)
    return Setup(
        task,
        MLP(chain.hidden, chain.activation, bias=chain.bias),
        Given(start),
        GradientFlow() if lr is None else GradientDescent(lr),
        times=np.asarray(times, float),
        precision=chain.precision,
    )
