"""Which modules of a torch model are activations, whoever wrote them."""

from __future__ import annotations

from typing import Any

from ._evaluate import library

NOT_HIDDEN = {"Softmax", "Softmin", "LogSoftmax", "Softmax2d", "MultiheadAttention"}
SHIFTS = (1.0, -2.0, 3.0)  # of what a module is given: beyond the kinks and the linear part of activations


def is_recurrent(module: Any) -> bool:
    """RNN, LSTM, GRU and their cells, which hold their activation in themselves."""
    recurrent = library().nn.modules.rnn
    return isinstance(module, (recurrent.RNNBase, recurrent.RNNCellBase))


def first_of(output: Any) -> Any:
    """What a recurrent module gives besides its last state."""
    return output[0] if isinstance(output, tuple) else output


def is_activation(module: Any, args: tuple[Any, ...], output: Any) -> bool:
    """Whether a module is an activation by its class, or acts as one on what it was just given.

    Libraries write activations of their own; what they share is that they have neither parts nor weights and change
    every number by itself, and not in proportion.
    """
    kinds = type(module).__mro__
    if any(kind.__module__ == "torch.nn.modules.activation" for kind in kinds):
        return not NOT_HIDDEN & {kind.__name__ for kind in kinds}
    if is_recurrent(module):
        return True
    torch = library()
    if any(module.children()) or any(True for _ in (*module.parameters(), *module.buffers())) or len(args) != 1:
        return False
    given = args[0]
    if not all(isinstance(value, torch.Tensor) and value.is_floating_point() for value in (given, output)):
        return False
    return given.shape == output.shape and given.numel() > 1 and _acts_by_itself(torch, module.forward, given.detach())


def _acts_by_itself(torch: Any, forward: Any, given: Any) -> bool:
    """Whether every number that comes out depends on the one in its place alone, and on that not as a line does."""
    try:
        here = forward(given.clone())
        shifted = [forward(given + shift) for shift in SHIFTS]
        for shift, all_shifted in zip(SHIFTS, shifted, strict=True):
            one = given.clone().flatten()
            one[len(one) // 2] += shift
            wanted = here.clone().flatten()
            wanted[len(one) // 2] = all_shifted.flatten()[len(one) // 2]
            if not torch.allclose(forward(one.reshape(given.shape)).flatten(), wanted, equal_nan=True):
                return False
    except Exception:  # whatever a module raises at other numbers, it is not known to be an activation
        return False
    slopes = [(other - here) / shift for shift, other in zip(SHIFTS, shifted, strict=True)]
    return not all(torch.allclose(slopes[0], slope, rtol=1e-3, atol=1e-5, equal_nan=True) for slope in slopes[1:])
