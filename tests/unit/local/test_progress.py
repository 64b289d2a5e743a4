"""Steps on stderr: a bar on a terminal, plain lines elsewhere."""

import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from producer.local.progress import step_display
from producer.local.stack import Progress

#: What `up` reports when the jars have to be fetched.
SHOW = """
from producer.local.progress import step_display
from producer.local.stack import Progress
with step_display() as show:
    show(Progress("starting Valkey"))
    for done in range(1, 101):
        show(Progress("fetching", done, 100))
"""


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with step_display() as show:
        show(Progress("starting Valkey"))
        for done in range(1, 101):
            show(Progress("fetching", done, 100))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "starting Valkey\nfetching\nfetching: 100 files\n"


def test_a_bar_on_a_terminal() -> None:
    terminal, child_end = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, "-c", SHOW], stderr=child_end, env=environ, check=True)
    os.close(child_end)
    shown = ""
    with suppress(OSError):  # EIO: all was read
        while part := os.read(terminal, 4096):
            shown += part.decode(errors="replace")
    os.close(terminal)
    assert "100/100 files" in shown
    assert "0/?" not in shown
