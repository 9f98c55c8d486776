"""Training seven gated pathways with their modes followed, against a jitted step that decomposes them every epoch.

Ours records the map at 100 times and decomposes every pathway at these. The rivals are written as research code is:
a pass over the samples, `jax.value_and_grad`, and `jnp.linalg.svd` of each pathway's map, here inside the compiled
step. Two more, without a target, say what the comparison rests on: NumPy's decomposition after every step, and modes
only as often as ours. Rivals take the first tenth of the epochs and are counted per epoch. All start from the same
weights, and must agree there on the loss and on the largest singular value of every pathway.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .gated_problem import EPOCHS, LR, setup, task
from .harness import Claim, Contestant
from .rivals import Call

UNIT = "epoch"
SUBSETS = (1, 2)  # sizes: with the common pathway, seven
RECORDS = 100
RIVAL_EPOCHS = EPOCHS // 10
SEEN = RECORDS * RIVAL_EPOCHS // EPOCHS - 1  # the record at the rivals' last epoch
EVERY = EPOCHS // RECORDS


def festina(precision: str) -> Call:
    import festina as fs

    work = setup(task(), SUBSETS, RECORDS, precision)
    bound = work.lifted()
    sizes = [bound.net.plan.graph.size[node] for node, _ in bound.net.plan.blocks]  # each is of one pathway
    cuts = np.cumsum(sizes)[:-1]

    def go():
        seen = fs.simulate(work, 1, ("loss", "map"), progress=False)
        modes = [np.linalg.svd(part, full_matrices=False) for part in np.split(seen["map"][0], cuts, axis=-1)]
        return [seen["loss"][0, SEEN], *(values[SEEN, 0] for _, values, _ in modes)]

    return go


def jitted(precision: str, every: int, by: str) -> Call:
    """One compiled step per epoch; modes after every `every` epochs, `by` JAX within the step or by NumPy after it."""
    import jax

    jax.config.update("jax_enable_x64", precision == "float64")
    import jax.numpy as jnp

    work = setup(task(), SUBSETS)
    net = work.net.on(work.task)
    x, y = (jnp.asarray(values, precision) for values in (work.task.x, work.task.y))
    reads, _ = net.columns(work.task.d_in, work.task.d_out)
    columns = [np.asarray(reads[path.source]) for path in net.paths()]
    gates = [jnp.asarray(opening, precision)[:, None] for opening in net.moments(work.task).openings]
    weights = work.weights(0)
    first = [tuple(jnp.asarray(weights[k], precision) for k in path.edges) for path in net.paths()]

    def objective(pathways):
        outputs = sum(
            gate * (x[:, seen] @ into.T @ out.T)
            for gate, seen, (into, out) in zip(gates, columns, pathways, strict=True)
        )
        return 0.5 * jnp.mean(jnp.sum((outputs - y) ** 2, axis=1))

    def decomposed(pathways, xp=jnp):
        return [xp.linalg.svd(out @ into, full_matrices=False) for into, out in pathways]

    def moved(pathways):
        value, slope = jax.value_and_grad(objective)(pathways)
        return jax.tree.map(lambda w, g: w - LR * g, pathways, slope), value

    @jax.jit
    def step_with_modes(pathways):
        pathways, value = moved(pathways)
        return pathways, value, decomposed(pathways)

    step = jax.jit(moved)

    def go():
        pathways, losses, followed = first, [], []
        for epoch in range(1, RIVAL_EPOCHS + 1):
            modes = []
            if by == "JAX" and epoch % every == 0:
                pathways, value, modes = step_with_modes(pathways)
            else:
                pathways, value = step(pathways)
            if by == "NumPy" and epoch % every == 0:
                modes = decomposed(jax.tree.map(np.asarray, pathways), np)
            followed += [[np.asarray(values) for _, values, _ in modes]] if modes else []
            losses.append(float(value))
        return [float(objective(pathways)), *(values[0] for values in followed[-1])]

    return go


# Precision, epochs between modes, decomposition, target.
RIVALS = (
    ("float32", 1, "JAX", 10),
    ("float64", 1, "JAX", 10),
    ("float32", 1, "NumPy", None),
    ("float32", EVERY, "JAX", None),
)


def contestants(mode: str, folder: Path) -> list[Contestant]:
    ours, rival = "benchmarks.gated_modes:festina", "benchmarks.gated_modes:jitted"
    listed = [Contestant(f"festina, {name}", ours, {"precision": name}, EPOCHS) for name in ("float32", "float64")]
    for precision, every, by, _ in RIVALS:
        options = {"precision": precision, "every": every, "by": by}
        listed.append(Contestant(_name(precision, every, by), rival, options, RIVAL_EPOCHS))
    return listed


def claims(mode: str) -> list[Claim]:
    work = "seven gated pathways and their modes"
    return [
        Claim(f"{work}, {precision}", f"festina, {precision}", rival, (rival,), least)
        for precision, every, by, least in RIVALS
        for rival in (_name(precision, every, by),)
    ]


def _name(precision: str, every: int, by: str) -> str:
    return f"jitted step, {precision}, modes by {by} every {'epoch' if every == 1 else f'{every} epochs'}"
