"""Draw the figures of the README and the docs: python docs/figures/make.py."""

from pathlib import Path

import numpy as np

import festina as fs
from festina._figures.panels import key, panels
from festina._figures.style import COLOURS, predicted, styled, trained

FOLDER = Path(__file__).parent
# What each mode of the tree of eight items tells apart: the sign of every item, in their order.
CONTRASTS = {
    "all items": [1, 1, 1, 1, 1, 1, 1, 1],
    "animals / plants": [1, 1, 1, 1, -1, -1, -1, -1],
    "birds / fish": [1, 1, -1, -1, 0, 0, 0, 0],
    "trees / flowers": [0, 0, 0, 0, 1, 1, -1, -1],
    "canary / robin": [1, -1, 0, 0, 0, 0, 0, 0],
    "salmon / sunfish": [0, 0, 1, -1, 0, 0, 0, 0],
    "oak / pine": [0, 0, 0, 0, 1, -1, 0, 0],
    "rose / daisy": [0, 0, 0, 0, 0, 0, 1, -1],
}
STAGES = ("all items", "animals / plants", "birds / fish, trees / flowers", "the items of a pair")
LEVELS = (0, 1, 2, 2, 3, 3, 3, 3)  # the stage of each mode


def modes() -> None:
    """The modes of a small tree of items, learned one after another."""
    task = fs.tasks.hierarchy(levels=3)
    setup = fs.Setup(task, fs.nets.DeepLinear(hidden=32), fs.inits.Aligned(1e-8), points=400)
    theory, training = (answer(setup, observe=["loss", "map"]) for answer in (fs.solve, fs.simulate))
    right = np.array(list(CONTRASTS.values()), float)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    left = right @ task.cov_yx.T
    targets = np.einsum("mo,oi,mi->m", left, task.target(), right)  # strengths relative to these end at 1
    with styled():
        sheet, at = panels("ab", row=3.6, width_ratios=[1.25, 1])
        trained(at["a"], setup.times, training["loss"], colour=COLOURS[7])
        predicted(at["a"], setup.times, theory["loss"], colour=COLOURS[7])
        at["a"].set(title="The loss falls in four steps", xlabel="time (τ)", ylabel="loss (½ mean squared error)")
        for row, (name, v, u, target) in enumerate(zip(CONTRASTS, right, left, targets, strict=True)):
            learned, predicted_ = (np.einsum("...oi,o,i", run["map"], u, v) / target for run in (training, theory))
            height, colour = len(CONTRASTS) - 1 - row, COLOURS[LEVELS[row]]
            trained(at["b"], setup.times, 0.75 * learned + height, colour=colour)
            predicted(at["b"], setup.times, 0.75 * predicted_ + height, colour=colour)
            at["b"].annotate(name, (0, height), (-6, 4), textcoords="offset points", ha="right", annotation_clip=False)
            if LEVELS.index(LEVELS[row]) == row:
                half = int(np.argmax(predicted_ > 0.5))
                place = (setup.times[half], theory["loss"][half])
                at["a"].annotate(STAGES[LEVELS[row]], place, (10, 6), textcoords="offset points")
        at["b"].set(title="Strength of each mode, 0 to target", xlabel="time (τ)", yticks=[])
        at["b"].spines["left"].set_visible(False)
        key(sheet, kinds=("training", "theory"))
        sheet.savefig(FOLDER / "modes.png", dpi=100)


def gated() -> None:
    """A gated network: one pathway that is always on, one for every pair of contexts."""
    net = fs.nets.Gated.contexts(subsets=2, contexts=3, items=8)
    net.draw(fs.tasks.contextual(items=8, contexts=3)).savefig(FOLDER / "gated.png", dpi=100)


if __name__ == "__main__":
    modes()
    gated()
