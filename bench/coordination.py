"""Claim: coordinating a unit costs producer and Redis at most 2 ms of CPU at 100,000 units.

The real command plans, splits and follows a load of tiny units; simulated workers take them through
the real queue and the real ledger, and write nothing (`bench/simulated_workers.py`). Measured are
the CPU of the command and of Redis, by number of units and by number of workers. Then single
operations, such as what workers cost Redis by the second: heartbeats, polls, renewals.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import redis

from bench.command import run_command
from bench.data import SMALL, data_file
from bench.harness import claim, machine, save_table
from bench.stage import KEYSPACE, Stage, stage
from bench.tools import summary_of
from config.celery_config import QUEUE_LOAD
from config.sections import cache_dir_default
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.fleet import look_at_slots
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.job_status import Live
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers

#: (units, workers) of each job.
SIZES = (
    *((10, 10), (1_000, 10), (10_000, 10), (100_000, 10)),
    *((10_000, 100), (10_000, 1_000), (10_000, 5_000)),
)
#: Workers while single operations are measured.
FLEETS = (10, 5_000)
BOUND_MS = 2.0
COLUMNS = ("what", "workers", "the command, ms of CPU", "Redis, ms of CPU")
LOOK = "look at the fleet, added up"
#: One record of the file is one unit.
UNIT_BYTES = 16
DATABASE = 7
#: Processes that simulate the workers: each waits most of the time for Redis.
SIMULATORS = 6
#: Operations that each unit needs once.
OF_A_UNIT = ("claim", "commit", LOOK, "issue")
#: Calls of each operation that is measured separately.
CALLS = 1_000

#: Longer than the bench runs: no lease expires while operations are measured.
LEASE_MS = 3_600_000
#: The default of worker.sweep_s.
ROUND_S = 5.0


class Cost(NamedTuple):
    """What the coordination of a job's units cost."""

    units: int
    workers: int
    work_s: float
    whole_s: float
    producer_s: float  #: CPU
    redis_s: float  #: CPU

    @property
    def ms(self) -> float:
        """CPU of producer and Redis, in milliseconds a unit."""
        return (self.producer_s + self.redis_s) / self.units * 1000


class Operation(NamedTuple):
    """One operation on Redis, measured by itself."""

    name: str
    commands: float  #: that Redis runs for it
    redis_us: float  #: Redis's CPU


def run(sizes: Sequence[tuple[int, int]]) -> None:
    """Run the bench and print its tables."""
    with stage() as shared:
        running = apart(shared)
        costs = measure(running, sizes)
        operations = {workers: measure_operations(running, workers, CALLS) for workers in FLEETS}
        messages = message_bytes(running)
    title = "coordination: producer and Redis, CPU by unit"
    print(f"\n{title}\n{machine()}\n\n{table(costs)}\n")
    for workers, found in operations.items():
        print(f"\nRedis, by operation, with {workers:,} workers\n\n{operations_table(found)}\n")
    print(f"one unit in the queue: {messages:,} bytes")
    print("\nclaims")
    for line in claims(costs, operations):
        print(line)
    save_table(
        "coordination", f"{title}, and of Redis by operation", COLUMNS, rows(costs, operations)
    )


def apart(shared: Stage) -> Stage:
    """Return the stage with another database of the broker, which the bench empties."""
    server = shared.env["RINGHAUL_BROKER_URL"].rpartition("/")[0]
    return replace(shared, env=shared.env | {"RINGHAUL_BROKER_URL": f"{server}/{DATABASE}"})


def rows(
    costs: Sequence[Cost], operations: Mapping[int, Sequence[Operation]]
) -> list[tuple[str, str, float | str, float]]:
    """Return the table to save: jobs, then single operations."""
    jobs: list[tuple[str, str, float | str, float]] = [
        (
            f"{cost.units:,} units",
            f"{cost.workers:,}",
            round(cost.producer_s / cost.units * 1000, 3),
            round(cost.redis_s / cost.units * 1000, 3),
        )
        for cost in costs
    ]
    return jobs + [
        (one.name, f"{workers:,}", "", round(one.redis_us / 1000, 3))
        for workers, found in operations.items()
        for one in found
    ]


