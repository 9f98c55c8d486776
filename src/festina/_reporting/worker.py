"""A worker process: it reads names of experiments from standard input, and answers with a JSON line for each.

Run as `python -m festina._reporting.worker`. It ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import TextIO

from .single import Outcome, run_or_keep


@dataclasses.dataclass(frozen=True)
class Work:
    """What all experiments of one reproduction share."""

    quick: bool
    seed: int
    out: str
    cache: bool


@dataclasses.dataclass(frozen=True)
class Message:
    """Something to tell the user, or the outcome of an experiment."""

    text: str = ""
    outcome: Outcome | None = None


def answer_requests(requests: TextIO, answers: TextIO) -> None:
    """Run the experiments whose names come in; the first request says what they share."""
    from .._foundation.program_memory import make_room
    from .process import prepare

    def answer(message: Message) -> None:
        print(json.dumps(dataclasses.asdict(message)), file=answers, flush=True)

    work = Work(**json.loads(requests.readline()))
    prepare(quick=work.quick, cache=work.cache)
    for line in requests:
        make_room()  # many experiments in one process compile thousands of programs
        outcome = run_or_keep(
            line.strip(),
            quick=work.quick,
            seed=work.seed,
            out=Path(work.out),
            tell=lambda text: answer(Message(text)),
        )
        answer(Message(outcome=outcome))


class _NoTerminal(io.TextIOWrapper):
    """The standard error of a worker: the terminal behind it shows the progress of the process that asked."""

    def isatty(self) -> bool:
        return False


if __name__ == "__main__":
    sys.stderr = _NoTerminal(sys.stderr.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    # Whatever an experiment prints goes to standard error: standard output carries the answers.
    answers = sys.stdout
    # After Ctrl-C the process that asked says what was interrupted.
    with contextlib.redirect_stdout(sys.stderr), contextlib.suppress(KeyboardInterrupt):
        answer_requests(sys.stdin, answers)
