"""reproduce: run many experiments into one folder, and write a page about them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import experiments
from ._errors import FestinaError
from ._files import alone_in, write_whole
from ._page import render
from ._progress import track
from ._report import Experiment, clear_parts, digest, run_into
from ._report_files import is_done, read_report

PAGE = "index.html"


@dataclass
class Reproduction:
    """What became of every experiment."""

    page: Path
    done: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def as_expected(self) -> bool:
        return not self.differing and not self.failures


def reproduce(
    names: Sequence[str], *, quick: bool, out: Path, seed: int = 0, tell: Callable[[str], None] = lambda text: None
) -> Reproduction:
    """Run the named experiments (all if none), each into out/NAME; finished ones are not run again.

    The page is written after every experiment, so an interruption leaves a true page.
    """
    chosen = [Experiment.named(name) for name in (names or experiments.__all__)]
    summary, shown = Reproduction(out / PAGE), _Shown()
    with track("experiments", len(chosen)) as show:
        for number, experiment in enumerate(chosen):
            show(number, experiment.name)
            # Another reproduction into the same folder does an experiment first, and this one keeps it, or waits.
            with alone_in(out / experiment.name, tell) as folder:
                _one(experiment, quick, seed, folder, summary, tell)
                if experiment.name in summary.done:
                    shown.read(folder)
            out.mkdir(parents=True, exist_ok=True)  # it vanished with a first experiment that failed
            page = render(shown.reports, shown.figures, failures=summary.failures, networks=shown.networks)
            write_whole(out, {PAGE: page.encode()})
    return summary


@dataclass
class _Shown:
    """What the page is made of, read while no other run could change it."""

    reports: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)

    def read(self, folder: Path) -> None:
        report = read_report(folder / "report.json")
        self.reports.append(report)
        self.figures[folder.name] = (folder / "figure.svg").read_text(encoding="utf-8")
        self.networks[folder.name] = {
            ", ".join(labels): (folder / file).read_text(encoding="utf-8")
            for file, labels in report.get("networks", {}).items()
        }


def _one(experiment: Experiment, quick: bool, seed: int, folder: Path, summary: Reproduction, tell: Callable) -> None:
    name = experiment.name
    if is_done(folder, digest(name, experiment.parameters(quick), seed)):
        clear_parts(folder)  # of a run that was ended just after its report
        summary.kept.append(name)
        tell(f"kept      {name} (already done with the same inputs)")
        as_expected = read_report(folder / "report.json")["outcome"] == "as expected"
    else:
        try:
            report = run_into(folder, name, quick=quick, seed=seed)
        except Exception as error:  # one failure must not take the others along
            text = str(error) if isinstance(error, FestinaError) else traceback.format_exc()
            summary.failures[name] = text
            tell(f"failed    {name}: {text.strip().splitlines()[-1]}")
            return
        as_expected = report.as_expected
        tell(f"{'done      ' if as_expected else 'differs   '}{name} ({report.facts['time']['seconds']:.1f} s)")
    summary.done.append(name)
    if not as_expected:
        summary.differing.append(name)
