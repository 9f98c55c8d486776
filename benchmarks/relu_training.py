"""Full-batch descent of an 11–700–60 ReLU network on 24 samples, 8,000 epochs in float32; one seed and 16.

The rivals train one seed per turn: their cost per seed does not depend on how many follow.
"""

from __future__ import annotations

from pathlib import Path

from .harness import CORES, Claim, Contestant
from .problem import EPOCHS, operations, setup, write_start
from .rivals import KEEP_MEMORY, PEAK_SIZE, Call

HIDDEN = 700
SEEDS = 16
UNIT = "epoch of one seed"
NUMPY = ("NumPy", "NumPy, memory kept", "NumPy, buffers")
JITTED = ("jitted loop", "jitted loop, memory kept")
TORCH = ("PyTorch eager", "PyTorch eager, memory kept")


def festina(hidden: int, seeds: int, devices: int) -> Call:
    import jax

    if devices > 1:
        jax.config.update("jax_num_cpu_devices", devices)  # as the command line does
    import festina as fs

    work = setup(hidden)
    return lambda: fs.simulate(work, seeds, "loss", progress=False)["loss"][:, -1].tolist()


def contestants(mode: str, folder: Path) -> list[Contestant]:
    devices = 1 if mode == "one core" else len(CORES)
    ours = "benchmarks.relu_training:festina"
    many = {"hidden": HIDDEN, "seeds": SEEDS, "devices": devices}
    one = {"hidden": HIDDEN, "seeds": 1, "devices": 1}
    start = {"start": write_start(HIDDEN, folder)}
    # In epochs, so that the peak reads as the shortest time an epoch could take.
    peak = 2 * PEAK_SIZE**3 / operations(HIDDEN)
    return [
        Contestant("festina", ours, one, EPOCHS),
        Contestant("festina, 16 seeds", ours, many, EPOCHS * SEEDS, cores=devices),
        Contestant("peak", "benchmarks.rivals:matrix_product", {}, peak, cores=devices),
        Contestant(NUMPY[0], "benchmarks.rivals:numpy_loop", start, EPOCHS),
        Contestant(NUMPY[1], "benchmarks.rivals:numpy_loop", start, EPOCHS, KEEP_MEMORY),
        Contestant(NUMPY[2], "benchmarks.rivals:numpy_buffers", start, EPOCHS),
        Contestant(JITTED[0], "benchmarks.rivals:jitted_loop", start, EPOCHS),
        Contestant(JITTED[1], "benchmarks.rivals:jitted_loop", start, EPOCHS, KEEP_MEMORY),
        Contestant(TORCH[0], "benchmarks.rivals:torch_eager", start, EPOCHS),
        Contestant(TORCH[1], "benchmarks.rivals:torch_eager", start, EPOCHS, KEEP_MEMORY),
    ]


def claims(mode: str) -> list[Claim]:
    one, many = "11–700–60, one seed", "11–700–60, 16 seeds"
    parallel = mode == "default" and len(CORES) == 2  # the targets for 16 seeds are for two cores
    return [
        Claim(one, "festina", "NumPy", NUMPY, least=1.2),
        Claim(one, "festina", "jitted loop", JITTED, least=1),
        Claim(one, "festina", "PyTorch eager", TORCH, least=3),
        Claim(many, "festina, 16 seeds", "NumPy", NUMPY),
        Claim(many, "festina, 16 seeds", "jitted loop", JITTED, least=2 if parallel else None),
        Claim(many, "festina, 16 seeds", "PyTorch eager", TORCH, least=6 if parallel else None),
        Claim(many, "festina, 16 seeds", "peak of matrix products", ("peak",), least=0.55 if parallel else None),
    ]
