"""Wide hidden layers of linear nets, trained in fewer units.

Whatever a linear net learns by its gradient, the incoming and outgoing weights of a hidden layer stay in the span of
those at the start: ∂loss/∂W_in = W_outᵀ(…) and ∂loss/∂W_out = (…)W_inᵀ. With an orthonormal basis Q of that span,
as many vectors as the layer has inputs and outputs, Qᵀ W_in and W_out Q learn by the same equations, loss for loss and
step for step, and W_in = Q(Qᵀ W_in), W_out = (W_out Q)Qᵀ at any time: a layer of 100 units between 8 inputs and 60
outputs costs what 68 units cost. Nothing is approximated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._setup import Net

Turns = tuple[Any, ...]  # Q of every hidden layer, (seed, width, units), or None for one that stays as it is


def narrowed(net: Net, weights: Any) -> tuple[Any, Turns]:
    """Weights with a leading seed axis in the fewest units, and the turns that undo it."""
    held = [np.asarray(w) for w in weights]
    turns: list[Any] = [None] * len(net.junctions)
    narrower = True
    while narrower:  # a layer that has become narrow leaves its neighbours less to span
        narrower = False
        for k, (into, out_of) in enumerate(net.junctions):
            sides = [*(held[edge] for edge in into), *(np.swapaxes(held[edge], 1, 2) for edge in out_of)]
            if sides[0].shape[1] > sum(side.shape[2] for side in sides):
                basis = np.linalg.qr(np.concatenate(sides, axis=2).astype(float))[0]
                for edge in into:
                    held[edge] = np.swapaxes(basis, 1, 2) @ held[edge]
                for edge in out_of:
                    held[edge] = held[edge] @ basis
                turns[k] = basis if turns[k] is None else turns[k] @ basis
                narrower = True
    return tuple(held), tuple(turns)


def widened(net: Net, weights: Any, turns: Turns) -> Any:
    """The weights of all units again; leading axes of weights and turns are the same."""
    if all(basis is None for basis in turns):
        return weights
    full = list(weights)
    for basis, (into, out_of) in zip(turns, net.junctions, strict=True):
        if basis is not None:
            for edge in into:
                full[edge] = basis @ full[edge]
            for edge in out_of:
                full[edge] = full[edge] @ basis.swapaxes(-1, -2)
    return tuple(full)
