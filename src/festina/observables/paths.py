"""Paths of a gated net: what each of them passes on."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Float

from .._foundation.arrays import AnyArray, Weights
from .._setup.setup import Setup
from ..nets.gated.path_bases import bases_of_paths
from ..nets.gated.paths import product
from .base import Observable, Occasion, Part, View
from .loss import norm


def _bases(occasion: Occasion) -> tuple[tuple[AnyArray, ...], tuple[AnyArray, ...]]:
    bases = bases_of_paths(occasion.setup.net, occasion.setup.single_task)
    return bases.left, bases.right


_BASES = Part("path_bases", _bases)  # the modes of every path's own moments: U, V
_NAMES = {"path": lambda setup: setup.net.path_names}


def _path_norms(view: View, weights: Weights) -> Float[AnyArray, " path"]:
    """The Frobenius norm of the product of layers along every path."""
    return jnp.stack([norm(product(weights, path.edges)) for path in view.net.paths()])


def _path_modes(view: View, weights: Weights) -> Float[AnyArray, "path mode"]:
    """u_kᵀ W_p v_k of every mode of every path's own moments; 0 after its last mode."""
    bases = zip(*view[_BASES], view.net.paths(), strict=True)
    return jnp.stack([jnp.einsum("om,oi,im->m", u, product(weights, path.edges), v) for u, v, path in bases])


def _no_paths(setup: Setup) -> str:
    return "" if setup.net.has_paths else f"{type(setup.net).__name__} has no gated paths"


OBSERVABLES = {
    "path_norm": Observable(("path",), _path_norms, _no_paths, rotation_invariant=True, narrow=True, entries=_NAMES),
    "path_modes": Observable(
        ("path", "mode"), _path_modes, _no_paths, (_BASES,), rotation_invariant=True, narrow=True, entries=_NAMES
    ),
}
