"""Sources that change at random moments: a command that succeeds has read one version of them.

Given a fleet and sources on a disk and in an object store,
when each is replaced, rewritten, cut or extended while a command reads it,
then exit code 0 means that the table and the report are of one version, and any other end says why.
"""

from __future__ import annotations

import csv
import os
import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.stack import Endpoints
from tests.acceptance import changing
from tests.acceptance.changing import Case, Row, Source, Versions, rows_of, stored
from tests.acceptance.command import Finished, Ringhaul, forking
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.oracle import create_table
from tests.acceptance.running import running_worker
from tests.object_store import ObjectStore, running_object_store
from tests.scale import FULL, scaled
from tests.services import running_valkey

#: Repeats a run; it is printed.
SEED = int(os.environ.get("CHANGES_SEED") or (random.randrange(10**9) if FULL else 1))
CASES = scaled(36, 720)
#: Commands at a time.
AT_ONCE = 3
#: Partition with the rows that are looked up and compared.
PRELOADED = 0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture(scope="module")
def ringhaul(
    endpoints: Endpoints, store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ringhaul]:
    """The command in front of a worker that has the store's credentials."""
    folder = tmp_path_factory.mktemp("changing")
    with running_valkey() as valkey:
        env = fleet_settings(endpoints, folder / "state", valkey.url) | store.env
        ringhaul = Ringhaul(env | {"RINGHAUL_WORKER_LEASE_S": "30"}, folder)
        with running_worker(ringhaul, slots=3), forking(ringhaul):
            yield ringhaul


@pytest.fixture(scope="module")
def tables(cassandra_session: Session, module_keyspace: str) -> tuple[str, str]:
    """An empty table with a partition for each case, and one with rows to look up and compare."""
    empty = create_table(
        cassandra_session, module_keyspace, "c int, id int, v text, PRIMARY KEY (c, id)", "empty"
    )
    known = create_table(
        cassandra_session, module_keyspace, "id int PRIMARY KEY, c int, v text", "known"
    )
    insert = cassandra_session.prepare(f"INSERT INTO {known} (c, id, v) VALUES (?, ?, ?)")
    rows = [
        *rows_of(PRELOADED, "a", changing.MORE_ROWS),
        *((c, i, f"other {v}") for c, i, v in rows_of(PRELOADED, "b", changing.MORE_ROWS)),
    ]
    execute_concurrent_with_args(cassandra_session, insert, rows, concurrency=200)
    return empty, known


class Trial:
    """Runs cases, and checks how each of them ended."""

    def __init__(
        self,
        ringhaul: Ringhaul,
        session: Session,
        tables: tuple[str, str],
        store: ObjectStore,
        folder: Path,
    ) -> None:
        self._ringhaul, self._session = ringhaul, session
        self._empty, self._known = tables
        self._store, self._folder = store, folder
        self._durations: dict[tuple[str, bool], list[float]] = defaultdict(list)

    def run(self, case: Case) -> tuple[Case, int]:
        """Run a case; return how its command ended. Raises `AssertionError` that names the case."""
        reads_table = case.command in ("verify", "lookup")
        versions = Versions(PRELOADED if reads_table else case.number, case.kind)
        name = f"{case.number}.{case.kind}"
        place = self._store if case.stored_in == "store" else self._folder
        source = Source(case.kind, place, name)
        source.write(versions.add(rows_of(versions.case, "a")))
        usual = self._durations[case.command, case.slowly] or [2.0 if case.slowly else 1.0]
        moment_s = case.moment * statistics.median(usual)
        change = threading.Timer(moment_s, changing.carry_out, (case, source, versions))
        began = time.monotonic()
        change.start()
        done = self._ringhaul.run(*self._words(case, source))
        change.join()
        if done.code == 0:
            usual.append(time.monotonic() - began)
            self._durations[case.command, case.slowly] = usual[-9:]
        self._check(case, versions, done)
        return case, done.code

    def _words(self, case: Case, source: Source) -> list[str]:
        rate = ("--rate", "2000") if case.slowly else ()
        if case.command in ("load", "verify"):
            limits = ("--unit-size", "16K", "--max-errors", "100%")
            table = self._known if case.command == "verify" else self._empty
            return [case.command, source.path, "-t", table, *limits, *rate, "--json"]
        if case.command == "lookup":
            out = str(self._folder / f"out-{case.number}")
            keys = ("--keys", source.path, "--values-mapping", "id=id")
            return ["lookup", "-t", self._known, *keys, "-o", out, *rate, "--json"]
        statement = f"INSERT INTO {self._empty} (c, id, v) VALUES (?, ?, ?)"
        return ["exec", statement, "--params", source.path, *rate, "--json"]

    def _check(self, case: Case, versions: Versions, done: Finished) -> None:
        told = f"{case}, CHANGES_SEED={SEED}\n{done}"
        assert "Traceback" not in done.err, told
        if case.change in changing.HARMLESS:
            assert done.code == 0, told
        if case.command == "verify" and done.code == 1:
            # Rows of the other version differ: all of them, and no other
            counts = (done.summary["rows"], done.summary["rejected"])
            assert counts in [_compared(rows) for rows in versions.known], told
            return
        if done.code != 0:
            assert done.code in (2, 4), told
            assert done.err.strip() or done.messages("error"), told
            return
        summary, found = done.summary, self._found(case, done)
        assert found in versions.known, told
        assert summary["records"] == len(found), told
        if case.command == "verify":
            assert (summary["rows"], summary["rejected"]) == _compared(found), told

    def _found(self, case: Case, done: Finished) -> list[Row]:
        """Return the rows that the command has read, or says so."""
        if case.command == "verify":  # of the preloaded rows it finds no others
            return rows_of(PRELOADED, "a", done.summary["records"])
        if case.command == "lookup":
            found: list[Row] = []
            for path in sorted((self._folder / f"out-{case.number}").glob("*.csv")):
                with path.open(newline="") as file:
                    found += [
                        (int(row["c"]), int(row["id"]), row["v"].removeprefix("other "))
                        for row in csv.DictReader(file)
                    ]
            return sorted(found)
        query = f"SELECT c, id, v FROM {self._empty} WHERE c = {case.number}"
        return [(c, i, v) for c, i, v in self._session.execute(query)]


def _compared(rows: list[Row]) -> tuple[int, int]:
    """Return how many rows of a version are in the table, and how many differ."""
    same = sum(value.startswith("a") for _, _, value in rows)
    return same, len(rows) - same


def test_versions_of_one_length_have_one_size() -> None:
    for kind in changing.KINDS:
        old, new = (stored(rows_of(7, letter), kind) for letter in "ab")
        assert len(old) == len(new) and old != new


@pytest.mark.timeout(1800)
def test_success_means_one_version(
    ringhaul: Ringhaul,
    cassandra_session: Session,
    tables: tuple[str, str],
    store: ObjectStore,
    tmp_path: Path,
) -> None:
    print(f"CHANGES_SEED={SEED}")
    trial = Trial(ringhaul, cassandra_session, tables, store, tmp_path)
    cases = changing.drawn(SEED, CASES)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = list(pool.map(trial.run, cases))
    changed = [code for case, code in ends if case.change not in changing.HARMLESS]
    print(f"{changed.count(0)} of {len(changed)} succeeded, {changed.count(4)} were refused")
    # The changes meet commands before, within and after their reading
    assert changed.count(4) > len(changed) // 10 and 0 in changed, ends
