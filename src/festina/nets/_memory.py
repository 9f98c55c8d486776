"""What is computed once for a net on a task."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TypeVar

from ..tasks.base import Task

N = TypeVar("N")
T = TypeVar("T")
REMEMBERED = 4  # tasks of each net: those of a sequence, while it is trained


def once_per_task(find: Callable[[N, Task], T]) -> Callable[[N, Task], T]:
    """Remember the answers of `find(net, task)` for the last tasks of each net: setups, theories and races ask often.

    The memory belongs to the function. It knows nets and tasks by identity, keeps no net alive, and drops its answers
    when the net is gone, so that it changes nothing but the time that an answer takes.
    """
    answers: dict[int, tuple[weakref.ref[N], list[tuple[Task, T]]]] = {}

    def of_net(net: N) -> list[tuple[Task, T]]:
        number = id(net)
        known = answers.get(number)
        if known is None or known[0]() is not net:
            known = answers[number] = (weakref.ref(net, functools.partial(forget, number)), [])
        return known[1]

    def forget(number: int, gone: weakref.ref[N]) -> None:
        # Another net may have got the same number since.
        if number in answers and answers[number][0] is gone:
            del answers[number]

    @functools.wraps(find)
    def remembered(net: N, task: Task) -> T:
        known = of_net(net)
        for asked, answer in known:
            if asked is task:
                return answer
        answer = find(net, task)
        known.append((task, answer))
        del known[:-REMEMBERED]
        return answer

    return remembered
