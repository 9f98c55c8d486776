"""reproduce: run many experiments into one folder, and write a page about them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import experiments
from ._errors import FestinaError
from ._page import render
from ._progress import track
from ._report import Experiment, digest, is_done, read_json, run
from ._trajectory import whole_file

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
    out.mkdir(parents=True, exist_ok=True)
    summary = Reproduction(out / PAGE)
    with track("experiments", len(chosen)) as show:
        for number, experiment in enumerate(chosen):
            show(number, experiment.name)
            _one(experiment, quick, seed, out / experiment.name, summary, tell)
            _write_page(summary, out)
    return summary


def _one(experiment: Experiment, quick: bool, seed: int, folder: Path, summary: Reproduction, tell: Callable) -> None:
    name = experiment.name
    if is_done(folder, digest(name, experiment.parameters(quick), seed)):
        summary.kept.append(name)
        tell(f"kept      {name} (already done with the same inputs)")
        as_expected = read_json(folder / "report.json")["outcome"] == "as expected"
    else:
        try:
            report = run(name, quick=quick, seed=seed, out=folder)
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


def _write_page(summary: Reproduction, out: Path) -> None:
    reports = [read_json(out / name / "report.json") for name in summary.done]
    figures = {name: (out / name / "figure.svg").read_text(encoding="utf-8") for name in summary.done}
    networks = {
        report["experiment"]: {
            ", ".join(labels): (out / report["experiment"] / file).read_text(encoding="utf-8")
            for file, labels in report.get("networks", {}).items()
        }
        for report in reports
    }
    with whole_file(summary.page) as path:
        path.write_text(render(reports, figures, failures=summary.failures, networks=networks), encoding="utf-8")
