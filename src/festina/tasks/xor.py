"""Exclusive or, with a third input that gives the answer away by a margin.

Two inputs are ±1, the target y is +1 where they differ and −1 where they agree, and the third input is margin·y
[jarvis2025, section 3 and appendix C, equations 11 and 12]. The three inputs are uncorrelated, so that a linear network
has one mode: Σˣ = diag(1, 1, margin²), and Σʸˣ has the single singular value `margin`, along the third input. With
margin 0 it learns nothing; a network with gates can use the other two inputs. In the form of bits inputs and targets
are 0 and 1, and there is no third input [vanrossem2024, section 4.2].
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .._foundation.checks import choice, positive
from .._foundation.errors import BadInput
from ._recipe import recipe
from .base import Task
from .own_data import from_arrays

ITEMS = ("− −", "+ −", "− +", "+ +")


@recipe
def xor(margin: float = 1.0, form: str = "signs") -> Task:
    """Exclusive or of two inputs, with a third that separates the two answers by `margin` on either side of 0.

    With form="bits" inputs and target are 0 and 1 in place of −1 and 1, and there is no third input and no
    margin. Labels: "item" (0 … 3) and "sign" (+1 where the inputs differ, −1 where they agree).
    """
    margin = positive(margin, "margin", zero=True)
    choice(form, "form", ("signs", "bits"))
    if form == "bits" and margin != 1:
        raise BadInput(
            f'margin = {margin:g} with form="bits"',
            "no margin: bits have no third input",
            'leave margin out, or give form="signs"',
        )
    first, second = np.array([-1.0, 1.0, -1.0, 1.0]), np.array([-1.0, -1.0, 1.0, 1.0])
    answer = -first * second
    if form == "bits":
        bits = np.stack([first, second], axis=1) > 0
        labels = {"item": np.arange(4), "sign": answer}
        items, inputs = ("0 0", "1 0", "0 1", "1 1"), ("first", "second")
        return from_arrays(bits + 0.0, (answer[:, None] + 1) / 2, items=items, inputs=inputs, labels=labels)
    task = from_arrays(
        np.stack([first, second, margin * answer], axis=1),
        answer[:, None],
        items=ITEMS,
        inputs=("first", "second", "margin"),
        features=("differ",),
        labels={"item": np.arange(4), "sign": answer},
    )
    return dataclasses.replace(task, stated_spectrum=np.array([margin]))
