"""Experiment, Claim, Result and Report; run() walks the line from one to the other."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import importlib
import inspect
import json
import platform
import shutil
import time
import warnings
from collections.abc import Mapping, Sequence
from importlib import metadata, resources
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from . import _checks, experiments
from ._claim import Claim, Result
from ._compiled import make_room
from ._errors import BadInput, UnknownName
from ._files import alone_in
from ._netcdf import load_netcdf, netcdf_bytes
from ._parts import parts_kept_in
from ._references import formatted
from ._report_files import KIND, check_file, read_report, write_report
from ._setup import Setup, TaskSequence
from ._simulate import interrupts_end_everything
from ._trajectory import Trajectory
from ._version import __version__
from .nets.gated import Gated

PARTS = "parts"  # the folder of what an unfinished run has trained


def preset_of(quick: bool, preset: str | None) -> str:
    """The name of a preset; `quick` is short for one of them."""
    _checks.truth(quick, "quick")
    if preset is not None:
        _checks.text(preset, "preset")
    return preset or ("quick" if quick else "full")


@dataclasses.dataclass(frozen=True)
class Experiment:
    """One file of `festina.experiments`: its docstring is the finding; `run`, `claims`, `figure`, `QUICK`."""

    name: str
    module: ModuleType

    def __post_init__(self):
        _checks.text(self.name, "name")
        _checks.instance(self.module, "module", ModuleType, "use Experiment.named(name)")

    @classmethod
    def named(cls, name: str) -> Experiment:
        """The experiment in the file of this name."""
        _checks.choice(name, "experiment", experiments.__all__)
        return cls(name, importlib.import_module(f"festina.experiments.{name}"))

    @property
    def finding(self) -> str:
        """The first sentence of the file."""
        return " ".join((inspect.getdoc(self.module) or "").split("\n\n")[0].split())

    @property
    def description(self) -> str:
        """What follows the finding: paragraphs, and indented formulas."""
        return (inspect.getdoc(self.module) or "").partition("\n\n")[2].strip()

    @property
    def reference(self) -> list[dict[str, str]]:
        return [{"key": k, "where": v, "text": formatted(k)} for k, v in self.module.REFERENCE.items()]

    @property
    def presets(self) -> dict[str, dict[str, Any]]:
        """What each preset changes: "full" nothing, "quick" the sizes; others are settings of a source."""
        return {"full": {}, "quick": self.module.QUICK, **getattr(self.module, "PRESETS", {})}

    def parameters(self, quick: bool = False, preset: str | None = None) -> dict[str, Any]:
        """Parameters with the values of the full preset, the quick one, or another by name; no seed among them."""
        chosen = preset_of(quick, preset)
        if chosen not in self.presets:
            raise UnknownName.among(f"preset of {self.name}", chosen, self.presets)
        signature = inspect.signature(self.module.run)
        full = {name: p.default for name, p in signature.parameters.items() if name != "seed"}
        return full | self.presets[chosen]

    def with_parameters(self, quick: bool, preset: str | None, changes: Mapping[str, Any]) -> dict[str, Any]:
        """These parameters with some of them changed."""
        values = self.parameters(quick, preset)
        changes = _checks.mapping(changes, "changes", "a dict {parameter: value}", "give changes={} for none")
        for name in changes:
            if name not in values:
                raise UnknownName.among(f"parameter of {self.name}", name, values)
        return values | dict(changes)


@dataclasses.dataclass(frozen=True)
class Report:
    """Figure, claims and provenance of one run of an experiment."""

    experiment: Experiment
    result: Result
    claims: tuple[Claim, ...]
    facts: Mapping[str, Any]

    def __post_init__(self):
        do = "use festina.run(name), or Report.load(folder)"
        _checks.instance(self.experiment, "experiment", Experiment, do)
        _checks.instance(self.result, "result", Result, do)
        for claim in _checks.listed(self.claims, "claims", "a list of claims", do, empty=True):
            _checks.instance(claim, "claims", Claim, do)
        _checks.mapping(self.facts, "facts", "what report.json holds, a dict", do)

    @property
    def as_expected(self) -> bool:
        return all(claim.as_expected for claim in self.claims)

    def figure(self) -> Any:
        """The experiment's figure, drawn anew from the data."""
        from ._plot import styled

        with styled():
            return self.experiment.module.figure(self.result)

    def networks(self) -> dict[str, Any]:
        """A picture of every gated network of the run, drawn anew, by the name of its file; none of other nets."""
        from ._plot import styled

        found = {}
        with styled():
            for file, labels in self.facts.get("networks", {}).items():
                setup = self.result.setups.get(labels[0])
                if setup is None:  # of a report that was loaded
                    setup = Setup.from_json(json.dumps(self.facts["setup"][labels[0]]))
                task = setup.task.tasks[0] if isinstance(setup.task, TaskSequence) else setup.task
                found[file] = setup.net.draw(task).figure
        return found

    def to_dict(self) -> dict[str, Any]:
        """What report.json holds."""
        return {**self.facts, "claims": [_json_safe(dataclasses.asdict(claim)) for claim in self.claims]}

    def save(self, folder: str | Path) -> Path:
        """Write report.json, data.nc, figure.svg and figure.png, and network-1.svg, … if there are gated networks.

        All are made before the first is written, and report.json, which has checksums of them and of itself, is moved
        to its place last: what was there stays, until all of the new report is on disk.
        """
        with alone_in(writable_folder(folder, "folder")) as folder:
            self._save_into(folder)
        return folder

    def _save_into(self, folder: Path) -> None:
        """`save` into a folder that this run has for itself."""
        from ._plot import picture_bytes, styled

        pictures = self.networks()
        with styled():
            figure = self.figure()
            files = {
                "data.nc": netcdf_bytes(self.result.data),
                "figure.svg": picture_bytes(figure, "svg"),
                "figure.png": picture_bytes(figure, "png"),
                **{file: picture_bytes(picture, "svg") for file, picture in pictures.items()},
            }
        write_report(folder, self.to_dict(), files)

    @classmethod
    def load(cls, folder: str | Path) -> Report:
        """Read what `save` wrote, if it is as it was written."""
        folder = _checks.path(folder, "folder")
        facts = read_report(folder / "report.json")
        try:
            claims = tuple(Claim(**claim) for claim in facts.pop("claims"))
            experiment = Experiment.named(facts["experiment"])
        except (TypeError, BadInput) as error:
            raise BadInput(
                f"{folder / 'report.json'} has other claims than festina's ({error})", KIND, "run the experiment again"
            ) from None
        if "files" in facts:
            check_file(folder, "data.nc", facts["files"])
        else:
            warnings.warn(f"{folder} has no checksums, so damage may pass unseen; run it again", stacklevel=2)
        return cls(experiment, Result(load_netcdf(folder / "data.nc")), claims, facts)

    def __repr__(self) -> str:
        lines = [f"{self.experiment.name}: {self.experiment.finding}"]
        for claim in self.claims:
            mark = "✓" if claim.holds else "✗"
            note = "" if claim.as_expected else "   ← not as expected"
            if not claim.expected and claim.as_expected:
                note = f"   (known not to reproduce: {claim.reason})"
            lines.append(f"  {mark} {claim.text}: {show_number(claim.measured)} ({claim.required}){note}")
        return "\n".join(lines)


