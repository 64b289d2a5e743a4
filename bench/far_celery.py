"""`celery -P gevent`: a worker with 100 green threads, and a task for each row."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import redis

from bench.far_seeds import POOL, Person
from bench.harness import DRIVER, Run, System
from bench.processes import tree_usage
from bench.site import Site

#: Database of the broker; workers of ringhaul have the lower ones. The same for all, because a
#: Celery application keeps its first connection.
DATABASE = 15
_STARTED_WITHIN_S = 300.0


def celery_gevent(site: Site, name: str, people: Sequence[Person]) -> System:
    """Return the system. Its worker runs during a run only, and starts before the clock does."""
    broker = f"{site.stage.env['RINGHAUL_BROKER_URL'].rpartition('/')[0]}/{DATABASE}"
    first, *others = people

    def run() -> Run:
        from bench.green_tasks import app, insert

        ends = site.stage.endpoints
        env = site.stage.env_embedded | {
            "BENCH_BROKER": broker,
            "BENCH_HOST": ends.contact_points[0],
            "BENCH_PORT": str(ends.port),
            "BENCH_TABLE": site.name,
        }
        app.conf.broker_url = broker
        with redis.Redis.from_url(broker) as client, _worker(env) as pid:
            client.flushdb()
            insert.delay(str(first.user_id), *first[1:])  # opens the session
            _wait_for(site, 1, _STARTED_WITHIN_S)
            before = tree_usage(pid).cpu_s + time.process_time()
            began_s = time.perf_counter()
            for person in others:
                insert.delay(str(person.user_id), *person[1:])
            _wait_for(site, len(people), 600)
            work_s = time.perf_counter() - began_s
            usage = tree_usage(pid)
            cpu_s = usage.cpu_s + time.process_time() - before
            client.flushdb()
        return Run(
            rows=len(others),
            bytes_count=site.bytes_of(len(others)),
            work_s=work_s,
            whole_s=work_s,
            cpu_s=cpu_s,
            rss_bytes_max=usage.rss_bytes_max,
        )

    return site.system(name, DRIVER, run)


@contextmanager
def _worker(env: dict[str, str]) -> Iterator[int]:
    log = Path(env["RINGHAUL_STATE_DIR"]).with_name("celery-gevent.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "-A", "bench.green_tasks", "worker"),
                *("-P", "gevent", "-c", str(POOL), "--without-gossip", "--without-mingle"),
                *("--loglevel", "warning"),
            ],
            env=env,
            cwd=Path(__file__).parents[1],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process.pid
    finally:
        process.kill()  # it has nothing left to do, and a warm shutdown takes many seconds
        process.wait()


def _wait_for(site: Site, rows: int, within_s: float) -> None:
    """Wait until the table has so many rows. Few are in it, so that counting costs little."""
    until = time.monotonic() + within_s
    query = f"SELECT count(*) FROM {site.name}"
    while site.stage.session.execute(query, timeout=60).one()[0] < rows:
        if time.monotonic() > until:
            raise RuntimeError(f"fewer than {rows} rows after {within_s:.0f} s")
        time.sleep(0.05)
