"""Live displays on a terminal: they are drawn, and what is printed beside them is escaped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manual.terminal import run

ROOT = Path(__file__).parents[4]
BEGIN = """
import sys, time
from producer.outputs.plain_streams import show_plain_text
show_plain_text()
"""
BAR = """
from producer.report.progress import open_progress
from tests.unit.producer.report.test_progress import snapshot
with open_progress("bar", quiet=False) as bar:
    bar.show(snapshot())
    time.sleep(0.3)
    print("beside \\x1b[31mred", file=sys.stderr)
    bar.note("noted \\x1b[31mred")
    time.sleep(0.5)
"""
STEPS = """
from producer.local.progress import step_display
from producer.local.stack import Progress
with step_display() as show:
    show(Progress("fetching", 1, 3))
    time.sleep(0.3)
    print("beside \\x1b[31mred", file=sys.stderr)
    time.sleep(0.3)
"""


@pytest.mark.parametrize("display", [BAR, STEPS], ids=["bar", "steps"])
def test_a_live_display_is_drawn_and_the_rest_escaped(display: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    screen = run([sys.executable, "-c", BEGIN + display], env, 80, for_s=60)
    lines = screen.text().splitlines()
    # The display is gone at its end, and none of its own sequences was shown as text
    assert lines[0] == "beside \\x1b[31mred"
    assert [line for line in lines[1:] if line.strip()] == (
        ["noted \\x1b[31mred"] if display is BAR else []
    )
    assert "\x1b[31m" not in screen.ansi()


def test_rejects_break_between_words_on_a_terminal() -> None:
    line = "orders.csv:79  byte 2929  cast  column total: cast decimal: " + "word " * 8
    code = f"from producer.report.reject_list import _fitted\nprint(*_fitted({line!r}), sep='\\n')"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = run([sys.executable, "-c", code], env, 80, for_s=60).text().splitlines()
    assert len(shown) == 2 and max(map(len, shown)) <= 80
    assert " ".join(shown).split() == line.split()
    piped = subprocess.run([sys.executable, "-c", code], env=env, stdout=-1, text=True, check=True)
    assert piped.stdout == line + "\n"
