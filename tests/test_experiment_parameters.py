"""Parameters of experiments are checked by their annotations."""

from typing import Annotated

import pytest

import festina as fs
from festina.experiments._kit.parameters import POSITIVE, AtLeast, Parts, checked


@checked
def run(*, training: Annotated[tuple[float, int], Parts(rate=POSITIVE, epochs=AtLeast(2))] = (0.1, 3)):
    return training


def test_parts_have_a_check_each():
    assert run(training=[1, 2]) == (1.0, 2)
    assert run() == (0.1, 3)


@pytest.mark.parametrize(
    ("training", "words"),
    [((0.1,), r"give training=\(rate, epochs\)"), ((-1, 3), "rate of training"), ((1, 1), "epochs of training")],
)
def test_a_bad_part_is_named(training, words):
    with pytest.raises(fs.BadInput, match=words):
        run(training=training)
