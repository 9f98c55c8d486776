"""The files of a report: report.json has a checksum of every other file, and of itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .._foundation.errors import BadInput
from .._foundation.files import read_plain, write_whole

FILES = ("report.json", "data.nc", "figure.svg", "figure.png")
KIND = "a report.json written by festina"


def write_report(folder: Path, facts: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write report.json and the files that belong to it, all or none."""
    facts = {**facts, "files": {file: _sum(content) for file, content in files.items()}}
    text = json.dumps({**facts, "checksum": _sum_of(facts)}, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(folder, {**files, "report.json": f"{text}\n".encode()})
    for path in set(folder.glob("network-*.svg")) - {folder / file for file in files}:
        path.unlink()  # of the report that was here before


def read_report(path: Path) -> dict[str, Any]:
    """What a report.json holds, if it is as it was written; one of an early version has no checksum."""
    content = read_plain(path, KIND)
    try:
        value = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} cannot be read ({error})", KIND, "run the experiment again") from None
    if not isinstance(value, dict) or "experiment" not in value or "claims" not in value:
        raise BadInput(f"{path} is JSON, but no festina report", KIND, "check the folder")
    rest = {key: fact for key, fact in value.items() if key != "checksum"}
    if ("checksum" in value or "files" in value) and value.get("checksum") != _sum_of(rest):
        raise BadInput(f"{path} has another checksum than was written", KIND, "run the experiment again")
    return value


def check_file(folder: Path, file: str, sums: Mapping[str, str]) -> None:
    """Refuse a file that is not the one that was written with report.json."""
    if _sum(read_plain(folder / file, f"the {file} of a report")) != sums.get(file):
        raise BadInput(
            f"{folder / file} is not the file that was written with report.json",
            "the files of one report, unchanged",
            "run the experiment again",
        )


def is_done(folder: Path, wanted: str) -> bool:
    """Whether a folder holds a whole report of the same inputs, every file as it was written."""
    try:
        report = read_report(folder / "report.json")
        for file in (*FILES[1:], *report.get("networks", ())):
            check_file(folder, file, report.get("files", {}))
    except BadInput:
        return False
    return report.get("digest") == wanted


def _sum_of(facts: Mapping[str, Any]) -> str:
    return _sum(json.dumps(facts, sort_keys=True).encode())


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
