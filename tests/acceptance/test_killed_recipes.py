"""The tasks of three recipes are killed at random moments, without a broker; a retry finishes.

1. A try of the recipe's load begins (`tests/acceptance/scheduler.py`).
2. At a random moment after its first progress the task's process is killed.
3. The scheduler tries again at once, while the command of the killed try may still be ending.
4. At a random moment since its start another process of that try is killed: the client's leash,
   the command, or all of them, as when a container ends.
5. After that a try is left alone: it succeeds, and every row is in the table.

A try that ends before its kill must have succeeded or ask for a retry, never fail for good.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import wait_until
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import create_table
from tests.acceptance.scheduler import AGAIN, DONE, OUTCOMES

DAY, ROWS = "2026-01-31", 6000
#: Seconds within which a kill comes.
WITHIN_S = 2.0
#: In the log: part of the rows is done.
PROGRESS = re.compile(r"[1-9]\d?%")
TARGETS = ("leash", "command", "all")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_retry_finishes_after_kills(
    name: str, endpoints: Endpoints, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    chosen = random.Random(f"{name} 7")
    columns = "id int PRIMARY KEY, region text, total double"
    table = create_table(cassandra_session, keyspace, columns)
    rows = [(n, "north" if n % 3 else "south", n / 4) for n in range(ROWS)]
    lines = "".join(f"{n},{region},{total}\n" for n, region, total in rows)
    (tmp_path / f"{DAY}.csv").write_text(f"id,region,total\n{lines}")
    env = cluster_env(endpoints, tmp_path / "state") | {
        "ETL_FOLDER": str(tmp_path),
        "ETL_TABLE": table,
        # Slow enough to be hit half way: single rows, one after the other, in many units.
        "RINGHAUL_WORKER_CONCURRENCY": "1",
        "RINGHAUL_LOAD_BATCH_ROWS_MAX": "1",
        "RINGHAUL_LOAD_IN_FLIGHT_REQUESTS_MAX": "1",
        "RINGHAUL_LOAD_UNIT_BYTES": "10K",
    }
    log = tmp_path / "log"
    tried(name, env, log, lambda text: bool(PROGRESS.search(text)), chosen.random(), "task")
    tried(name, env, log, lambda _: True, chosen.random(), chosen.choice(TARGETS))
    for _ in range(4):  # while processes of the killed tries still end
        code = tried(name, env, log)
        if code == DONE:
            break
    assert code == DONE, log.read_text()[-4000:]
    found = cassandra_session.execute(f"SELECT id, region, total FROM {table}")
    assert sorted(map(tuple, found)) == rows


def tried(
    name: str,
    env: dict[str, str],
    log: Path,
    begun: Callable[[str], bool] = lambda _: False,
    moment: float = 0.0,
    target: str = "",
) -> int:
    """Run one try. If there is a target, kill it at a moment (0 to 1) after `begun` holds of what
    the try has printed. Return its exit code, which is `AGAIN` for a killed one."""
    argv = [sys.executable, "-m", "tests.acceptance.scheduler", name, DAY]
    with (
        log.open("ab") as out,
        subprocess.Popen(argv, env=os.environ | env, stdout=out, stderr=out) as run,
    ):
        try:
            if target:
                start = log.stat().st_size
                wait_until(
                    lambda: begun(log.read_text()[start:]) or run.poll() is not None, "progress"
                )
                kill_in(run, moment * WITHIN_S, target)
            code = run.wait(240)
        finally:
            run.kill()
    assert code in (DONE, AGAIN, -signal.SIGKILL), log.read_text()[-4000:]
    return AGAIN if code < 0 else code


def kill_in(run: subprocess.Popen[bytes], seconds: float, target: str) -> None:
    """Kill one of a try's processes after a while, or all of them."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and run.poll() is None:
        time.sleep(0.02)
    try:
        task = psutil.Process(run.pid)
        leash = task.children()[:1]
        command = leash[0].children()[:1] if leash else []
        hit = {
            "task": [task],
            "leash": leash or [task],
            "command": command or [task],
            "all": [task, *task.children(recursive=True)],
        }
        for process in hit[target]:
            process.kill()
    except psutil.NoSuchProcess:
        return  # it has just ended
