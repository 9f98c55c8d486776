"""Look into your own network while your own loop trains it, and compare it with theory.

Activity of layers, outputs and targets come in, from torch, JAX or arrays; a Trajectory of distances, alignment, loss
and gates leaves, which the verbs take as they take one of `simulate`. The probe changes nothing in the user's training.
"""

from .._foundation.random_states import random_states_kept

with random_states_kept():  # the first use of a probe loads JAX, perhaps in the middle of a user's loop
    from ._arrays import arrays
    from ._curves import curves
    from ._jax import JaxProbe, jax
    from ._layers import Layers, layers
    from ._scan import scan
    from ._structure import structure
    from ._torch import TorchProbe, torch
    from ._weighting import weighted

__all__ = [
    "JaxProbe",
    "Layers",
    "TorchProbe",
    "arrays",
    "curves",
    "jax",
    "layers",
    "scan",
    "structure",
    "torch",
    "weighted",
]
