"""Initial weights given by the user."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import numpy as np

from .._foundation.arrays import AnyArray, RandomKey, Weights
from .._foundation.checks import real_array
from .._foundation.errors import BadInput
from .._foundation.nouns import noun, settle
from ..nets.base import Net, Shapes
from ..tasks.base import Task
from ._pieces import example_with, is_shape
from .base import Init


@noun
class Given(Init):
    """These weights, (out, in) each, whatever the seed."""

    weights: Any
    random: ClassVar[bool] = False
    fits_any_width: ClassVar[bool] = False

    def __post_init__(self):
        if not isinstance(self.weights, (list, tuple)) or not self.weights:
            raise BadInput(
                f"weights is {type(self.weights).__name__}", "a list of layers", "give [W1, W2, …], (out, in) each"
            )
        settle(self, weights=tuple(_layer(w, f"weights[{i}]") for i, w in enumerate(self.weights)))

    @classmethod
    def example(cls) -> tuple[Task, Net, Given]:
        return example_with(cls([np.ones((6, 8)), np.ones((15, 6))]))

    def draw(self, key: RandomKey, net: Net, task: Task) -> Weights:
        wanted = net.shapes(task.d_in, task.d_out)
        self._refuse_biases(net, wanted)
        leaves = jax.tree.leaves(self.weights)
        shapes = jax.tree.leaves(wanted, is_leaf=is_shape)
        given = [tuple(leaf.shape) for leaf in leaves]
        if given != shapes:
            raise BadInput(
                f"Given weights of shapes {given}",
                f"{shapes}: (out, in) of each layer of {net!r} from {task.d_in} to {task.d_out}",
                "transpose or resize the weights, or change the net",
            )
        structure = jax.tree.structure(wanted, is_leaf=is_shape)
        return jax.tree.unflatten(structure, leaves)

    def _refuse_biases(self, net: Net, wanted: Shapes) -> None:
        """Refuse a pair (W, b) where the net has W alone."""
        for k, (layer, shape) in enumerate(zip(self.weights, wanted, strict=False)):
            if isinstance(layer, tuple) and is_shape(shape):
                graph = net.graph
                raise BadInput(
                    f"{f'layer {k}' if graph is None else f'edge {graph.edge_name(k)}'} has a bias",
                    f"weights alone: {type(net).__name__} has no biases here",
                    "give [W1, W2, …] without biases",
                )


def _layer(layer: Any, argument: str) -> AnyArray | tuple[AnyArray, AnyArray]:
    """One W or kernel, or a pair of it and b."""
    if isinstance(layer, (list, tuple)) and len(layer) == 2 and np.ndim(layer[0]) > 1 and np.ndim(layer[1]) == 1:
        return real_array(layer[0], argument, ndim=(2, 3)), real_array(layer[1], argument, ndim=1)
    return real_array(layer, argument, ndim=(2, 3))
