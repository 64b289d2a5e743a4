"""Schedules in operation: two beats, one of them killed; arriving files; runs by hand."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis
from cassandra.cluster import Session

from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import ScheduleBook
from ringhaul.ledger.states import JobState
from ringhaul.schedule.arrivals import FAILED
from ringhaul.schedule.runs import Run, RunState
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.oracle import assert_table, create_table

COLUMNS = "id int PRIMARY KEY, a text"
LEASE_S = 3
DUE_EVERY_S = 5
#: Enough for several commands of one or two seconds each on a busy machine.
LONG_S = 120.0


class Etl:
    """The command with the running workers and a private schedule file."""

    def __init__(self, fleet: Ringhaul, table: str, client: redis.Redis) -> None:
        self.name = f"s-{secrets.token_hex(4)}"
        self.table = table
        self.folder = fleet.cwd
        self.file = self.folder / "schedule.toml"
        settings = {
            "RINGHAUL_SCHEDULE_FILE": str(self.file),
            "RINGHAUL_SCHEDULE_LEASE_S": str(LEASE_S),
            "RINGHAUL_STATE_DIR": str(self.folder / "state"),
        }
        self.ringhaul = Ringhaul(fleet.env | settings, self.folder)
        self.ledger = Ledger(client)
        self.book = ScheduleBook(self.ledger.caller)

    def write(self, keys: str) -> None:
        """Write the schedule file, with one schedule."""
        self.file.write_text(f"[schedule.{self.name}]\n{keys}\n")

    @contextlib.contextmanager
    def beat(self, log: str = "beat.log") -> Iterator[subprocess.Popen[str]]:
        with self.ringhaul.started("beat", log=self.folder / log) as process:
            yield process

    def runs(self) -> list[Run]:
        """Return every run of the history, in the order of due times."""
        return sorted(self.book.runs(self.name, 1000), key=lambda run: run.due_ms)

    def done(self) -> list[Run]:
        return [run for run in self.runs() if run.state is RunState.DONE]

    def jobs(self) -> list[JobStatus]:
        """Return the schedule's jobs in the ledger."""
        return [job for job in self.ledger.jobs(10_000) if job.job.startswith(f"{self.name}-")]

    def sources(self) -> dict[str, list[int]]:
        """Return path of a loaded file -> its size in each job that loaded it."""
        found: dict[str, list[int]] = {}
        for job in self.jobs():
            if job.labels["kind"] == "load" and job.state is JobState.COMPLETE:
                for source in json.loads(self.ledger.job_spec(job.job))["sources"]:
                    found.setdefault(source["path"], []).append(source["size"])
        return found

    def idle(self) -> bool:
        return self.book.standing(self.name).run is None


@pytest.fixture
def etl(fleet: Ringhaul, cassandra_session: Session, keyspace: str) -> Iterator[Etl]:
    table = create_table(cassandra_session, keyspace, COLUMNS)
    with redis.Redis.from_url(fleet.env["RINGHAUL_BROKER_URL"]) as client:
        yield Etl(fleet, table, client)


def write_rows(path: Path, first: int, count: int) -> list[tuple[int, str]]:
    """Write a file of `count` records, and return the rows that the table must hold."""
    rows = [(number, f"a{number}") for number in range(first, first + count)]
    path.write_text("id,a\n" + "".join(f"{number},{text}\n" for number, text in rows))
    return rows


def read_csv_folder(folder: Path) -> list[tuple[int, str]]:
    """Return the rows of the files that an unload's manifest lists."""
    names = [part["name"] for part in json.loads((folder / "_manifest.json").read_text())["parts"]]
    rows = []
    for name in names:
        with (folder / name).open(newline="") as file:
            rows += [(int(row["id"]), row["a"]) for row in csv.DictReader(file)]
    return sorted(rows)


