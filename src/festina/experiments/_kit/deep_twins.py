"""The gated network with two hidden layers of [jarvis2025, section 6], trained jointly or switched by hand.

Networks of other widths than 420 are divided in the same proportions, and start with weights 6·10⁻⁴·√(420/width), which
keep the size of the products of layers.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ... import inits, nets
from .item_contexts import RATE

ITEMS, CONTEXTS, SAMPLES = 8, 3, 24
WIDTH, SCALE = 420, 6e-4
FROZEN, LATE = 500, 12000  # epochs of the hand-switched schedule: the common pathway begins, the others begin
SCALES = {"first": 5.75e-4, "middle": 5.5e-4, "common": 5.5e-4, "contextual": 4e-3}  # of that schedule


def twin(hidden: int, name: str) -> nets.Gated:
    """A linear first layer for all; behind it 4/7 of the units are always on, and 1/7 for each pair of contexts."""
    pairs = {f"contexts {a + 1} and {b + 1}": [a, b] for a, b in combinations(range(CONTEXTS), 2)}
    second = {"all contexts": hidden - 3 * (hidden // 7), **dict.fromkeys(pairs, hidden // 7)}
    gates = {pair: {"context": contexts} for pair, contexts in pairs.items()}
    if name == "hand_switched":
        begins = SAMPLES * RATE * (LATE - FROZEN)
        gates = {pair: nets.Gated.schedule([(begins, gate)]) for pair, gate in gates.items()}
    edges = [("inputs", "layer 1"), *(("layer 1", node) for node in second), *((node, "outputs") for node in second)]
    return nets.Gated(
        {"inputs": None, "layer 1": hidden, **second, "outputs": None},
        edges,
        node_gates=gates,
        ranks=[int(not {"all contexts", "inputs"} & set(edge)) for edge in edges] if name == "hand_switched" else None,
    )


def start(name: str, wider: float) -> inits.SmallRandom:
    """The law of the initial weights of a twin, scaled by `wider` for its width."""
    if name == "joint":
        return inits.SmallRandom(SCALE * wider)
    scales = [SCALES["first"], *[SCALES["middle"]] * 4, SCALES["common"], *[SCALES["contextual"]] * 3]
    return inits.SmallRandom(wider * np.array(scales))
