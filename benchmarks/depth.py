"""Two hidden layers of 420 ReLU units, as in the depth experiment: one seed, per epoch, in float32.

The rivals are written as research code is: a pass over the samples, one compiled or eager step per epoch, and the loss
of every epoch as a Python number. Ours is called through `simulate`, and keeps the loss of 10 epochs. All start from
the same weights and must end with the same loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call, jitted_steps

UNIT = "epoch of one seed"
EPOCHS = 1000
LR = 0.024
HIDDEN = 420
TOLERANCE = 1e-3  # float32, and the order of sums


def setup(kind: str) -> Any:
    import festina as fs
    from festina.experiments.deeper_networks_vary import twin

    # Starts ten times those of the experiment: the loss falls within these epochs.
    net = fs.nets.MLP((HIDDEN, HIDDEN)) if kind == "ReLU" else twin(HIDDEN, "joint")
    return fs.Setup(
        fs.tasks.contextual(8, 3, "hierarchy"), net, fs.inits.SmallRandom(6e-3), fs.rules.GradientDescent(LR),
        times=np.linspace(0, EPOCHS * LR, 11)[1:], precision="float32",
    )  # fmt: skip


def festina(kind: str) -> Call:
    import festina as fs

    work = setup(kind)
    return lambda: [float(fs.simulate(work, 1, "loss", progress=False)["loss"][0, -1])]


def outputs(kind: str, xp: Any, relu: Any) -> Any:
    """f(weights, x) over samples, in any array library; gates are columns over samples."""
    if kind == "ReLU":
        return lambda weights, x: relu(relu(x @ weights[0].T) @ weights[1].T) @ weights[2].T
    work = setup(kind)
    net = work.net.on(work.task)
    gates = [xp(np.asarray(gate, np.float32)[:, None]) for gate in net.node_gates.values()]

    def gated(weights, x):
        first, *rest = weights
        into, out = rest[:4], rest[4:]
        h = x @ first.T
        common = (h @ into[0].T) @ out[0].T
        return common + sum((gate * (h @ a.T)) @ b.T for gate, a, b in zip(gates, into[1:], out[1:], strict=True))

    return gated


def jitted(kind: str) -> Call:
    import jax
    import jax.numpy as jnp

    work = setup(kind)
    x, y = (jnp.asarray(values, jnp.float32) for values in (work.task.x, work.task.y))
    first = tuple(jnp.asarray(w, jnp.float32) for w in work.weights(0))
    function = outputs(kind, jnp.asarray, jax.nn.relu)

    def objective(weights):
        return 0.5 * jnp.mean(jnp.sum((function(weights, x) - y) ** 2, axis=1))

    train = jitted_steps(objective, LR, EPOCHS)
    return lambda: [float(objective(train(first)))]


def torch_eager(kind: str) -> Call:
    import torch

    work = setup(kind)
    x, y = (torch.tensor(values, dtype=torch.float32) for values in (work.task.x, work.task.y))
    first = [torch.tensor(np.asarray(w), dtype=torch.float32) for w in work.weights(0)]
    function = outputs(kind, torch.from_numpy, torch.relu)

    def go():
        weights = [w.clone().requires_grad_() for w in first]
        optimizer, losses = torch.optim.SGD(weights, lr=LR), []
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            value = 0.5 * ((function(weights, x) - y) ** 2).sum(dim=1).mean()
            value.backward()
            optimizer.step()
            losses.append(value.item())
        with torch.no_grad():
            return [float(0.5 * ((function(weights, x) - y) ** 2).sum(dim=1).mean())]

    return go


RIVALS = {"jitted loop": "jitted", "PyTorch eager": "torch_eager"}


def contestants(mode: str, folder: Path, kind: str = "ReLU") -> list[Contestant]:
    entered = {"festina": "festina", **RIVALS}
    return [
        Contestant(name, f"benchmarks.depth:{function}", {"kind": kind}, EPOCHS) for name, function in entered.items()
    ]


def claims(mode: str, kind: str = "ReLU") -> list[Claim]:
    return [Claim(f"two hidden layers, {kind}", "festina", name, (name,)) for name in RIVALS]
