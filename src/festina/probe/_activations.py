"""Which modules of a torch model are activations, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ._evaluate import is_tensor, library

if TYPE_CHECKING:
    from torch import Tensor  # pyright: ignore[reportMissingImports]
    from torch.nn import Module  # pyright: ignore[reportMissingImports]

NOT_HIDDEN = {"Softmax", "Softmin", "LogSoftmax", "Softmax2d", "MultiheadAttention"}
SHIFTS = (1.0, -2.0, 3.0)  # shifts of a module's input, to reach beyond the kinks and the linear part of activations


def is_recurrent(module: Module) -> bool:
    """RNN, LSTM, GRU and their cells, which hold their activation in themselves."""
    recurrent = library().nn.modules.rnn
    return isinstance(module, (recurrent.RNNBase, recurrent.RNNCellBase))


def first_of(output: object) -> object:
    """The output of a recurrent module, without its last state."""
    return output[0] if isinstance(output, tuple) else output


def is_activation(module: Module, args: tuple[object, ...], output: object) -> bool:
    """Whether a module is an activation by its class, or acts as one on what it was just given.

    Libraries define activations of their own. What these have in common is that they have no submodules and no
    parameters, and act on every number separately and nonlinearly.
    """
    kinds = type(module).__mro__
    if any(kind.__module__ == "torch.nn.modules.activation" for kind in kinds):
        return not NOT_HIDDEN & {kind.__name__ for kind in kinds}
    if is_recurrent(module):
        return True
    if any(module.children()) or any(True for _ in (*module.parameters(), *module.buffers())) or len(args) != 1:
        return False
    given = args[0]
    if not (is_tensor(given) and is_tensor(output) and given.is_floating_point() and output.is_floating_point()):
        return False
    if given.shape != output.shape or given.numel() < 2:
        return False
    return _acts_by_itself(module.forward, given.detach())


def _acts_by_itself(forward: Callable[[Tensor], Tensor], given: Tensor) -> bool:
    """Whether every output number depends only on the input number in its place, and is not affine in it."""
    torch = library()
    try:
        here = forward(given.clone())
        shifted = [forward(given + shift) for shift in SHIFTS]
        for shift, all_shifted in zip(SHIFTS, shifted, strict=True):
            changed, wanted = given.clone().flatten(), here.clone().flatten()
            middle = len(changed) // 2
            changed[middle] += shift
            wanted[middle] = all_shifted.flatten()[middle]
            if not torch.allclose(forward(changed.reshape(given.shape)).flatten(), wanted, equal_nan=True):
                return False
    except Exception:  # whatever a module raises at other numbers, it is not known to be an activation
        return False
    slopes = [(other - here) / shift for shift, other in zip(SHIFTS, shifted, strict=True)]
    return not all(torch.allclose(slopes[0], slope, rtol=1e-3, atol=1e-5, equal_nan=True) for slope in slopes[1:])
