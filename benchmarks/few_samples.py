"""Twenty hidden layers of 500 leaky ReLU units on two samples, per epoch, in float32: bound by memory.

Ours is called through `simulate`, which keeps the loss and the distances of the pair in every layer at 10 times.
PyTorch comes plain, and as a notebook has it: at every epoch the activity of all layers at both points, from a pass of
its own as networks are looked at in eval mode, with its distances and the loss as numbers. All start from the same
weights, drawn before, and must end with the same loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .harness import Claim, Contestant
from .rivals import Call

UNIT = "epoch"
EPOCHS = 600
LR = 0.005
TOLERANCE = 5e-3  # leaky networks multiply float32 rounding at their kinks


def setup() -> Any:
    import festina as fs

    drawn = fs.Setup(
        fs.tasks.two_point(), fs.nets.MLP((500,) * 20, "leaky_relu", bias=True), fs.inits.Xavier(1.0),
        fs.rules.GradientDescent(LR), times=np.linspace(0, EPOCHS * LR, 11)[1:], precision="float32",
    )  # fmt: skip
    return drawn.replace(init=fs.inits.Given(drawn.weights(0)))


def festina() -> Call:
    import festina as fs

    work = setup()
    return lambda: [float(fs.simulate(work, 1, ["loss", "distance"], progress=False)["loss"][0, -1])]


def torch_eager(notebook: bool = False) -> Call:
    import torch
    from torch import nn

    work = setup()
    x, y = (torch.tensor(np.asarray(values), dtype=torch.float32) for values in (work.task.x, work.task.y))
    first = [(torch.tensor(np.asarray(w)), torch.tensor(np.asarray(b))) for w, b in work.weights(0)]

    def model():
        parts = []
        for matrix, bias in first:
            linear = nn.Linear(matrix.shape[1], matrix.shape[0])
            with torch.no_grad():
                linear.weight.copy_(matrix)
                linear.bias.copy_(bias)
            parts += [linear, nn.LeakyReLU(0.01)]
        return nn.Sequential(*parts[:-1])

    def objective(outputs):
        return 0.5 * ((outputs - y) ** 2).sum() / len(x)

    def log(network):
        network.eval()
        with torch.no_grad():
            h, distances = x, []
            for part in network:
                h = part(h)
                if isinstance(part, nn.LeakyReLU):
                    distances.append(((h[1] - h[0]) ** 2).sum().item())
            outputs = h.numpy()
        network.train()
        return np.array(distances), outputs

    def go():
        network = model()
        optimizer, losses, logs = torch.optim.SGD(network.parameters(), lr=LR), [], []
        for _ in range(EPOCHS):
            if notebook:
                logs.append(log(network))
            optimizer.zero_grad()
            value = objective(network(x))
            value.backward()
            optimizer.step()
            if notebook:
                losses.append(value.item())
        with torch.no_grad():
            return [objective(network(x)).item()]

    return go


RIVALS = {"PyTorch eager": 2.0, "PyTorch notebook": 4.0}


def contestants(mode: str, folder: Path) -> list[Contestant]:
    rivals = [
        Contestant(name, "benchmarks.few_samples:torch_eager", {"notebook": "notebook" in name}, EPOCHS)
        for name in RIVALS
    ]
    return [Contestant("festina", "benchmarks.few_samples:festina", {}, EPOCHS), *rivals]


def claims(mode: str) -> list[Claim]:
    return [Claim("20 layers of 500, two samples", "festina", name, (name,), least) for name, least in RIVALS.items()]