def claims(costs: Sequence[Cost], operations: Mapping[int, Sequence[Operation]]) -> list[str]:
    """Return the lines that compare costs with their bounds. `operations`: by workers."""
    most = max(costs, key=lambda cost: cost.units)
    (few, in_few), (many, in_many) = sorted(operations.items())
    ratio = unit_us(in_many) / unit_us(in_few)
    text = f"Redis: CPU of a unit's scripts with {many:,} workers, of that with {few}"
    return [
        claim(f"ms of CPU a unit at {most.units:,} units", most.ms, at_most=BOUND_MS),
        claim(text, ratio, at_most=1.5),
    ]


def unit_us(operations: Sequence[Operation]) -> float:
    """Return Redis's CPU for the scripts that run once for each unit."""
    return sum(one.redis_us for one in operations if one.name in OF_A_UNIT)


def table(costs: Sequence[Cost]) -> str:
    """Format the costs."""
    lines = [f"{'units':>9} {'workers':>8} {'units/s':>8} {'producer ms':>12} {'Redis ms':>9} sum"]
    for cost in costs:
        lines.append(
            f"{cost.units:>9,} {cost.workers:>8,} {cost.units / cost.work_s:>8,.0f} "
            f"{cost.producer_s / cost.units * 1000:>12.3f} "
            f"{cost.redis_s / cost.units * 1000:>9.3f} {cost.ms:.3f}"
        )
    return "\n".join(lines)


def operations_table(operations: Sequence[Operation]) -> str:
    """Format the operations."""
    lines = [f"{'operation':<42} {'commands':>8} {'Redis us':>9}"]
    lines += [f"{one.name:<42} {one.commands:>8.1f} {one.redis_us:>9.1f}" for one in operations]
    return "\n".join(lines)


def measure(running: Stage, sizes: Sequence[tuple[int, int]]) -> list[Cost]:
    """Load files of so many units with so many simulated workers, one after the other."""
    running.create(SMALL)
    costs = []
    for units, workers in sizes:
        with simulated_workers(running, workers):
            costs.append(measure_job(running, units, workers))
            print(f"  {table(costs[-1:]).splitlines()[1]}", flush=True)
    return costs


def measure_job(running: Stage, units: int, workers: int) -> Cost:
    """Run the command against running simulated workers."""
    path = data_file(cache_dir_default() / "bench", SMALL, rows=units)
    command = [
        *(sys.executable, "-P", "-m", "ringhaul", "load", str(path)),
        *("-t", f"{KEYSPACE}.{SMALL.name}", "--unit-size", str(UNIT_BYTES)),
        *("--json", "--progress", "none"),
    ]
    before_s = redis_cpu_s(running)
    done = run_command(command, running.env)
    redis_s = redis_cpu_s(running) - before_s
    summary = summary_of(done.out)
    if summary["state"] != "COMPLETE" or summary["units_done"] != units:
        raise RuntimeError(f"{units} units were to be done: {summary}")
    work_s = summary["elapsed_s"] or done.whole_s
    return Cost(units, workers, work_s, done.whole_s, done.cpu_s, redis_s)


@contextmanager
def simulated_workers(running: Stage, count: int) -> Iterator[None]:
    """Run the simulated workers during the block, on an empty broker."""
    broker(running).flushdb()
    processes = min(SIMULATORS, count)
    cuts = [count * number // processes for number in range(processes + 1)]
    with ExitStack() as stack:
        for first, last in itertools.pairwise(cuts):
            stack.enter_context(_simulator(running, first, last))
        yield


@contextmanager
def _simulator(running: Stage, first: int, last: int) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "bench.simulated_workers", str(first), str(last)],
        env=program_env(running),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the simulated workers did not start")
        try:
            yield
        finally:
            process.stdin.close()  # which ends it
            process.wait(60)


def program_env(running: Stage) -> dict[str, str]:
    """Return the environment of a program that imports what this one does."""
    return running.env | {"PYTHONPATH": os.pathsep.join(sys.path)}


