"""Draw the figures of the README and the docs: python docs/figures/make.py."""

from pathlib import Path

import festina as fs

FOLDER = Path(__file__).parent


def modes() -> None:
    """The modes of a small tree of items, learned one after another."""
    setup = fs.Setup(fs.tasks.hierarchy(levels=3), fs.nets.DeepLinear(hidden=32), fs.inits.Aligned(1e-3), until=60.0)
    figure = fs.compare(fs.solve(setup), fs.simulate(setup, seeds=4)).plot()
    figure.savefig(FOLDER / "modes.png", dpi=100)


def gated() -> None:
    """A gated network: one pathway that is always on, one for every pair of contexts."""
    net = fs.nets.Gated.contexts(subsets=2, contexts=3, items=8)
    net.draw(fs.tasks.contextual(items=8, contexts=3)).savefig(FOLDER / "gated.png", dpi=100)


if __name__ == "__main__":
    modes()
    gated()
