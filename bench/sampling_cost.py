"""Claim: samples of a job's history cost a running load less than 1 %.

Loads by workers whose keepers take samples, and by workers whose keepers take none, in turn. One is
taken every 10 s, so its cost is far below the noise of a load: it is also timed by itself, in a
ledger with a job of many units.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

from bench.contest import PROCESSES, arguments
from bench.data import SMALL
from bench.harness import Run, claim
from bench.site import Site, make_site
from bench.stage import PROGRAM, Stage, stage
from bench.systems import ours
from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.fleet import look_at_fleet
from ringhaul.ledger.history import Crew, History
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger

ROWS = 1_000_000
#: `ringhaul` whose keepers take no samples.
_WITHOUT = """
import sys
from tasks.parent.sampling import Sampling
Sampling.look = lambda *_: None
from producer.__main__ import main
sys.exit(main())
"""
_PROGRAMS = {"with samples": PROGRAM, "without samples": ("-c", _WITHOUT)}
#: Units in progress of the job whose samples are timed, as of 50 hosts with 8 cores.
_UNITS = 400
_TIMES = 200


def run(rows: int, rounds: int) -> None:
    """Run the bench and print both figures."""
    with stage() as running:
        site = make_site(running, SMALL, rows, 0)
        print(f"load of {rows:,} rows: warming up the node ...", flush=True)
        for program in _PROGRAMS.values():
            _load(running, site, program)
        found: dict[str, list[Run]] = {name: [] for name in _PROGRAMS}
        for number in range(rounds):
            names = list(_PROGRAMS) if number % 2 else list(_PROGRAMS)[::-1]
            for name in names:
                one = _load(running, site, _PROGRAMS[name])
                found[name].append(one)
                print(f"  {name:<16} {_rate(one):>9,.0f} rows/s {_cpu_us(one):.2f} us", flush=True)
        took_s = time_sample(running.env["RINGHAUL_BROKER_URL"])
    print(f"\nmedians of {rounds} rounds, with samples against without")
    for what, measure in (("rows/s", _rate), ("CPU a row of command and workers, us", _cpu_us)):
        values = {name: [measure(one) for one in each] for name, each in found.items()}
        with_them, without = (statistics.median(values[name]) for name in _PROGRAMS)
        spread = max((max(each) - min(each)) / statistics.median(each) for each in values.values())
        print(
            f"  {what}: {with_them:,.2f} and {without:,.2f}, {with_them / without - 1:+.2%}; "
            f"rounds of one kind differ by {spread:.1%}"
        )
    print(f"a sample takes {took_s * 1e6:,.0f} us, every {keys.SAMPLE_EVERY_MS // 1000} s")
    share = took_s / (keys.SAMPLE_EVERY_MS / 1000)
    print(claim("samples' share of the time of a keeper and Redis, %", share * 100, at_most=1.0))


def _rate(one: Run) -> float:
    return one.rows / one.work_s


def _cpu_us(one: Run) -> float:
    """CPU of a row: beside other work on the machine, it varies less than the time."""
    return one.cpu_s / one.rows * 1e6


def _load(stage: Stage, site: Site, program: tuple[str, ...]) -> Run:
    """Load the file by a new worker."""
    stage.truncate(site.table)
    with stage.worker(PROCESSES, program) as pid:
        return ours(replace(site, worker_pid=pid)).run()


def time_sample(broker_url: str) -> float:
    """Return the seconds that a keeper needs for one sample, the look at the fleet included."""
    client = connect(broker_url)
    ledger = Ledger(client)
    job, history = "ld-sampled", History(ledger.caller)
    ledger.create(job, {"kind": "load"}, "{}")
    ledger.add_units(job, 1, 0, ["0,0,8388608"] * _UNITS * 2)
    for unit in ledger.issue(job, _UNITS).units:
        token = f"{unit}@celery@host{unit % 50}:1"
        ledger.claim(job, unit, 1, token, 600_000)
        ledger.renew(job, unit, token, 600_000, Live(rows=unit, bytes=unit, in_flight=256))
    took = []
    for _ in range(_TIMES):
        client.hset(keys.job_key(job, "sampling"), "at_ms", 0)  # it is due
        began = time.perf_counter()
        fleet = look_at_fleet(ledger.caller)
        history.sample(job, Crew(seen_ms=fleet.now_ms, workers=50, hosts=frozenset({"host1"})))
        took.append(time.perf_counter() - began)
    ledger.cancel(job)
    client.close()
    return statistics.median(took)


def main() -> None:
    options = arguments("sampling_cost", __doc__, rows=ROWS, rounds=5)
    run(options.rows, options.rounds)


if __name__ == "__main__":
    main()
