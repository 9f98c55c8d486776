"""What the command line prints for a person: wrapped to the terminal, in colour where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from ..experiments.base import THEMES
from .experiment import Experiment, in_story_order
from .report import Report, show_number

STYLES = {"✓": "green", "◇": "yellow", "✗": "bold red"}


def print_listing(listing: Mapping[str, Mapping[str, str]]) -> None:
    """Every member of every kind with its first line; experiments by theme."""
    console = _console()
    for kind, members in listing.items():
        console.print(f"\n[bold]{kind}[/bold]")
        groups = _by_theme(members) if kind == "experiments" else {"": list(members)}
        for group, names in groups.items():
            if group:
                console.print(f"\n  [italic]{group}[/italic]")
            for name in names:
                _print_member(console, name, members[name])


def _by_theme(names: Mapping[str, str]) -> dict[str, list[str]]:
    themes: dict[str, list[str]] = {}
    for name in in_story_order(names):
        themes.setdefault(THEMES[Experiment.named(name).theme], []).append(name)
    return themes


def _print_member(console: Console, name: str, line: str) -> None:
    console.print(Text(f"  {name}", style="cyan"))
    _indented(console, Text(line), 6)


def print_member(facts: Mapping[str, Any]) -> None:
    """One member, whole."""
    console = _console()
    console.print(Text.assemble((facts["name"], "bold cyan"), f" ({facts['kind']})"))
    console.print()
    for line in facts["text"].splitlines():
        indent = len(line) - len(line.lstrip())
        _indented(console, Text(line.strip()), indent)
    for heading in ("parameters", "quick", "presets", "reference", "example"):
        if facts.get(heading):
            console.print(f"\n[bold]{heading}[/bold]")
            for key, value in facts[heading].items():
                _indented(console, Text.assemble((key, "cyan"), f": {value}"), 2)


def print_report(report: Report) -> None:
    """The finding and its claims, each with what was measured and required."""
    console = _console()
    console.print(Text.assemble((report.experiment.name, "bold cyan"), ": ", report.experiment.finding))
    for claim in report.claims:
        mark = "✗" if not claim.as_expected else "✓" if claim.holds else "◇"
        line = Text.assemble((mark, STYLES[mark]), f" {claim.text}: ", (show_number(claim.measured), "bold"))
        line.append(f" ({claim.required})")
        if not claim.as_expected:
            line.append("   ← not as expected", "bold red")
        elif not claim.expected:
            line.append(f"   (known not to reproduce: {claim.reason})", "dim")
        _indented(console, line, 2)


def _indented(console: Console, text: Text, indent: int) -> None:
    """A text whose lines are all indented; what is written into a pipe or a file is one line, however long."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent), expand=False))
    else:
        console.print(Text(" " * indent if text else "") + text, soft_wrap=True)


def _console() -> Console:
    return Console(highlight=False)
