"""A load for fault injection, and the invariants that hold after every fault.

Invariants (`check_exact`): the table equals the source, value by value and write timestamp by
write timestamp; the report counts each record once; the ledger agrees with the report and is
clean, with nothing issued, leased, due or blamed.
"""

from __future__ import annotations

import csv
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from cassandra.cluster import Session

from producer.local.valkey import EmbeddedValkey
from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.records.rejects import unpack_rejects
from ringhaul.records.unit import LoadUnit, UnitResult
from tests.acceptance.command import Process, Ringhaul, wait_until

#: Short, so that lost units are noticed soon: a fault costs at most lease + sweep. Units stay half
#: way for a while, so that a fault finds some in progress and others that wait.
TIMING = {
    "RINGHAUL_WORKER_LEASE_S": "3",
    "RINGHAUL_WORKER_SWEEP_S": "0.5",
    "RINGHAUL_WORKER_UNCLAIMED_S": "2",
    "RINGHAUL_WORKER_SESSION_JITTER_S": "0",
    "_RINGHAUL_UNIT_S": "0.16",
}
#: From a fault's end to the next commit (RELIABILITY's I5, with room for a busy machine).
RECOVERY_S = 3 + 0.5 + 25

Row = tuple[str, int, str | None]


@dataclass(frozen=True)
class Source:
    """A file, and the rows that the table must hold after its load."""

    path: Path
    good: dict[int, Row]  #: ordinal (also the key) -> the other columns
    bad: dict[int, str]  #: ordinal -> the record's text

    @property
    def records(self) -> int:
        return len(self.good) + len(self.bad)


def write_source(
    path: Path, records: int, first: int = 0, *, bad_every: int | None = 401
) -> Source:
    """Write a CSV file with quoted newlines, nulls, and a bad number in every 401st record."""
    good: dict[int, Row] = {}
    bad: dict[int, str] = {}
    with path.open("w", newline="") as file:
        file.write("id,name,amount,note\n")
        for ordinal in range(first, first + records):
            name = f'"line 1 of {ordinal}\nline ""2"""' if ordinal % 50 == 3 else f"näme {ordinal}"
            note = "" if ordinal % 5 == 0 else f"note {ordinal * 7919 % 1000}"
            is_bad = bad_every is not None and ordinal % bad_every == 7
            amount = "many" if is_bad else str(ordinal * 1_000_003)
            text = f"{ordinal},{name},{amount},{note}\n"
            file.write(text)
            if amount == "many":
                bad[ordinal] = text
    # An independent parser reads the file back.
    with path.open(newline="") as file:
        for record in csv.DictReader(file):
            if record["amount"] != "many":
                row = (record["name"], int(record["amount"]), record["note"] or None)
                good[int(record["id"])] = row
    return Source(path, good, bad)


@dataclass
class Load:
    """A `ringhaul load` (or `resume`) in the background."""

    process: Process
    summary_file: Path

    def finish(self, code: int, timeout_s: float = 120.0) -> dict[str, Any]:
        """Wait for its end, and return its summary."""
        _, err = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == code, err
        summary: dict[str, Any] = json.loads(self.summary_file.read_text())
        return summary


def create_table(session: Session, keyspace: str) -> str:
    """Create the table of a rig, and return its full name."""
    table = f"{keyspace}.t"
    session.execute(
        f"CREATE TABLE {table} (id int PRIMARY KEY, name text, amount bigint, note text)"
    )
    return table


class Rig:
    """One table, one broker, one command."""

    def __init__(self, command: Ringhaul, session: Session, keyspace: str, folder: Path) -> None:
        self.command, self.session, self.folder = command, session, folder
        self.table = create_table(session, keyspace)

    def rows_count(self) -> int:
        """Return the number of rows in the table."""
        return int(self.session.execute(f"SELECT count(*) FROM {self.table}").one()[0])

    @contextmanager
    def load(self, *sources: Source | Path, **env: str) -> Iterator[Load]:
        """Start a load in units of about 200 records, slow enough for a fault."""
        paths = [item.path if isinstance(item, Source) else item for item in sources]
        options = ["-t", self.table, "--unit-size", "6 KiB"]
        with self.started("load", *paths, *options, **env) as load:
            yield load

    @contextmanager
    def started(self, *args: object, **env: str) -> Iterator[Load]:
        """Start a command that prints a summary; killed at the block's end if it still runs."""
        summary = self.folder / f"summary-{len(list(self.folder.glob('summary-*')))}.json"
        summary.touch()
        with self.command.started(
            *args, "-q", "--progress", "none", "--summary", summary, **env
        ) as process:
            yield Load(process, summary)


