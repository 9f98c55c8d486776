"""Numbers as they stand in the text of a claim."""

from __future__ import annotations

from collections.abc import Iterable


def comma_separated(numbers: Iterable[float]) -> str:
    """Three digits of each number, and whole numbers from 1000 on."""
    return ", ".join(f"{float(number):.3g}" if abs(number) < 1000 else f"{float(number):.0f}" for number in numbers)