def measure_operations(running: Stage, workers: int, calls: int) -> list[Operation]:
    """Measure single operations on Redis, in a fleet of so many workers with one job."""
    client = broker(running)
    client.flushdb()
    ledger = Ledger(client)
    alive = Workers(ledger.caller)
    fleet = [Worker(f"host{n}", n, 1, (QUEUE_LOAD,)) for n in range(workers)]
    for one in fleet:
        alive.heartbeat(one, LEASE_MS)
    ledger.create("ld-ops", {"kind": "load"}, "{}")
    ledger.add_units("ld-ops", 1, 0, ["0,0,67108864,0,1,900000"] * (calls + 1))
    # One more unit stays claimed while rounds are measured, so that the job runs and a sweep has
    # nothing to publish.
    ledger.issue("ld-ops", 1)
    _claim(ledger, 0)
    windows = iter(range(2, calls + 2))
    claimed = iter(range(1, calls + 1))
    committed = iter(range(1, calls + 1))
    renewed = iter(range(1, calls + 1))
    beating = iter(fleet * (calls // workers + 1))
    live = Live(rows=1, rejected=0, bytes=1, in_flight=256)
    # The first calls of a script load it, and are not counted.
    operations: list[tuple[str, Callable[[], Any]]] = [
        ("issue", lambda: ledger.issue("ld-ops", next(windows))),
        ("claim", lambda: _claim(ledger, next(claimed))),
        ("renewal", lambda: ledger.renew("ld-ops", (u := next(renewed)), f"t{u}", LEASE_MS, live)),
        ("commit", lambda: _commit(ledger, next(committed))),
        (LOOK, lambda: look_at_slots(ledger.caller)),
        ("poll for a command's request", lambda: HostRequests(ledger.caller).wanted(())),
        ("heartbeat", lambda: alive.heartbeat(next(beating), LEASE_MS)),
    ]
    found = []
    for title, call in operations:
        found.append(_measured(client, title, call, calls))
    from tasks.parent.heartbeat import Heartbeat
    from tasks.parent.rounds import Rounds

    for title, me in (("round of a keeper", fleet[0]), ("round of another worker", fleet[-1])):
        rounds = Rounds(
            ledger,
            me,
            every_s=ROUND_S,
            prefix="",
            heartbeat=Heartbeat(None),
            notes_queues=False,
        )
        rounds.keep()
        found.append(_measured(client, title, rounds.keep, max(calls // 10, 1)))
    client.flushdb()
    return found


def _claim(ledger: Ledger, unit: int) -> None:
    if not isinstance(ledger.claim("ld-ops", unit, 1, f"t{unit}", LEASE_MS), Claimed):
        raise RuntimeError(f"unit {unit} cannot be claimed")


def _commit(ledger: Ledger, unit: int) -> None:
    from bench.simulated_workers import LATENCIES, TOTALS, result

    packed = result("host1:4000").pack()
    ledger.commit("ld-ops", unit, 1, f"t{unit}", packed, TOTALS, LATENCIES)


def _measured(client: redis.Redis, title: str, call: Callable[[], Any], calls: int) -> Operation:
    before = _usage(client)
    for _ in range(calls):
        call()
    after = _usage(client)
    commands, cpu_s = after[0] - before[0] - 2, after[1] - before[1]
    return Operation(title, commands / calls, cpu_s / calls * 1e6)


def _usage(client: redis.Redis) -> tuple[int, float]:
    """Return commands so far, without those of scripts, and CPU seconds of the server."""
    info: Any = client.info("everything")
    return int(info["total_commands_processed"]), _cpu_s(info)


def redis_cpu_s(running: Stage) -> float:
    """Return the CPU that the broker has used so far."""
    info: Any = broker(running).info("cpu")
    return _cpu_s(info)


def _cpu_s(info: dict[str, float]) -> float:
    parts = ("used_cpu_user", "used_cpu_sys", "used_cpu_user_children", "used_cpu_sys_children")
    return sum(info[part] for part in parts)


def broker(running: Stage) -> redis.Redis:
    """Return a client of the stage's broker."""
    return redis.Redis.from_url(running.env["RINGHAUL_BROKER_URL"])


def message_bytes(running: Stage) -> int:
    """Return the size of a unit's message in the queue, published by the real application."""
    code = (
        "from tasks.connect import open_ledger;"
        "from tasks.publish import publish_units;"
        "from tasks.settings import process_settings;"
        "from ringhaul.ledger.ledger import Issued;"
        "publish_units(open_ledger(process_settings()), 'ld-7f3a9c', Issued(1, [99999]))"
    )
    client = broker(running)
    client.flushdb()
    subprocess.run([sys.executable, "-P", "-c", code], env=program_env(running), check=True)
    queues = [key for key in client.keys(f"*{QUEUE_LOAD}") if client.type(key) == b"list"]
    [message] = client.lrange(queues[0], 0, -1)
    client.flushdb()
    return len(message)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coordination", description=__doc__)
    parser.add_argument("--units-max", type=int, default=100_000, help="default 100,000")
    parser.add_argument("--workers-max", type=int, default=5_000, help="default 5,000")
    options = parser.parse_args()
    run([(u, w) for u, w in SIZES if u <= options.units_max and w <= options.workers_max])


if __name__ == "__main__":
    main()