def run(
    name: str,
    *,
    quick: bool = False,
    preset: str | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    **parameters: Any,
) -> Report:
    """Run an experiment and return its report; with `out`, also write it there.

    `preset` is "full" (the default), "quick" (which `quick` is short for), or a setting of a source that the
    experiment knows. `parameters` change single values of it.
    """
    if out is None:
        return run_into(None, name, quick=quick, preset=preset, seed=seed, **parameters)
    with alone_in(writable_folder(out, "out")) as folder:
        return run_into(folder, name, quick=quick, preset=preset, seed=seed, **parameters)


def run_into(
    folder: Path | None,
    name: str,
    *,
    quick: bool = False,
    preset: str | None = None,
    seed: int = 0,
    **parameters: Any,
) -> Report:
    """`run` into a folder that this run has for itself."""
    experiment = Experiment.named(name)
    values = experiment.with_parameters(quick, preset, parameters)
    seed = _checks.seed(seed)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    began = time.perf_counter()
    make_room()  # many experiments in one process compile thousands of programs
    # With a folder to write to, an interrupted run leaves there what it has trained, and goes on from it.
    with interrupts_end_everything(), parts_kept_in(None if folder is None else folder / PARTS, _code()):
        result = experiment.module.run(**values, seed=seed)
    claims = tuple(experiment.module.claims(result))
    facts = {
        "experiment": name,
        "finding": experiment.finding,
        "description": experiment.description,
        "reference": experiment.reference,
        "preset": "custom" if parameters else preset_of(quick, preset),
        "parameters": json.loads(json.dumps(values)),
        "seed": seed,
        "setup": {label: json.loads(setup.to_json()) for label, setup in result.setups.items()},
        "networks": _networks(result.setups),
        "assumptions": [_assumptions(label, trajectory) for label, trajectory in result.theories.items()],
        "time": {"started": started, "seconds": round(time.perf_counter() - began, 3)},
        "outcome": "as expected" if all(claim.as_expected for claim in claims) else "differs",
        "versions": versions(),
        "device": _device(),
        "precision": ", ".join(sorted({setup.precision for setup in result.setups.values()})),
        "digest": digest(name, values, seed),
    }
    report = Report(experiment, result, claims, _json_safe(facts))
    if folder is not None:
        report._save_into(folder)
        clear_parts(folder)
    return report


