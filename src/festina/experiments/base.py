"""The contract of an experiment: what its file holds, with Claim and Result.

An experiment is one file in this folder, named by its finding. Its docstring begins with the finding, in one or two
sentences. The file holds:

- `THEME`, one of `THEMES`, and `PLACE`, a number: where on the page it stands.
- `REFERENCE`, {key in references.bib: where}, and `QUICK`, the parameters that the quick preset changes; `PRESETS`,
  {name: parameters}, if a source used other settings than it printed.
- `CAPTION`, what each panel shows, for a reader who has seen neither the code nor the paper: "**a** … **b** …". It
  explains every symbol, mark and colour of the figure. `ALT`, what is seen in the figure, for who cannot see it.
- `run(*, …, seed=0)`, with the paper's values as defaults, which returns a `Result` and never plots. An experiment that
  trains for hours takes `parts`, a folder of finished seeds, and trains by `simulate_in_parts`.
- `claims(result)` and `figure(result)`, which read `result.data` alone, as it is in a saved report; `figure` computes
  nothing.

A claim is written in two parts, the statement and the comparison that decides it:

    paper("Closed form for D = 2 against training: largest gap / target", at_most(gap, 0.01), headline=True, panel="b")
    paper("Closed form for D = 1 against training: largest gap / target", at_most(shallow_gap, 0.01),
          fails="its exponent lacks the input variance")
    ours("Gap between descent and the closed form: order in lr as lr → 0", between(order, 0.9, 1.1))

Every claim can be understood alone and names its quantity. One or two are marked `headline`: those that state the
finding; the others are controls. `panel` is the letter of the panel in which it is seen.

A new comparison is a function that returns a `Decision`, for `measured` and its bounds: NaN fails, the border holds.

Run tools/listings.py; CONTRIBUTING.md ("Where to add what") lists the docs and tests that know new members.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat, TypedDict, Unpack

from .._foundation import checks
from .._foundation.errors import BadInput
from .._setup.setup import Setup
from .._setup.trajectory import Trajectory

if TYPE_CHECKING:
    from xarray import Dataset

SOURCES = ("paper", "festina")
THEMES = {
    "modes": "Modes and depth",
    "structure": "Structured worlds",
    "saddles": "Learning past saddle points",
    "regimes": "Lazy and rich learning",
    "sequences": "Tasks one after another",
    "gates": "Gated networks and the race of pathways",
    "twins": "ReLU networks and their gated twins",
    "pairs": "Two points and every architecture",
    "points": "Many points",
}


class ClaimOptions(TypedDict, total=False):
    """Fields of a claim that most claims leave at their defaults."""

    source: str
    expected: bool
    reason: str
    fitted: bool
    headline: bool
    panel: str


class Marks(TypedDict, total=False):
    """What may be said of a claim besides its text and its numbers."""

    fitted: bool
    headline: bool
    panel: str


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement with a measured and a required value.

    `source` says whose claim it is; `expected` is false for a paper's claim that is known not to
    reproduce, and then `reason` says why. `headline` marks the claims that state the finding; `panel`
    is the letter of the panel of the figure in which the claim is seen.
    """

    text: str
    measured: float | str
    required: str
    holds: bool
    source: str = "festina"
    expected: bool = True
    reason: str = ""
    fitted: bool = False
    headline: bool = False
    panel: str = ""

    def __post_init__(self):
        checks.text(self.text, "text")
        checks.text(self.required, "required")
        if not isinstance(self.measured, str):
            checks.number(self.measured, "measured", finite=False)
        for name in ("holds", "expected", "fitted", "headline"):
            checks.truth(getattr(self, name), name)
        checks.choice(self.source, "source", SOURCES)
        checks.text(self.reason, "reason", empty=True)
        checks.text(self.panel, "panel", empty=True)
        if not self.expected and not self.reason:
            raise BadInput(f"claim {self.text!r} is expected to fail", "a reason", "say why it does not reproduce")

    @classmethod
    def at_most(
        cls, text: str, measured: SupportsFloat, bound: SupportsFloat, **options: Unpack[ClaimOptions]
    ) -> Claim:
        """Holds if the measured number does not exceed the bound; NaN does not hold."""
        return cls(text, *at_most(measured, bound), **options)

    @classmethod
    def at_least(
        cls, text: str, measured: SupportsFloat, bound: SupportsFloat, **options: Unpack[ClaimOptions]
    ) -> Claim:
        """Holds if the measured number is not below the bound; NaN does not hold."""
        return cls(text, *at_least(measured, bound), **options)

    @classmethod
    def between(
        cls,
        text: str,
        measured: SupportsFloat,
        low: SupportsFloat,
        high: SupportsFloat,
        **options: Unpack[ClaimOptions],
    ) -> Claim:
        """Holds if the measured number is between the bounds; NaN does not hold."""
        return cls(text, *between(measured, low, high), **options)

    @property
    def as_expected(self) -> bool:
        return self.holds == self.expected


class Decision(NamedTuple):
    """A measured number, what is required of it, and whether it meets this."""

    measured: float
    required: str
    holds: bool


def at_most(measured: SupportsFloat, bound: SupportsFloat) -> Decision:
    """Require that the measured number does not exceed the bound; NaN fails."""
    number, most = _measured(measured), checks.number(bound, "bound")
    return Decision(number, f"<= {most:g}", number <= most)


def at_least(measured: SupportsFloat, bound: SupportsFloat) -> Decision:
    """Require that the measured number is not below the bound; NaN fails."""
    number, least = _measured(measured), checks.number(bound, "bound")
    return Decision(number, f">= {least:g}", number >= least)


def between(measured: SupportsFloat, low: SupportsFloat, high: SupportsFloat) -> Decision:
    """Require that the measured number lies between the bounds; NaN fails."""
    number, least, most = _measured(measured), checks.number(low, "low"), checks.number(high, "high")
    return Decision(number, f"{least:g} … {most:g}", least <= number <= most)


def paper(text: str, decision: Decision, *, fails: str = "", **marks: Unpack[Marks]) -> Claim:
    """A claim of the paper; `fails` is the reason why it does not reproduce, and empty if it does."""
    return Claim(text, *decision, source="paper", expected=not fails, reason=fails, **marks)


def ours(text: str, decision: Decision, **marks: Unpack[Marks]) -> Claim:
    """A claim of festina, which must hold."""
    return Claim(text, *decision, source="festina", **marks)


def _measured(value: SupportsFloat) -> float:
    """A measured number; what was never reached is infinite, and what could not be measured NaN."""
    return checks.number(value, "measured", finite=False)


@dataclasses.dataclass(frozen=True)
class Result:
    """What an experiment's `run` returns: labelled data, the setups, the theories' trajectories."""

    data: Dataset
    setups: Mapping[str, Setup] = dataclasses.field(default_factory=dict)
    theories: Mapping[str, Trajectory] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        import xarray

        checks.instance(self.data, "data", xarray.Dataset, "give an xarray.Dataset of what was measured")
        for argument, kind in (("setups", Setup), ("theories", Trajectory)):
            needed, do = f"a dict {{label: {kind.__name__}}}", f'give {argument}={{"label": …}}'
            for value in checks.mapping(getattr(self, argument), argument, needed, do).values():
                checks.instance(value, argument, kind, do)
