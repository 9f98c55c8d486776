"""run(): run an experiment with given parameters, and return its report."""

from __future__ import annotations

import datetime
import json
import shutil
import time
from pathlib import Path
from typing import Any

from .._foundation import checks
from .._foundation.files import alone_in, writable_folder
from .._training.resumable import Parts
from .experiment import Experiment, preset_of
from .provenance import assumptions_of, code_fingerprint, device_name, digest, json_safe, networks_of, versions
from .report import Report

PARTS = "parts"  # the folder of what an unfinished run has trained


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
    seed = checks.seed(seed)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    began = time.perf_counter()
    # With a folder to write to, an interrupted run leaves there what it has trained, and goes on from it.
    parts = None if folder is None else Parts(folder / PARTS, code_fingerprint())
    result = experiment.module.run(**values, seed=seed, **({"parts": parts} if experiment.is_resumable else {}))
    claims = tuple(experiment.module.claims(result))
    facts = {
        "experiment": name,
        "finding": experiment.finding,
        "description": experiment.description,
        "theme": experiment.theme,
        "caption": experiment.caption,
        "alt": experiment.alt,
        "reference": experiment.reference,
        "preset": "custom" if parameters else preset_of(quick, preset),
        "parameters": json.loads(json.dumps(values)),
        "seed": seed,
        "setup": {label: json.loads(setup.to_json()) for label, setup in result.setups.items()},
        "networks": networks_of(result.setups),
        "assumptions": [assumptions_of(label, trajectory) for label, trajectory in result.theories.items()],
        "time": {"started": started, "seconds": round(time.perf_counter() - began, 3)},
        "outcome": "as expected" if all(claim.as_expected for claim in claims) else "differs",
        "versions": versions(),
        "device": device_name(),
        "precision": ", ".join(sorted({setup.precision for setup in result.setups.values()})),
        "digest": digest(name, values, seed),
    }
    report = Report(experiment, result, claims, json_safe(facts))
    if folder is not None:
        report._save_into(folder)
        clear_parts(folder)
    return report


def clear_parts(folder: Path) -> None:
    """Remove what an unfinished run has trained, once its report is there."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)
