"""Progress with loss and time left: on a terminal, and silent otherwise."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


@contextlib.contextmanager
def track(description: str, total: float, shown: bool | None = None) -> Iterator[Callable[[float, str], None]]:
    """One bar; call the yielded function with how much is done and a short note. None shows it on a terminal only."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda done, note: None
        return
    from rich.errors import LiveError
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %  {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=_terminal(), transient=True)
    bar = progress.add_task(description, total=total, note="")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(LiveError):  # versions of Rich that show one display at a time: the outer one stays
            stack.enter_context(progress)
        yield lambda done, note: progress.update(bar, completed=done, note=note)


@functools.cache
def _terminal() -> Console:
    """The one terminal of this process, on which bars inside each other are shown one below the other."""
    from rich.console import Console

    return Console(stderr=True)
