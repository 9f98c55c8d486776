"""The command line: a client that owns no science. Everything heavy is imported inside a command."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ._foundation.version import __version__

app = typer.Typer(
    help="How neural networks learn: theory beside training.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Json = Annotated[bool, typer.Option("--json", help="Write JSON for a machine.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
Cache = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep compiled programs in the user's cache folder; see doctor.")
]


def _experiments(incomplete: str) -> list[str]:
    """Names of experiments that begin so, read off their files: completion must be quick."""
    files = (Path(__file__).parent / "experiments").glob("[!_]*_*.py")
    return sorted(file.stem for file in files if file.stem.startswith(incomplete))


def _names(incomplete: str) -> list[str]:
    from ._reporting.catalogue import catalogue

    return [name for members in catalogue().values() for name in members if name.startswith(incomplete)]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"festina {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """How neural networks learn: theory beside training."""


@app.command(name="list")
def list_(as_json: Json = False) -> None:
    """List experiments, theories, tasks, nets, inits and rules."""
    from ._reporting.catalogue import catalogue

    listing = catalogue()
    if as_json:
        _echo_json(listing)
        return
    from ._reporting.terminal import print_listing

    print_listing(listing)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A name from `festina list`.", autocompletion=_names)],
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the assumptions of a theory on its example (seconds).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is known about one experiment, theory, task, net, init or rule."""
    from ._reporting.catalogue import describe

    facts = describe(name, measure=measure)
    if as_json:
        _echo_json(facts)
        return
    from ._reporting.terminal import print_member

    print_member(facts)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="An experiment from `festina list`.", autocompletion=_experiments)],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the page, report.json, data.nc, figure.svg and figure.png.", show_default="reports/NAME"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use the quick preset.")] = False,
    preset: Annotated[str | None, typer.Option(help="full, quick, or a setting that `festina show` lists.")] = None,
    seed: Seed = 0,
    cache: Cache = True,
    as_json: Json = False,
) -> None:
    """Run one experiment and write its report. Any parameter can be given as --parameter value."""
    from ._reporting.experiment import Experiment
    from ._reporting.parameters import parse
    from ._reporting.process import prepare
    from ._reporting.reproduce import write_page_of_one
    from ._reporting.run import run as run_experiment

    changes = parse(context.args, Experiment.named(name).parameters())
    out = out or Path("reports") / name
    _writable(out)
    prepare(quick=quick or preset == "quick", cache=cache)
    with _interrupts_answered():
        report = run_experiment(name, quick=quick, preset=preset, seed=seed, out=out, **changes)
        page = write_page_of_one(out)
    if as_json:
        _echo_json(report.to_dict())
    else:
        from ._reporting.terminal import print_report

        print_report(report)
        typer.echo(f"\nReport: {out / 'report.json'}\nFigure: {out / 'figure.png'}\nPage:   {page}")
    raise typer.Exit(0 if report.as_expected else 1)


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments; all of them if none is named.", autocompletion=_experiments),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick/--full", help="Small sizes (minutes), or the papers' own.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the page and for one folder per experiment.")] = Path(
        "reproduction"
    ),
    seed: Seed = 0,
    jobs: Annotated[
        int | None, typer.Option(help="Experiments that run side by side.", show_default="one for each core")
    ] = None,
    cache: Cache = True,
    as_json: Json = False,
) -> None:
    """Run every experiment, check every claim, and write a page about it."""
    from ._reporting.process import cores
    from ._reporting.reproduce import reproduce as reproduce_all

    _writable(out)
    with _interrupts_answered():
        summary = reproduce_all(
            names or (),
            quick=quick,
            out=out,
            seed=seed,
            jobs=cores() if jobs is None else jobs,
            cache=cache,
            tell=lambda text: typer.echo(text, err=as_json),
        )
    if as_json:
        facts = {
            "done": summary.done,
            "kept": summary.kept,
            "differing": summary.differing,
            "failures": summary.failures,
        }
        _echo_json({**facts, "as_expected": summary.as_expected, "page": str(summary.page)})
    else:
        outcome = (
            "every outcome is as expected" if summary.as_expected else "some outcomes differ from what is expected"
        )
        typer.echo(f"\n{len(summary.done)} experiments, {len(summary.failures)} failures: {outcome}.")
        typer.echo(f"Report: {summary.page.resolve()}")
    raise typer.Exit(0 if summary.as_expected else 1)


@app.command(name="open")
def open_(
    where: Annotated[
        Path | None,
        typer.Argument(help="A folder with a page, or the name of an experiment that was run.", show_default="newest"),
    ] = None,
) -> None:
    """Open the page of a reproduction, or of one experiment, in the browser."""
    import webbrowser

    page = _page_to_open(where)
    typer.echo(page.resolve())
    webbrowser.open(page.resolve().as_uri())


def _page_to_open(where: Path | None) -> Path:
    from ._foundation.errors import BadInput

    folders = [Path("reproduction"), *sorted(Path("reports").glob("*"))]
    pages = [folder / "index.html" for folder in ([where, Path("reports") / where] if where else folders)]
    existing = [page for page in pages if page.is_file()]
    if not existing:
        looked = ", ".join(str(page.parent) for page in pages)
        needed = "a folder that festina run or festina reproduce has written"
        raise BadInput(f"no page in {looked}", needed, "run festina reproduce --quick, or name the folder")
    return max(existing, key=lambda page: page.stat().st_mtime)


@app.command()
def doctor(as_json: Json = False) -> None:
    """Show versions, devices, precision and caches."""
    from ._reporting.catalogue import health

    listing = health()
    if as_json:
        _echo_json(listing)
        return
    for key, value in listing.items():
        typer.echo(f"{key}: {value}" if not isinstance(value, dict) else f"{key}:")
        for name, inner in value.items() if isinstance(value, dict) else ():
            typer.echo(f"  {name}: {inner}")


def _writable(out: Path) -> None:
    from ._foundation.errors import BadInput

    nearest = next(p for p in (out.absolute(), *out.absolute().parents) if p.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise BadInput(
            f"--out {out}: {nearest} is {'not writable' if nearest.is_dir() else 'a file'}",
            "a folder that can be written",
            "choose another --out",
        )


@contextlib.contextmanager
def _interrupts_answered() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("interrupted; what is finished is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None


def _echo_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def main() -> None:
    """Entry point: errors as three plain parts, tracebacks with --debug only."""
    from ._foundation.errors import FestinaError

    debug = "--debug" in sys.argv  # before or after the command
    sys.argv = [word for word in sys.argv if word != "--debug"]
    try:
        app()
    except Exception as error:
        if debug:
            raise
        if not isinstance(error, FestinaError):
            error = FestinaError(
                f"an error inside festina, {type(error).__name__}: {error}",
                "a run without one",
                "run the command again with --debug and report what it prints",
            )
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
