"""Ctrl-C: what is finished is kept, no half report is written, and no process is left behind."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time

NAME = "networks_learn_mode_by_mode"
DAYS = ("run", NAME, "--lr", "1e-6")  # of steps


def text_until(process, terminal: int, sign: str, seconds: float = 240) -> str:
    """What a process prints on its terminal, until a sign of what the test waits for."""
    text, until = "", time.monotonic() + seconds
    while not re.search(sign, text):
        going = process.poll() is None and time.monotonic() < until
        assert going or select.select([terminal], [], [], 0)[0], f"no {sign!r} in {text!r}"
        if select.select([terminal], [], [], 1.0)[0]:
            text += os.read(terminal, 65536).decode(errors="replace")
    return text


def test_ctrl_c_keeps_what_is_finished_and_writes_no_half_report(child, tmp_path):
    ours, theirs = pty.openpty()  # the bar with the loss is shown on a terminal
    try:
        process = child(
            sys.executable, "-m", "festina.cli", *DAYS, "--out", str(tmp_path / "slow"), stderr=theirs, stdout=theirs
        )
        text_until(process, ours, r"loss \d")
        process.send_signal(signal.SIGINT)
        text = text_until(process, ours, "goes on from there")
        assert process.wait(timeout=120) == 130
    finally:
        os.close(ours)
        os.close(theirs)
    assert "interrupted" in text
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []
