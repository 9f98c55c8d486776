"""One experiment of a reproduction: kept if it is done, else run into its own folder."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable
from pathlib import Path

from .._foundation.errors import FestinaError
from .._foundation.files import alone_in
from .experiment import Experiment
from .provenance import digest
from .report_files import is_done, read_report
from .run import clear_parts, run_into


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one experiment; `error` is empty unless it failed."""

    name: str
    kept: bool = False
    as_expected: bool = False
    seconds: float = 0.0
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"failed    {self.name}: {self.error.strip().splitlines()[-1]}"
        if self.kept:
            return f"kept      {self.name} (already done with the same inputs)"
        return f"{'done      ' if self.as_expected else 'differs   '}{self.name} ({self.seconds:.1f} s)"


def run_or_keep(name: str, *, quick: bool, seed: int, out: Path, tell: Callable[[str], None]) -> Outcome:
    """Run an experiment into out/NAME, unless a report of the same inputs is there.

    Another run that writes into the same folder goes first, and its report is kept.
    """
    experiment = Experiment.named(name)
    with alone_in(out / name, tell) as folder:
        if is_done(folder, digest(name, experiment.parameters(quick), seed)):
            clear_parts(folder)  # of a run that was ended just after its report
            return Outcome(name, kept=True, as_expected=read_report(folder / "report.json")["outcome"] == "as expected")
        try:
            report = run_into(folder, name, quick=quick, seed=seed)
        except Exception as error:  # one failure must not take the others along
            return Outcome(name, error=str(error) if isinstance(error, FestinaError) else traceback.format_exc())
        return Outcome(name, as_expected=report.as_expected, seconds=report.facts["time"]["seconds"])
