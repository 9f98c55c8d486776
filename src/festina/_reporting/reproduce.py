"""reproduce: run many experiments into one folder, and write a page about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import experiments
from .._foundation import checks
from .._foundation.files import alone_in, write_whole
from .._foundation.progress import track
from .experiment import Experiment, in_story_order
from .page.pictures import data_address, thumbnail
from .page.render import render
from .pool import Message, Work, outcomes
from .report_files import read_report
from .single import Outcome, run_or_keep

PAGE = "index.html"


@dataclass
class Reproduction:
    """What became of every experiment, in the order in which they were asked for."""

    page: Path
    done: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def as_expected(self) -> bool:
        return not self.differing and not self.failures


def reproduce(
    names: Sequence[str],
    *,
    quick: bool,
    out: Path,
    seed: int = 0,
    jobs: int | None = None,
    cache: bool = True,
    tell: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Run the named experiments (all if none), each into out/NAME; finished ones are not run again.

    Args:
        jobs: how many experiments run side by side, each in a process; None runs them in this process, one by one.
        cache: whether processes keep compiled programs on disk.
        tell: called with a line about every experiment that ends.

    The page is written after every experiment, so an interruption leaves a true page. Files are the same for every
    number of jobs, but for the times in report.json.
    """
    chosen = [Experiment.named(name).name for name in (names or experiments.__all__)]
    checks.seed(seed)
    outcomes: dict[str, Outcome] = {}
    shown = _Shown()
    with track("experiments", len(chosen)) as show:
        show(0, chosen[0])
        for message in _messages(chosen, Work(quick, seed, str(out), cache), jobs, tell):
            if message.text:
                tell(message.text)
            if (outcome := message.outcome) is None:
                continue
            tell(str(outcome))
            outcomes[outcome.name] = outcome
            show(len(outcomes), outcome.name)
            if not outcome.error:
                with alone_in(out / outcome.name, tell) as folder:
                    shown.read(folder)
            out.mkdir(parents=True, exist_ok=True)  # it vanished with a first experiment that failed
            write_whole(out, {PAGE: _page(chosen, outcomes, shown).encode()})
    return _summary(out / PAGE, [outcomes[name] for name in chosen])


def _messages(chosen: Sequence[str], work: Work, jobs: int | None, tell: Callable[[str], None]) -> Iterator[Message]:
    if jobs is not None:
        yield from outcomes(chosen, work, checks.whole(jobs, "jobs"))
        return
    for name in chosen:
        outcome = run_or_keep(name, quick=work.quick, seed=work.seed, out=Path(work.out), tell=tell)
        yield Message(outcome=outcome)


def _summary(page: Path, outcomes: Sequence[Outcome]) -> Reproduction:
    return Reproduction(
        page,
        done=[outcome.name for outcome in outcomes if not outcome.error],
        kept=[outcome.name for outcome in outcomes if outcome.kept],
        differing=[outcome.name for outcome in outcomes if not outcome.error and not outcome.as_expected],
        failures={outcome.name: outcome.error for outcome in outcomes if outcome.error},
    )


@dataclass
class _Shown:
    """What the page is made of, by experiment; read while no other run could change it."""

    reports: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, str] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)
    thumbnails: dict[str, str] = field(default_factory=dict)

    def read(self, folder: Path) -> None:
        report = read_report(folder / "report.json")
        self.reports[folder.name] = report
        self.figures[folder.name] = (folder / "figure.svg").read_text(encoding="utf-8")
        self.networks[folder.name] = {
            ", ".join(labels): (folder / file).read_text(encoding="utf-8")
            for file, labels in report.get("networks", {}).items()
        }
        self.thumbnails[folder.name] = thumbnail(folder / "figure.png")
        self.thumbnails[f"{folder.name}:first"] = data_address(folder / "figure.png")


def _page(chosen: Sequence[str], outcomes: dict[str, Outcome], shown: _Shown) -> str:
    """The page about what has ended so far, in the order of the story."""
    done = in_story_order(name for name in chosen if name in shown.reports)
    return render(
        [shown.reports[name] for name in done],
        shown.figures,
        failures={name: outcomes[name].error for name in chosen if name in outcomes and outcomes[name].error},
        networks=shown.networks,
        thumbnails=shown.thumbnails,
        folders={name: name for name in done},
    )


def write_page_of_one(folder: Path) -> Path:
    """A page about the one report in a folder, beside it."""
    shown = _Shown()
    shown.read(folder)
    report = shown.reports[folder.name]
    name = report["experiment"]
    figures, networks = {name: shown.figures[folder.name]}, {name: shown.networks[folder.name]}
    page = render([report], figures, title=f"festina: {name}", networks=networks, folders={name: ""})
    write_whole(folder, {PAGE: page.encode()})
    return folder / PAGE
