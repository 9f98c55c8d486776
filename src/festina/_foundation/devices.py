"""How equal pieces of work, such as seeds, are laid out over devices and within one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import PyTree

from .program_memory import make_room_for_programs


class Lanes(NamedTuple):
    """How seeds, or chunks of times, are laid out: over the devices of `mesh`, and within one device."""

    mesh: Mesh | None
    vectorised: bool

    @classmethod
    def over(cls, count: int) -> Lanes:
        """The layout for `count` independent items."""
        make_room_for_programs()  # nearly all programs of solve and simulate begin here
        # On a CPU a loop over seeds keeps one network in cache; on a GPU wide batches win.
        devices = jax.devices()[: max(count, 1)]
        mesh = Mesh(np.array(devices), ("seed",), axis_types=(AxisType.Auto,)) if len(devices) > 1 else None
        return cls(mesh, vectorised=devices[0].platform != "cpu")

    def spread(self, tree: PyTree) -> PyTree:
        """Place a tree with leading seed axes on the devices, the last seed repeated to fill every device."""
        if self.mesh is None:
            return tree
        layout, size = NamedSharding(self.mesh, PartitionSpec("seed")), self.mesh.size

        def place(leaf: np.ndarray | jax.Array) -> jax.Array:
            rows = np.arange(len(leaf) + -len(leaf) % size)
            return jax.device_put(leaf[np.minimum(rows, len(leaf) - 1)], layout)  # NumPy has no random keys

        return jax.tree.map(place, tree)

    def each(self, function: Callable[[PyTree, PyTree], PyTree], shared: PyTree, per_seed: PyTree) -> PyTree:
        """`function(shared, item)` for every item along the leading axis of `per_seed`."""

        def local(shared: PyTree, items: PyTree) -> PyTree:
            if self.vectorised:
                return jax.vmap(lambda item: function(shared, item))(items)
            return jax.lax.map(lambda item: function(shared, item), items)

        if self.mesh is None:
            return local(shared, per_seed)
        by_seed = PartitionSpec("seed")
        mapped = jax.shard_map(
            local, mesh=self.mesh, in_specs=(PartitionSpec(), by_seed), out_specs=by_seed, check_vma=False
        )
        return mapped(shared, per_seed)
