"""All descents, and which of them a training takes."""

from __future__ import annotations

from .._foundation.errors import BadInput
from .._setup.loss import Moments, Samples
from ..nets.base import Net
from ..rules.base import Rule
from .adaptive_flow import AdaptiveFlow
from .base import Descent
from .narrow_layers import NarrowLayers
from .plain_steps import PlainSteps
from .thin_factors import ThinFactors

DESCENTS: tuple[type[Descent], ...] = (AdaptiveFlow, ThinFactors, NarrowLayers, PlainSteps)


def descent_for(net: Net, evidence: Moments | Samples, rule: Rule) -> type[Descent]:
    """The first descent that applies."""
    for kind in DESCENTS:
        if kind.applies(net, evidence, rule):
            return kind
    raise BadInput(
        f"{rule!r}, which no descent can follow",
        "a rule that moves in steps, or a flow",
        "derive the rule from Discrete or Flow of festina.rules.base",
    )
