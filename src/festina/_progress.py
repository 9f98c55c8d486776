"""Progress with loss and time left: on a terminal, and silent otherwise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

_display: ContextVar[Any] = ContextVar("display", default=None)


@contextlib.contextmanager
def display(shown: bool | None = None) -> Iterator[Any]:
    """One display for all that runs inside; None shows it on a terminal only."""
    if _display.get() is not None:
        yield _display.get()
        return
    if not (sys.stderr.isatty() if shown is None else shown):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        token = _display.set(progress)
        try:
            yield progress
        finally:
            _display.reset(token)


@contextlib.contextmanager
def track(description: str, total: float, shown: bool | None = None) -> Iterator[Callable[[float, str], None]]:
    """One bar; call the yielded function with how much is done and a short note."""
    with display(shown) as progress:
        if progress is None:
            yield lambda done, note: None
            return
        bar = progress.add_task(description, total=total, note="")
        try:
            yield lambda done, note: progress.update(bar, completed=done, note=note)
        finally:
            progress.remove_task(bar)
