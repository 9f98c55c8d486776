"""Who wins among gated pathways, and the closed form of it, against training; 8 items in 3 contexts, equal trees.

Ours are `race` without training, which predicts the loss of two candidates (pathways for one, and for two of the three
contexts), and `solve` by ContextRace at 1,000 times for the second of them; both make new setups at every call. The
rivals train the same networks for 8,000 epochs. What is compared is the loss that the second one has at `SEEN`.

    python -m benchmarks.gated_race        # time and memory of both at 24 and at 240,000 samples
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from .gated_problem import EPOCHS, LR, SCALE, WIDTH, setup, task
from .harness import Claim, Contestant
from .rivals import Call

UNIT = "call"
TOLERANCE = 0.02  # the closed form is the limit of small starts, and race has other draws
HORIZON = EPOCHS * LR
SEEN = HORIZON / 2  # the loss has fallen to a twentieth
TIMES = np.linspace(0, HORIZON, 1000)
SINGLES, DOUBLES = 1, 2


def raced(given: Any) -> list[float]:
    import festina as fs

    table = fs.race(given, hidden=4 * WIDTH, scale=SCALE, lr=LR, until=HORIZON, check=False)
    return [float(table["predicted_loss"].sel(candidate="2 of 3 contexts").interp(time=SEEN))]


def solved(given: Any) -> list[float]:
    import festina as fs

    work = setup(given, DOUBLES).replace(rule=fs.rules.GradientFlow(), times=TIMES)
    return [float(np.interp(SEEN, TIMES, fs.solve(work, "ContextRace", observe="loss")["loss"]))]


def predicted(how: str) -> Call:
    given, call = task(blocks="hierarchy"), {"race": raced, "ContextRace": solved}[how]
    return lambda: call(given)


def trained(subsets: tuple[int, ...]) -> Call:
    import festina as fs

    works = [setup(task(blocks="hierarchy"), size, records=2) for size in subsets]
    return lambda: [fs.simulate(work, 1, "loss", progress=False)["loss"][0, 0] for work in works][-1:]


def contestants(mode: str, folder: Path) -> list[Contestant]:
    ours, rival = "benchmarks.gated_race:predicted", "benchmarks.gated_race:trained"
    return [
        Contestant("race", ours, {"how": "race"}),
        Contestant("ContextRace", ours, {"how": "ContextRace"}),
        Contestant("training of both", rival, {"subsets": (SINGLES, DOUBLES)}),
        Contestant("training", rival, {"subsets": (DOUBLES,)}),
    ]


def claims(mode: str) -> list[Claim]:
    return [
        Claim("race of two gatings, predicted", "race", "training of both", ("training of both",)),
        Claim("ContextRace at 1,000 times", "ContextRace", "training", ("training",)),
    ]


def main() -> None:
    """Print what a second call takes, and how much memory it has at its peak above what was there before."""
    print("| call | samples | y alone | time | peak of NumPy's arrays | peak of the process |\n" + "|---" * 6 + "|")
    for repeats in (1, 10_000):
        given = task(repeats, "hierarchy")
        for name, call in (("race", raced), ("ContextRace", solved)):
            call(given)  # compiles
            began = time.perf_counter()
            resident = _resident_peak(lambda call=call, given=given: call(given))
            seconds = time.perf_counter() - began
            tracemalloc.start()
            call(given)
            arrays = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            sizes = " | ".join(f"{size / 1e6:.1f} MB" for size in (arrays, resident))
            print(f"| {name} | {given.samples:,} | {given.y.nbytes / 1e6:.2f} MB | {1e3 * seconds:.0f} ms | {sizes} |")


def _resident_peak(call: Any) -> int:
    """Bytes by which the process grows while `call` runs, at most; by what Linux counts."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _resident("VmRSS")
    call()
    return max(0, _resident("VmHWM") - before)


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
