"""What is computed once for a net on a task."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TypeVar

from .._foundation.read_only import read_only
from ..tasks.base import Task

N = TypeVar("N")
T = TypeVar("T")
REMEMBERED = 4  # tasks of each net: those of a sequence, while it is trained


def once_per_task(find: Callable[[N, Task], T]) -> Callable[[N, Task], T]:
    """Remember the answers of `find(net, task)` for the last tasks of each net: setups, theories and races ask often.

    The memory belongs to the function. It knows nets and tasks by identity, keeps no net alive, and drops its answers
    when the net is gone. NumPy arrays of an answer refuse writes.
    """
    answers: dict[int, tuple[weakref.ref[N], list[tuple[Task, T]]]] = {}

    def of_net(net: N) -> list[tuple[Task, T]]:
        number = id(net)
        of_this_net = answers.get(number)
        if of_this_net is None or of_this_net[0]() is not net:
            of_this_net = answers[number] = (weakref.ref(net, functools.partial(forget, number)), [])
        return of_this_net[1]

    def forget(number: int, dead_reference: weakref.ref[N]) -> None:
        # Another net may have got the same number since.
        if number in answers and answers[number][0] is dead_reference:
            del answers[number]

    @functools.wraps(find)
    def remembered(net: N, task: Task) -> T:
        of_this_net = of_net(net)
        for answered, answer in of_this_net:
            if answered is task:
                return answer
        answer = read_only(find(net, task))
        of_this_net.append((task, answer))
        del of_this_net[:-REMEMBERED]
        return answer

    return remembered