def clear_parts(folder: Path) -> None:
    """Remove what an unfinished run has trained, once its report is there."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def writable_folder(value: Any, argument: str) -> Path:
    """The path of a folder that is there, or can be made; said before hours of work and not after."""
    folder = _checks.path(value, argument)
    try:
        above = next(part for part in (folder, *folder.parents) if part.exists())
    except OSError as error:  # a name that is too long
        raise BadInput(f"{argument} = {str(folder)!r} ({error.strerror})", "a folder", "give another name") from None
    if not above.is_dir():
        raise BadInput(f"{argument} = {str(folder)!r}, and {above} is a file", "a folder", "give another name")
    return folder


def digest(name: str, parameters: Mapping[str, Any], seed: int) -> str:
    """Names the inputs of a run: experiment, parameters, seed, and the code."""
    inputs = json.dumps([name, parameters, seed, _code()], sort_keys=True)
    return hashlib.sha256(inputs.encode()).hexdigest()


@functools.cache
def _code() -> str:
    """Fingerprint of festina's own sources, so that changed code is run again."""
    total = hashlib.sha256()
    root = Path(str(resources.files("festina")))
    for path in sorted(root.rglob("*.py")):
        total.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def _networks(setups: Mapping[str, Setup]) -> dict[str, list[str]]:
    """The file of every different gated network's picture, with the labels of its setups."""
    drawn: list[tuple[Any, list[str]]] = []
    for label, setup in setups.items():
        if not isinstance(setup.net, Gated):
            continue
        same = next((labels for net, labels in drawn if net == setup.net), None)
        if same is None:
            drawn.append((setup.net, [label]))
        else:
            same.append(label)
    return {f"network-{k + 1}.svg": labels for k, (_, labels) in enumerate(drawn)}


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    named = ("jax", "jaxlib", "diffrax", "numpy", "scipy", "xarray", "matplotlib")
    return {"festina": __version__, "python": platform.python_version(), **{n: metadata.version(n) for n in named}}


def _device() -> str:
    import jax

    devices = jax.devices()
    return f"{len(devices)} × {devices[0].device_kind}"


def _assumptions(label: str, trajectory: Trajectory) -> dict[str, Any]:
    facts = trajectory.provenance
    return {
        "theory": trajectory.source,
        "label": label,
        "exact": facts["exact"],
        "note": facts["note"],
        "assumptions": facts["assumptions"],
    }


def _json_safe(value: Any) -> Any:
    """JSON has no NaN and no infinity; they are written as texts."""
    if isinstance(value, Mapping):
        return {key: _json_safe(v) for key, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json_safe(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else str(float(value))
    return value.item() if isinstance(value, np.generic) else value


def show_number(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
