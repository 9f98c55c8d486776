"""Experiments side by side: each worker is a process that reads names and answers with outcomes, a JSON line each.

Workers are processes of their own since a compiled program, and JAX's list of devices, belong to a process. A worker
ends when its standard input does, so that none is left behind if this process is killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO

from .single import Outcome
from .worker import Message, Work

WORKER = "festina._reporting.worker"
PATIENCE = 10.0  # seconds that workers have to end by themselves after Ctrl-C


def outcomes(names: Sequence[str], work: Work, jobs: int) -> Iterator[Message]:
    """Messages and outcomes of experiments that up to `jobs` workers run, in the order in which they come."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    workers = [_Worker(work) for _ in range(min(jobs, len(names)))]
    left = len(names)
    try:
        for worker in workers:
            worker.begin(waiting, messages)
        while left:
            message = messages.get()
            left -= message.outcome is not None
            yield message
    except BaseException:
        for worker in workers:
            worker.interrupt()
        raise
    finally:
        until = time.monotonic() + PATIENCE
        for worker in workers:
            worker.end(until)


class _Worker:
    """The main process's handle on one worker process."""

    process: subprocess.Popen[str]
    requests: IO[str]
    answers: IO[str]

    def __init__(self, work: Work):
        self._work = json.dumps(dataclasses.asdict(work))
        self._ending = False
        self._change = threading.Lock()  # of the process, or of whether it is to end
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout
        self._ask(self._work)

    def _ask(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its end is noticed when the answer is missing
            self.requests.write(line + "\n")
            self.requests.flush()

    def begin(self, waiting: queue.SimpleQueue[str], messages: queue.SimpleQueue[Message]) -> None:
        """`serve` in a thread."""
        self._thread = threading.Thread(target=self.serve, args=(waiting, messages), daemon=True)
        self._thread.start()

    def serve(self, waiting: queue.SimpleQueue[str], messages: queue.SimpleQueue[Message]) -> None:
        """Have experiments done one after the other, until none is waiting; a process that dies is replaced."""
        while not self._ending:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            if not self._is_ready():
                return
            self._ask(name)
            for line in self.answers:
                answer = json.loads(line)
                outcome = Outcome(**answer["outcome"]) if answer["outcome"] else None
                messages.put(Message(answer["text"], outcome))
                if outcome is not None:
                    break
            else:
                code = self.process.wait()
                error = f"the process that ran it ended with code {code}, before its report was written"
                messages.put(Message(outcome=Outcome(name, error=error)))

    def _is_ready(self) -> bool:
        """Replace a process that has died; false if the worker is to end."""
        with self._change:
            if not self._ending and self.process.poll() is not None:
                self._close()
                self._start()
            return not self._ending

    def interrupt(self) -> None:
        """What Ctrl-C in a terminal does, which reaches every process."""
        with self._change:
            self._ending = True
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)

    def end(self, until: float) -> None:
        """Wait for the process to end, and end it if it has not by then."""
        with self._change:
            self._ending = True
        with contextlib.suppress(OSError):
            self.requests.close()
        try:
            self.process.wait(max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()  # it reads to the end of what the process has answered
        self._close()

    def _close(self) -> None:
        with contextlib.suppress(OSError):  # what could not be written is of no use any more
            self.requests.close()
        self.answers.close()
