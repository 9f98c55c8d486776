"""The gated network of the depth experiment, against the same loops as the ReLU network of `depth`."""

from __future__ import annotations

import functools

from . import depth
from .depth import TOLERANCE, UNIT

__all__ = ["TOLERANCE", "UNIT", "claims", "contestants"]

contestants = functools.partial(depth.contestants, kind="gated")
claims = functools.partial(depth.claims, kind="gated")
