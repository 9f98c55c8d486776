"""Numbers as they stand in the text of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def comma_separated(numbers: Iterable[float]) -> str:
    """Numbers joined by commas, with three significant digits below 1000 and rounded to whole numbers above."""
    return ", ".join(f"{float(number):.3g}" if abs(number) < 1000 else f"{float(number):.0f}" for number in numbers)
