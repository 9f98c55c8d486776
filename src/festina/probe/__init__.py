"""Look into your own network while your own loop trains it: distances between representations as a Trajectory."""

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
