"""python -m benchmarks [names] [--rounds N] [--json FILE]"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import platform
import tempfile
from pathlib import Path
from typing import Any

from .harness import CORES, MODES, TOLERANCE, compete

NAMES = (
    "relu_training",
    "small_net",
    "recording",
    "moments",
    "closed_form",
    "riccati_dense",
    "riccati_small",
    "phase_map",
    "kernel_distance",
    "gated_samples",
    "gated_modes",
    "gated_race",
    "gated_xor",
    "depth",
    "depth_gated",
    "few_samples",
    "find_gates",
    "two_point",
    "two_point_fit",
)
HEADINGS = ("work", "threads", "rival", "ratio", "target", "reached", "festina", "the rival's")


def main() -> None:
    asked = arguments()
    results = []
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.names or NAMES:
            for mode in asked.mode or MODES:
                results.append(measured(name, mode, asked.rounds, asked.patience, Path(folder)))
                if asked.json:  # after each, so that an interrupted run keeps what it has
                    found = {"machine": machine(), "results": results}
                    asked.json.write_text(json.dumps(found, indent=1, ensure_ascii=False))
    notes = [note for result in results for note in result["notes"]]
    print("\n" + "\n".join(notes) if notes else "", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="festina against its rivals.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(NAMES)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=5, help="rounds whose medians are compared")
    parser.add_argument("--patience", type=int, default=5, help="how many disturbed rounds may be repeated")
    parser.add_argument("--mode", action="append", choices=MODES, help="threads: one core, default, or both")
    parser.add_argument("--json", type=Path, help="also write every round to this file")
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(NAMES):
        parser.error(f"no benchmark {unknown.pop()!r}; there are {', '.join(NAMES)}")
    return asked


def measured(name: str, mode: str, rounds: int, patience: int, folder: Path) -> dict[str, Any]:
    """Run one benchmark in one mode and print its rows as soon as they are known."""
    module = importlib.import_module(f"benchmarks.{name}")
    tolerance = getattr(module, "TOLERANCE", TOLERANCE)
    outcome = compete(module.contestants(mode, folder), mode, rounds, patience, tolerance)
    rows = [claim.row(outcome["medians"]) for claim in module.claims(mode)]
    for row in rows:
        row["disturbed"] = mode == "default" and outcome["disturbed"] > 0  # CPU time needs no quiet machine
        print(table_row(row, mode), flush=True)
    said = notes(name, mode, rounds, module.UNIT, outcome)
    return {"name": name, "unit": module.UNIT, **outcome, "rows": rows, "notes": said}


def table_row(row: dict[str, Any], mode: str) -> str:
    if row["ratio"] is None:
        cells = (row["work"], mode, row["rival"], "", row["target"], "", "", "")
    else:
        reached = {True: "yes", False: "no", None: "–"}[row["reached"]] + (", disturbed" if row["disturbed"] else "")
        rival = row["rival"] if row["fastest"] == row["rival"] else f"{row['rival']} ({row['fastest']})"
        times = (duration(row["ours_seconds"]), duration(row["rival_seconds"]))
        cells = (row["work"], mode, rival, f"{row['ratio']:.2f}", row["target"], reached, *times)
    return "| " + " | ".join(cells) + " |"


def notes(name: str, mode: str, rounds: int, unit: str, outcome: dict[str, Any]) -> list[str]:
    listed = ", ".join(f"{who} {duration(seconds)}" for who, seconds in outcome["medians"].items())
    lines = [f"{name}, {mode}: medians of {rounds} rounds per {unit}: {listed}."]
    if outcome["disturbed"]:
        lines.append(f"{name}, {mode}: in {outcome['disturbed']} of these rounds other processes used the cores.")
    return lines


def duration(seconds: float) -> str:
    for scale, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def machine() -> dict[str, Any]:
    import jax
    import numpy

    return {
        "date": datetime.date.today().isoformat(),
        "cores": len(CORES),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": numpy.__version__,
    }


if __name__ == "__main__":
    main()
