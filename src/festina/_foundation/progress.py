"""Progress with loss and time left: on a terminal and in a notebook, and silent otherwise."""

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
    """One bar; call the yielded function with how much is done and a short note.

    None shows it on a terminal and in a notebook. Until the first call it says that it compiles.
    """
    if not (sys.stderr.isatty() or _in_notebook() if shown is None else shown):
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
    bar = progress.add_task(description, total=total, note="compiling")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(LiveError):  # versions of Rich that show one display at a time: the outer one stays
            stack.enter_context(progress)
        yield lambda done, note: progress.update(bar, completed=done, note=note)


@functools.cache
def _terminal() -> Console:
    """The one terminal of this process, on which bars inside each other are shown one below the other."""
    from rich.console import Console

    return Console() if _in_notebook() else Console(stderr=True)


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
