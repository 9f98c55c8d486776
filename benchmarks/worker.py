"""One contestant: reads a job as a line of JSON, then runs it for a turn per line and answers with its times."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time

TURN = 0.5  # seconds; a short call is repeated for so long, as the system counts CPU time in ticks of 0.01


def main() -> None:
    job = json.loads(sys.stdin.readline())
    # Before any import that starts threads: they inherit the cores.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    module, function = job["make"].split(":")
    try:
        go = getattr(importlib.import_module(module), function)(**job["options"])
    except ModuleNotFoundError as error:
        tell({"missing": error.name})
        return
    go()  # compiles
    tell({"ready": True})
    for _ in sys.stdin:
        calls, losses = 0, []
        cpu, wall = time.process_time(), time.perf_counter()
        while time.perf_counter() - wall < TURN:
            losses = go()
            calls += 1
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        tell({"wall": wall, "cpu": cpu, "calls": calls, "losses": [float(loss) for loss in losses]})


def tell(answer: dict) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