def test_two_beats_one_of_them_killed_make_one_run_for_each_due_time(
    etl: Etl, cassandra_session: Session
) -> None:
    # Given three chained jobs every few seconds
    rows = write_rows(etl.folder / "in.csv", 0, 300)
    etl.write(
        f"""
        every = "{DUE_EVERY_S}s"
        overlap = "queue"
        catch_up = "all"
        steps = [
            ["load", "in.csv", "-t", "{etl.table}"],
            ["count", "-t", "{etl.table}"],
            ["unload", "-t", "{etl.table}", "-o", "out/{{due}}"],
        ]
        """
    )
    # and two beats at once
    with etl.beat("one.log") as one, etl.beat("two.log") as two:
        beats = {str(process.pid): process for process in (one, two)}

        # When the beat whose run is in its second step is killed
        def second_step() -> bool:
            runs = etl.runs()
            return bool(runs) and runs[0].steps[1].under_way

        wait_until(second_step, f"a second step; see {etl.folder}")
        victim = etl.runs()[0]
        host, _, pid = victim.host.rpartition(":")
        killed = beats.pop(pid)
        orphans = psutil.Process(killed.pid).children(recursive=True)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        (survivor,) = beats.values()
        # Then the other one continues that run, and starts the next ones
        wait_until(lambda: len(etl.done()) >= 3, f"three runs; see {etl.folder}", LONG_S)
        assert etl.ringhaul.run("schedule", "pause", etl.name).code == 0
        wait_until(etl.idle, "the last run")
        survivor.send_signal(signal.SIGTERM)
        assert survivor.wait(30) == 0
    assert psutil.wait_procs(orphans, timeout=30)[1] == [], "the step of the killed beat ended"

    # Then the history has one run for each due time, without a gap
    runs = etl.runs()
    dues = [run.due_ms // 1000 for run in runs]
    assert dues == list(range(dues[0], dues[0] + len(dues) * DUE_EVERY_S, DUE_EVERY_S))
    assert {run.state for run in runs} == {RunState.DONE}
    # each with three finished steps, of one try each
    for run in runs:
        assert [(step.code, step.tries, step.rows) for step in run.steps] == [(0, 1, 300)] * 3, run
        assert run.started_ms is not None and run.ended_ms is not None
        times = [run.started_ms]
        for step in run.steps:
            assert step.started_ms is not None and step.ended_ms is not None
            times += [step.started_ms, step.ended_ms]
        assert times == sorted(times), "one after the other"
    # the run that was taken over says so
    assert [run.takeovers for run in runs] == [1] + [0] * (len(runs) - 1)
    assert {run.host for run in runs} == {f"{host}:{survivor.pid}"}
    # and there is exactly one job for each step of each due time
    jobs = etl.jobs()
    named = [f"{etl.name}-{run.id}-{number}" for run in runs for number in (1, 2, 3)]
    assert sorted(job.job for job in jobs) == sorted(named)
    assert {job.state for job in jobs} == {JobState.COMPLETE}
    # Their result is correct, row by row
    assert_table(cassandra_session, etl.table, "id, a", rows)
    for run in runs:
        assert read_csv_folder(etl.folder / "out" / run.id) == rows
    # and --json reports the same
    history = json.loads(etl.ringhaul.run("schedule", "history", etl.name, "--json").out)
    assert [run["run"] for run in reversed(history)] == [run.id for run in runs]
    assert {run["state"] for run in history} == {"DONE"}
    assert [step["exit_code"] for step in history[0]["steps"]] == [0, 0, 0]
    (listed,) = json.loads(etl.ringhaul.run("schedule", "list", "--json").out)["schedules"]
    assert (listed["state"], listed["last"]["run"]) == ("paused", runs[-1].id)


def test_each_file_that_arrives_is_loaded_once(etl: Etl, cassandra_session: Session) -> None:
    # Given a folder that files arrive in, and two beats that look for them
    drop = etl.folder / "drop"
    drop.mkdir()
    etl.write(
        f"""
        arrive = "drop/*.csv"
        every = "1s"
        settle = "2s"
        steps = [["load", "{{files}}", "-t", "{etl.table}"]]
        """
    )
    rows = []
    with etl.beat("one.log"), etl.beat("two.log"):
        # When 50 files arrive, one of which is still being written when it is first seen
        growing = drop / "n49.csv"
        stop, grown = threading.Event(), [(49_000, "a49000")]
        with growing.open("w", buffering=1) as file:
            file.write("id,a\n49000,a49000\n")
            writer = threading.Thread(target=grow, args=(file, grown, stop))
            writer.start()
            try:
                for number in range(49):
                    rows += write_rows(drop / f"n{number:02}.csv", number * 1000, 20)
                # Then the complete ones are loaded, and that one waits
                wait_until(lambda: len(etl.sources()) >= 49, f"49 loads; see {etl.folder}", LONG_S)
                assert str(growing) not in etl.sources()
            finally:
                stop.set()
                writer.join()
        wait_until(lambda: str(growing) in etl.sources(), "the last file")
        wait_until(etl.idle, "the end of its run")
        rows += grown

        # Then each was loaded once, in its complete form
        sizes = {str(path): [path.stat().st_size] for path in drop.iterdir()}
        assert etl.sources() == sizes
        assert_table(cassandra_session, etl.table, "id, a", rows)
        jobs = len(etl.jobs())

        # When one is touched, one changed, one added, and one cannot be loaded
        os.utime(drop / "n00.csv")
        made = etl.folder / "made"
        made.mkdir()
        (made / "n01.csv").write_text("id,a\n1000,changed\n")
        new = write_rows(made / "n50.csv", 50_000, 20)
        (made / "n51.csv").write_text("id,no_such_column\n1,x\n")
        bad = drop / "n51.csv"
        for path in list(made.iterdir()):  # at once: one run takes all three
            path.rename(drop / path.name)
        wait_until(
            lambda: (
                len(etl.sources().get(str(drop / "n50.csv"), [])) == 1
                and len(etl.sources()[str(drop / "n01.csv")]) == 2
                and etl.book.remembered(etl.name, [str(bad)]).get(str(bad)) is not None
                and etl.book.remembered(etl.name, [str(bad)])[str(bad)].state == FAILED
            ),
            f"the changed and the new file, tried one by one; see {etl.folder}",
            LONG_S,
        )
        wait_until(etl.idle, "the end of the last run")

    # Then the changed one is loaded again, the touched one is not, and the bad one blocks none
    sources = etl.sources()
    assert len(sources[str(drop / "n00.csv")]) == 1
    assert str(bad) not in sources
    assert sum(map(len, sources.values())) == 52
    expected = dict([*rows, *new]) | {1000: "changed"}
    assert_table(cassandra_session, etl.table, "id, a", list(expected.items()))
    assert len(etl.jobs()) == jobs + 2, "one job for the changed file and one for the new file"
    failed = [run for run in etl.runs() if run.state is RunState.FAILED]
    assert [len(run.files) for run in failed] == [3, 1]
    assert failed[1].files[0].path == str(bad)
    # When the bad one is corrected, it counts as new; a run by hand then finds no new files
    bad.write_text("id,a\n51000,mended\n")
    by_hand = etl.ringhaul.run("schedule", "run", etl.name)
    assert by_hand.code == 0, by_hand
    assert etl.sources()[str(bad)] == [bad.stat().st_size]
    again = etl.ringhaul.run("schedule", "run", etl.name)
    assert (again.code, "no new files to load" in again.err) == (0, True)


def grow(file, rows: list[tuple[int, str]], stop: threading.Event) -> None:  # type: ignore[no-untyped-def]
    """Append records, each in two writes, until `stop` is set."""
    while not stop.wait(0.1):
        number = 49_000 + len(rows)
        file.write(f"{number},a")
        file.flush()
        time.sleep(0.05)
        file.write(f"{number}\n")
        rows.append((number, f"a{number}"))


def test_a_step_that_fails_stops_the_chain_and_sends_a_notification(
    etl: Etl, cassandra_session: Session
) -> None:
    # Given a chain whose second step has no input, and a notification command
    notified = etl.folder / "notified.json"
    etl.write(
        f"""
        cron = "30 1 * * *"
        timezone = "Europe/Berlin"
        steps = [
            ["count", "-t", "{etl.table}"],
            ["load", "in-{{due:%Y-%m-%d}}.csv", "-t", "{etl.table}"],
            ["verify", "in-{{due:%Y-%m-%d}}.csv", "-t", "{etl.table}"],
        ]
        [[schedule.{etl.name}.notify]]
        on = ["success", "failure"]
        command = ["/bin/sh", "-c", "cat > {notified}"]
        """
    )
    # When the run of a due time is started by hand
    command = ("schedule", "run", etl.name, "--due", "2026-11-19T00:30Z")
    failed = etl.ringhaul.run(*command)

    # Then it fails with the second step, the third does not run
    assert failed.code == 4, failed
    assert "in-2026-11-19.csv: no such file" in failed.err
    (run,) = etl.runs()
    assert (run.state, run.id) == (RunState.FAILED, "20261119T003000Z")
    assert [(step.code, step.tries) for step in run.steps] == [(0, 1), (2, 1), (None, 0)]
    assert [job.job for job in etl.jobs()] == [f"{etl.name}-{run.id}-1"]
    document = json.loads(notified.read_text())
    assert (document["schedule"], document["state"], document["late_s"] > 0) == (
        *(etl.name, "FAILED"),
        True,
    )
    assert [step["exit_code"] for step in document["steps"]] == [0, 2, None]
    assert document["reason"] == f"step 2: exit code 2: {document['steps'][1]['error']}"
    assert etl.runs()[0].notified == ("ok",)

    # When the input exists, the run continues with the failed step
    rows = write_rows(etl.folder / "in-2026-11-19.csv", 0, 50)
    mended = etl.ringhaul.run(*command)
    assert mended.code == 0, mended
    (run,) = etl.runs()
    assert [(step.code, step.tries) for step in run.steps] == [(0, 1)] * 3
    assert len(etl.jobs()) == 3
    assert_table(cassandra_session, etl.table, "id, a", rows)
    assert json.loads(notified.read_text())["state"] == "DONE"
    # and a finished due time does not run again
    again = etl.ringhaul.run(*command)
    assert (again.code, "not run again" in again.err) == (0, True)
    assert len(etl.jobs()) == 3

    # Then the text output reports it, too
    listed = etl.ringhaul.run("schedule", "list")
    assert re.search(rf"{etl.name} +waiting .* 20261119T003000Z +DONE", listed.out), listed
    assert "no beat is up" in listed.err
    history = etl.ringhaul.run("schedule", "history", etl.name).out.splitlines()
    assert re.match(rf"{etl.name}  20261119T003000Z  DONE  .* late", history[0]), history
    assert re.match(rf" +load exit 0 +{etl.name}-20261119T003000Z-2  COMPLETE  50 rows", history[2])
    # An invalid file is reported at once
    etl.write('cron = "30 25 * * *"\nsteps = [["count", "-t", "k.t"]]')
    wrong = etl.ringhaul.run("beat")
    assert wrong.code == 2
    assert f'{etl.file}: schedule {etl.name}: cron = "30 25 * * *": hour "25"' in wrong.err


def test_a_command_with_a_job_id_may_be_repeated(etl: Etl, cassandra_session: Session) -> None:
    # Given a load with a job id, whose command is killed
    rows = write_rows(etl.folder / "in.csv", 0, 600)
    job = f"{etl.name}-load"
    load = ("load", "in.csv", "-t", etl.table, "--job-id", job, "--rate", 900, "--unit-size", 500)
    with etl.ringhaul.started(*load, log=etl.folder / "load.log") as killed:
        wait_until(lambda: [found.job for found in etl.jobs()] == [job], "the job")
        killed.kill()
        killed.wait()
    # When it is repeated, it continues the job; when repeated again, it reports the end
    for _ in range(2):
        done = etl.ringhaul.run(*load, "--json")
        assert (done.code, done.summary["rows"], done.summary["job"]) == (0, 600, job), done
    assert_table(cassandra_session, etl.table, "id, a", rows)
    # and so do the reading commands
    out = etl.folder / "out"
    unload = ("unload", "-t", etl.table, "-o", out, "--job-id", f"{etl.name}-unload")
    printed = ("unload", "-t", etl.table, "--job-id", f"{etl.name}-printed", "-o", "-")
    count = ("count", "-t", etl.table, "--job-id", f"{etl.name}-count")
    largest = ("query", f"SELECT max(id) FROM {etl.table}", "--job-id", f"{etl.name}-query")
    for _ in range(2):
        assert etl.ringhaul.run(*largest).out.splitlines()[-1] == "599"
        assert etl.ringhaul.run(*unload).code == 0
        assert etl.ringhaul.run(*count).out.splitlines()[-1] == "600"
        assert read_csv_folder(out) == rows
    assert len(etl.jobs()) == 4
    # but not those whose rows went to the standard output of an earlier command
    assert len(etl.ringhaul.run(*printed).out.splitlines()) == 601
    again = etl.ringhaul.run(*printed)
    assert (again.code, again.out) == (2, ""), again
    assert "went to the standard output of the command that started it" in again.err
    # A job of another kind is not continued
    other = etl.ringhaul.run("count", "-t", etl.table, "--job-id", job)
    assert (other.code, "is a load" in other.err) == (2, True)
    # nor one of another table; a finished job is reported as finished
    other = etl.ringhaul.run("load", "in.csv", "-t", "shop.other", "--job-id", job)
    assert other.code == 2
    assert f"(--table '{etl.table}', here 'shop.other'); give another id" in other.err
    other = etl.ringhaul.run(*largest[:1], largest[1].replace("max", "min"), *largest[2:])
    assert (other.code, "here 'SELECT min(id)" in other.err) == (2, True), other
    # nor one with other rows, another file or another output; the jobs stay unchanged
    (etl.folder / "other.csv").write_text("id,a\n700,x\n")
    for command, message in (
        ((*count, "--by", "host"), "(--by not given, here 'host')"),
        ((*count, "--where", "id = 1"), "(--where not given, here 'id = 1')"),
        (("load", "other.csv", *load[2:]), f"here '{etl.folder}/other.csv')"),
        ((*unload[:3], "-o", etl.folder / "out2", *unload[5:]), f"(-o '{out}', here '{out}2')"),
    ):
        other = etl.ringhaul.run(*command)
        assert (other.code, message in other.err) == (2, True), other
    # A finished job is reported as finished, also without its input and output files
    (etl.folder / "in.csv").unlink()
    for path in out.iterdir():
        path.unlink()
    assert "nothing was run again" in etl.ringhaul.run(*load, "--rate", 800).err
    again = etl.ringhaul.run(*unload)
    assert (again.code, list(out.iterdir())) == (0, []), again
