"""What jobs in Redis say of themselves is shown as text, on one line: rich writes past the streams
that escape everything else."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis

from ringhaul.ledger.connection import Caller
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from tests.acceptance.command import Ringhaul
from tests.loads import load_job, load_source, table_schema
from tests.services import running_valkey

#: Sets the title of a terminal, and would start new lines.
HOSTILE = "x\x1b]0;PWNED\x07\x9b2J\nerror: forged\r\u2028warning: forged"
SHOWN = r"x\x1b]0;PWNED\x07\x9b2J\nerror: forged\r\u2028warning: forged"
JOB = "hostile"


@pytest.fixture(scope="module")
def broker_url() -> Iterator[str]:
    """A Redis with one running job, whose labels, table, error and worker have hostile names."""
    with running_valkey() as valkey, redis.Redis.from_url(valkey.url) as client:
        ledger = Ledger(client)
        table = replace(table_schema({"id": "int"}, ["id"]), table=HOSTILE)
        job = load_job(table, load_source(["id"], path=HOSTILE, size_bytes=100))
        labels = {"kind": "load", "table": HOSTILE, "bytes_total": "100", "queue": HOSTILE}
        ledger.create(JOB, labels, json.dumps(job.to_json()), priority=HOSTILE)
        ledger.add_units(JOB, 1, 0, ["{}", "{}"])
        ledger.seal(JOB, 1, 2)
        ledger.issue(JOB, 2)
        ledger.claim(JOB, 0, 1, f"celery@{HOSTILE}:1/t", 600_000)
        ledger.renew(JOB, 0, f"celery@{HOSTILE}:1/t", 600_000, trouble=HOSTILE)
        ledger.claim(JOB, 1, 1, "u", 600_000)
        ledger.release(JOB, 1, "u", HOSTILE, blamed=True)
        Workers(Caller(client)).heartbeat(Worker(HOSTILE, 1, 1), 600_000)
        yield valkey.url


@pytest.fixture
def ringhaul(broker_url: str, tmp_path: Path) -> Ringhaul:
    env = {"RINGHAUL_BROKER_URL": broker_url, "RINGHAUL_STATE_DIR": str(tmp_path / "state")}
    return Ringhaul(env, tmp_path)


@pytest.mark.parametrize(
    ("command", "times"),
    [("status", 1), (f"status {JOB}", 1), (f"status {JOB} --events", 0), ("top --once", 2)],
)
def test_lists_show_labels_on_one_line(ringhaul: Ringhaul, command: str, times: int) -> None:
    done = ringhaul.run(*command.split(), COLUMNS="1000")
    assert_plain(done.out + done.err)
    assert (done.out + done.err).count(SHOWN) >= times, done


@pytest.mark.parametrize(
    ("command", "times"), [(f"status {JOB} -f", 1), ("top --once", 2), ("status", 1)]
)
def test_a_terminal_obeys_no_label(ringhaul: Ringhaul, command: str, times: int) -> None:
    label = SHOWN.partition(r"\n")[0]
    shown = on_a_terminal(ringhaul, *command.split(), until=label.encode(), times=times)
    # Apart from what rich itself writes: colours, and moves of the cursor
    assert_plain(re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]|\r", "", shown))
    assert shown.count(label) >= times, shown


def assert_plain(text: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", text), repr(text)
    assert not re.search(r"^\s*(error|warning): forged", text, re.MULTILINE), text


def on_a_terminal(ringhaul: Ringhaul, *words: str, until: bytes, times: int) -> str:
    """Return what a command writes to a wide terminal, until it ends, or until it has written a
    text so many times and two more seconds are over."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        ringhaul.argv(*words),
        env=ringhaul.env | {"TERM": "xterm", "COLUMNS": "1000", "LINES": "60"},
        cwd=ringhaul.cwd,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.set_blocking(master, False)
    try:
        shown, until_s, found = b"", time.monotonic() + 40, False
        while time.monotonic() < until_s:
            try:
                some = os.read(master, 65536)
            except BlockingIOError:
                time.sleep(0.05)
                continue
            except OSError:  # the command has ended
                break
            shown += some
            if not found and shown.count(until) >= times:
                found, until_s = True, time.monotonic() + 2
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)
    return shown.decode()