class LedgerView:
    """A test's view of the ledger of the only job in a broker."""

    def __init__(self, url: str) -> None:
        self.client = connect(url)
        self.ledger = Ledger(self.client)

    def close(self) -> None:
        self.client.close()

    @property
    def job(self) -> str:
        """The id of the only job."""
        (status,) = self.ledger.jobs()
        return status.job

    def status(self) -> JobStatus:
        return self.ledger.status(self.job)

    def alive(self) -> list[Worker]:
        """Return the workers with a heartbeat."""
        return Workers(self.ledger.caller).alive()

    def wait_done(self, units: int, timeout_s: float = 60.0) -> None:
        """Wait until this many units are committed, or the job has ended."""
        wait_until(lambda: self.ledger.jobs() != [], "the job", timeout_s)
        wait_until(lambda: self.status().done >= units, f"{units} units done", timeout_s)
        status = self.status()
        assert not status.finished, f"over before it was struck: {status.last_error or status}"

    def wait_recovered(self, timeout_s: float = RECOVERY_S) -> None:
        """Wait until a further unit is committed, if there is one.

        The fault is over by now: a job that ends while this process waits for a CPU is as good.
        """
        done = self.status().done

        def recovered() -> bool:
            status = self.status()
            return status.finished or status.done > done

        wait_until(recovered, f"a unit after the first {done}", timeout_s)

    def child_at_work(self, units_before: int = 3) -> tuple[int, int]:
        """Return (unit, process id) of a pool process in the middle of a unit."""
        self.wait_done(units_before)
        found: list[tuple[int, int]] = []

        def working() -> bool:
            found.extend(self.children_by_unit().items())
            return bool(found)

        wait_until(working, "a unit that is being worked on")
        return found[0]

    def children_by_unit(self) -> dict[int, int]:
        """Return unit -> process id of the pool process that runs it."""
        owners = self.client.hgetall(keys.job_key(self.job, "owner"))
        return {int(unit): int(token.rsplit(b":", 1)[1]) for unit, token in owners.items()}

    def leftovers(self) -> dict[str, Any]:
        """Return the remains that a job with all units done must not have."""
        job = self.job
        types = {part: self.client.type(keys.job_key(job, part)) for part in keys.UNDONE}
        return {part: kind for part, kind in types.items() if kind != b"none"}


@contextmanager
def viewing_ledger(valkey: EmbeddedValkey) -> Iterator[LedgerView]:
    """View the ledger in the Valkey that an embedded command is starting.

    The test registers as a user of the server, so that it stays until the end of the block.
    """
    wait_until(lambda: valkey.port and valkey.answers(), "the command's Valkey")
    with valkey:
        ledger_view = LedgerView(valkey.url)
        yield ledger_view
        ledger_view.close()


def check_exact(
    rig: Rig, ledger_view: LedgerView, summary: dict[str, Any], *sources: Source
) -> None:
    """Assert every invariant of a job with all records done."""
    good = {ordinal: row for source in sources for ordinal, row in source.good.items()}
    bad = {ordinal: text for source in sources for ordinal, text in source.bad.items()}
    check_table(rig, summary, good)
    counts = {name: summary[name] for name in ("records", "rows", "rejected", "state")}
    assert counts == {
        "records": len(good) + len(bad),
        "rows": len(good),
        "rejected": len(bad),
        "state": "PARTIAL" if bad else "COMPLETE",
    }
    status = ledger_view.status()
    assert status.pending == 0 and status.quarantined == 0
    assert summary["units"] == summary["units_done"] == status.units
    done = ledger_view.client.bitcount(keys.job_key(status.job, "done"))
    assert done == status.units
    assert ledger_view.leftovers() == {}
    results = dict(ledger_view.ledger.results(status.job))
    assert sorted(results) == list(range(status.units))
    packed = [UnitResult.unpack(result) for result in results.values()]
    assert sum(result.written for result in packed) == status.totals["rows"] == len(good)
    assert sum(result.rejected for result in packed) == status.totals["rejected"] == len(bad)
    rejects = [
        reject.data
        for _, blob in ledger_view.ledger.extras(status.job)
        for reject in unpack_rejects(blob)
    ]
    assert rejects == [bad[ordinal].rstrip("\n").encode() for ordinal in sorted(bad)]


def check_table(rig: Rig, summary: dict[str, Any], good: dict[int, Row]) -> None:
    """Assert that the table holds exactly these rows, each with the write time of its ordinal."""
    found: dict[int, Row] = {}
    times: dict[int, set[int]] = {}
    for row in rig.session.execute(
        f"SELECT id, name, amount, note, writetime(name), writetime(amount), writetime(note) "
        f"FROM {rig.table}"
    ):
        found[row[0]] = (row[1], row[2], row[3])
        times[row[0]] = {row[4], row[5]} | ({row[6]} if row[3] is not None else set())
    missing, extra = good.keys() - found.keys(), found.keys() - good.keys()
    assert not missing and not extra, (sorted(missing)[:20], sorted(extra)[:20])
    wrong = {key: (found[key], good[key]) for key in good if found[key] != good[key]}
    assert not wrong, dict(list(wrong.items())[:5])
    base_us = summary["first_timestamp_us"]
    late = {key: at for key, at in times.items() if at != {base_us + key}}
    assert not late, (base_us, dict(list(late.items())[:5]))


def unit_records(ledger_view: LedgerView, unit: int) -> range:
    """Return the ordinals of a unit's records."""
    packed = ledger_view.ledger.unit_spec(ledger_view.job, unit)
    assert packed is not None
    spec = LoadUnit.unpack(packed)
    return range(spec.first_ordinal, spec.first_ordinal + spec.records_count)


def kill(pid: int) -> None:
    """Send SIGKILL to one process."""
    os.kill(pid, signal.SIGKILL)


def children_of(pid: int) -> list[psutil.Process]:
    """Return the pool processes of a worker's parent process."""
    return psutil.Process(pid).children()


def gone(processes: list[psutil.Process]) -> Callable[[], bool]:
    """Return a function that is true once all of these processes have ended."""
    return lambda: not any(map(_runs, processes))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended in between
        return False
