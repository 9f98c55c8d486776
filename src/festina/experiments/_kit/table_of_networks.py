"""The networks of [vanrossem2024, tables 1 and 2] on two points, as they are printed and as they were run."""

from __future__ import annotations

import dataclasses
from typing import Any

from ... import inits, nets, rules, tasks
from ..._foundation.errors import UnknownName
from ..._setup.setup import Setup
from ...nets.base import Net

WIDE = 300  # units from which the spread of single draws is small
REPORTED = ("loss", "distance", "output_distance", "output_alignment", "mean_gap")

# The text gives dx = 0.5 and dy = 1; the figures come from dx² = 1 and dy² = 0.5, the defaults of the task.
DATA = {"as_run": {}, "as_printed": {"dx": 0.5, "dy": 1.0}}


@dataclasses.dataclass(frozen=True)
class Row:
    """One network of table 1, or one like them; `layer` is the hidden layer whose distances are used, from 0."""

    activation: str = "leaky_relu"
    gain: float = 1.0
    lr: float = 0.005
    units: int = 500
    layers: int = 20
    kind: str = "plain"
    layer: int | None = None  # as it was run; None: half way, layers // 2, as printed
    rule: str = "descent"

    @property
    def index(self) -> int:
        """The hidden layer whose distances are used."""
        return self.layers // 2 if self.layer is None else self.layer

    def net(self) -> Net:
        """The network."""
        if self.kind == "convolution":
            return nets.Convolutional(self.units, convolutions=self.layers + 1, activation=self.activation)
        return nets.MLP(
            (self.units,) * self.layers,
            self.activation,
            bias=True,
            skip=self.kind == "skip",
            dropout=0.1 if self.kind == "dropout" else 0.0,
        )


# Index 5 of the list that the dropout network records is its third hidden layer.
TABLE_1 = {
    "default": Row(),
    "convolution": Row(gain=0.95, lr=0.002, layers=10, kind="convolution", layer=5),
    "skip": Row(gain=0.1, lr=0.01, kind="skip"),
    "shallow": Row(gain=0.35, lr=0.01, layers=2),
    "narrow": Row(gain=1.05, units=50),
    "dropout": Row(layers=10, kind="dropout", layer=2),
    "linear": Row("linear", 0.85, 0.00125),
    "ReLU": Row("relu"),
    "ELU": Row("elu", 0.95, 0.00045),
    "tanh": Row("tanh", 0.85, 0.00125),
    "swish": Row("swish", 1.7, 0.0025),
    "low": Row(gain=0.9, lr=0.015),
    "intermediate": Row(gain=1.1, lr=0.0025),
    "high": Row(gain=1.3, lr=0.00075),
    "very high": Row(gain=1.4, lr=0.00025),
}

# Rows of the settings as run that table 1 does not have. In those settings all rates are twice those of the table, for
# half of the epochs; here they are halved, as in the table.
NOT_PRINTED = {
    "gain 1.2": Row(gain=1.2, lr=0.00125),
    "gain 1.6": Row(gain=1.6, lr=1.5e-6),
    "Adam": Row(lr=5e-7, rule="Adam"),
    "two-layer linear": Row("linear", 0.1, 0.005, layers=1),
}
RULES = {"descent": rules.GradientDescent, "Adam": rules.Adam}


def row(name: str, data: str = "as_run", **changes: Any) -> Row:
    """A network of table 1, or of those not printed, with `changes`; its layer is that as run or as printed."""
    known = TABLE_1 | NOT_PRINTED
    if name not in known:
        raise UnknownName.among("network of table 1", name, known)
    chosen = dataclasses.replace(known[name], **changes)
    return chosen if data == "as_run" else dataclasses.replace(chosen, layer=None)


def two_point_setup(which: Row, data: str = "as_run", *, epochs: int = 6000, every: int = 20) -> Setup:
    """Full-batch training of a row on two points; float32, as it was run."""
    if data not in DATA:
        raise UnknownName.among("data", data, DATA)
    return Setup(
        tasks.two_point(**DATA[data]),
        which.net(),
        inits.Xavier(which.gain),
        RULES[which.rule](which.lr),
        until=epochs * which.lr,
        every=every,
        precision="float32",
    )
