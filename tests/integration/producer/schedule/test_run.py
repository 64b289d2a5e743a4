"""`ringhaul schedule run` with a real Valkey: abandoned and failed runs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from producer.figures.step_without_job import raise_step_without_job
from producer.options.connection import LedgerPlace
from producer.schedule.actions import acknowledge, print_history, print_schedules, run_now
from producer.schedule.file import read_schedule_file
from producer.schedule.last_good import keep_good
from producer.schedule.run import RunWork
from producer.services.ledger import on_behalf_of
from producer.startup import STEP_VARIABLE
from ringhaul.errors import (
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    LedgerUnavailable,
    UsageError,
)
from ringhaul.ledger import keys
from ringhaul.ledger.connection import connect
from ringhaul.ledger.history import BY_COMMAND
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, Claim, ScheduleBook
from ringhaul.schedule.arrivals import Arrived
from ringhaul.schedule.parse import parse_schedules
from ringhaul.schedule.runs import (
    Run,
    RunState,
    begin_step,
    end_step,
    fingerprint,
    new_run,
    step_of,
)
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.times import run_id

TEXT = '[schedule.a]\nevery = "1h"\nsteps = [["count", "-t", "k.t"]]'
#: An arbitrary hour.
DUE = 1_795_136_400_000


@pytest.fixture
def client(
    tmp_path: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[redis.Redis]:
    """The broker of a schedule file whose cluster does not answer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ringhaul.toml").write_text('[cluster]\ncontact_points = ["localhost"]\nport = 1\n')
    (tmp_path / "schedule.toml").write_text(TEXT)
    monkeypatch.setenv("RINGHAUL_BROKER_URL", broker_url)
    monkeypatch.setenv("RINGHAUL_STATE_DIR", "state")
    monkeypatch.setenv("RINGHAUL_SCHEDULE_FILE", "schedule.toml")
    found = connect(broker_url)
    yield found
    found.close()


@pytest.fixture
def book(client: redis.Redis) -> ScheduleBook:
    """The schedule book of a beat."""
    return ScheduleBook(Ledger(client).caller)


@pytest.fixture
def schedule() -> Schedule:
    return parse_schedules(TEXT, "s")["a"]


def newest(book: ScheduleBook) -> Run | None:
    return next(iter(book.runs("a", 1)), None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_releases_the_run(
    book: ScheduleBook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    def send_signal() -> None:
        while not ((run := newest(book)) and run.steps[0].under_way):
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with socket.socket() as silent:  # a silent cluster: the step waits
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", str(silent.getsockname()[1]))
        thread = threading.Thread(target=send_signal)
        thread.start()
        assert run_now(LedgerPlace(), "a", None) == EXIT_INTERRUPTED
        thread.join()
    assert signal.getsignal(number) == before
    assert "stopped: a beat continues" in capsys.readouterr().err
    # Then any command may continue it at once
    standing = book.standing("a")
    assert standing.run is not None
    assert standing.lease_ms <= standing.now_ms
    assert book.take_over("a", 1000) is not None


def test_an_abandoned_run_is_continued(
    book: ScheduleBook,
    schedule: Schedule,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Given a command that is killed while its step runs, and no beat
    run = replace(begin_step(new_run(schedule, DUE, DUE, by_hand=True), DUE), host="h:1")
    assert book.claim(run, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED
    with pytest.raises(UsageError, match="a is not run: a run of it is still in progress"):
        run_now(LedgerPlace(), "a", None)
    # When its lease has expired, and Redis is unavailable for two polls
    book.keep(run, lease_ms=0)
    look, away = RunWork.look, [LedgerUnavailable("no Redis"), LedgerUnavailable("no Redis")]

    def sometimes(work: RunWork, now_ms: int) -> bool:
        if work.run.steps[0].under_way and away:
            raise away.pop()
        return look(work, now_ms)

    monkeypatch.setattr(RunWork, "look", sometimes)
    # Then the next command continues that run to its end, a failure for lack of a cluster
    assert run_now(LedgerPlace(), "a", None) == EXIT_FATAL
    err = capsys.readouterr().err
    assert f"a {run.id}: h:1 abandoned it: continuing" in err
    assert err.count("waiting: ") == 1
    assert away == []
    (found,) = book.runs("a", 10)
    assert (found.state, found.takeovers, found.steps[0].tries) == (RunState.FAILED, 1, 1)
    assert book.standing("a").run is None


#: The calls: the claim is recorded, then the try of its step, then both are on Redis's disk.
@pytest.mark.parametrize("away", [{1}, {2}, {3}, {3, 4}, {2, 4}])
def test_an_outage_of_redis_at_the_start_of_a_step_costs_no_try(
    book: ScheduleBook,
    schedule: Schedule,
    client: redis.Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    away: set[int],
) -> None:
    run = new_run(schedule, DUE, DUE)
    assert book.claim(run, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED
    ledger, calls = Ledger(client), []

    def at_times(what: str, call: Callable[..., bool]) -> Callable[..., bool]:
        def wrapped(*given: Any, **named: Any) -> bool:
            calls.append(what)
            if len(calls) in away:
                raise LedgerUnavailable("no Redis")
            return call(*given, **named)

        return wrapped

    monkeypatch.setattr(book, "keep", at_times("keep", book.keep))
    monkeypatch.setattr(ledger, "make_durable", at_times("durable", ledger.make_durable))
    popen, started = subprocess.Popen, []
    environments: list[dict[str, str]] = []

    def start(command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        environments.append(more["env"])
        started.append(popen(["sleep", "60"]))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    work = RunWork(
        book,
        ledger,
        schedule,
        run,
        host="h:1",
        lease_ms=60_000,
        folder=tmp_path,
        environment={},
        logs=tmp_path / "logs",
        state_dir=tmp_path / "state",
    )
    failed = 0
    try:
        while not started:
            try:
                assert work.look(DUE)
            except LedgerUnavailable:
                failed += 1
        assert work.look(DUE) and len(started) == 1
    finally:
        for process in started:
            process.kill()
            process.wait()
    # Then it is the first try, which is recorded before the command starts
    assert failed == len(away)
    step = work.run.steps[0]
    assert (step.tries, step.under_way) == (1, True)
    kept = newest(book)
    assert kept is not None and kept.steps == work.run.steps
    # and the last call made it survive a crash of Redis
    assert calls[-1] == "durable"
    # and the command knows on whose behalf it changes jobs
    assert on_behalf_of() == BY_COMMAND
    monkeypatch.setenv(STEP_VARIABLE, environments[0][STEP_VARIABLE])
    assert on_behalf_of() == "schedule a"


def failed_run(book: ScheduleBook, schedule: Schedule) -> Run:
    """Add a run whose step failed to the history."""
    run = new_run(schedule, DUE, DUE)
    assert book.claim(run, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED
    run = end_step(begin_step(run, DUE), 3, DUE, schedule=schedule)
    assert book.keep(run, lease_ms=0, end=True)
    return run


def test_a_failed_step_is_retried_with_the_file_s_current_command(
    book: ScheduleBook, schedule: Schedule, tmp_path: Path
) -> None:
    failed_run(book, schedule)
    (tmp_path / "schedule.toml").write_text(TEXT.replace("k.t", "k.mended"))
    due = run_id(DUE)
    assert run_now(LedgerPlace(), "a", due) == EXIT_FATAL
    (run,) = book.runs("a", 10)
    mended = parse_schedules(TEXT.replace("k.t", "k.mended"), "f")["a"]
    assert run.steps[0].fingerprint == fingerprint(mended, 0) != fingerprint(schedule, 0)
    assert run.steps[0].code == EXIT_FATAL, "there is no cluster"
    # Due times since its failure do not count as skipped beside it; its delay is unchanged
    assert run.started_ms is not None and run.started_ms != DUE
    assert (run.steps[0].started_ms or 0) >= run.started_ms
    assert (run.first_ms, run.late_ms) == (DUE, 0)


def test_a_step_s_error_is_in_its_history_the_list_and_the_status_of_its_job(
    book: ScheduleBook,
    client: redis.Redis,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # Given a step that ends before it makes a job
    text = '[schedule.a]\nevery = "1h"\nsteps = [["load", "gone/x.csv", "-t", "k.t"]]'
    (tmp_path / "schedule.toml").write_text(text)
    assert run_now(LedgerPlace(), "a", None) == EXIT_FATAL
    (run,) = book.runs("a", 10)
    error = run.steps[0].error
    assert "gone/x.csv: no such file" in error
    assert run.reason == f"step 1: exit code 2: {error}"
    assert f"error: {error}\n" in capfd.readouterr().err
    assert not list(tmp_path.glob("ringhaul-step-*")), "its folder is removed"
    # Then the history and the list say why
    assert print_history(LedgerPlace(), "a", 10, as_json=False) == 0
    shown = capfd.readouterr().out
    assert f"({run.reason})" in shown
    assert f"    load exit 2  {run.steps[0].job}  no job\n" in shown
    assert print_history(LedgerPlace(), "a", 10, as_json=True) == 0
    assert json.loads(capfd.readouterr().out)[0]["steps"][0]["error"] == error
    assert print_schedules(LedgerPlace(), as_json=False) == 0
    assert f" a {run.id} failed: {run.reason}\n" in capfd.readouterr().out
    # And so does the status of the job that it did not make
    with pytest.raises(UsageError) as refusal:
        raise_step_without_job(Ledger(client), run.steps[0].job)
    assert error in str(refusal.value) and "schedule a" in str(refusal.value)
    for other in ("ld-7f3a9c", f"a-{run.id}-2", f"b-{run.id}-1"):
        raise_step_without_job(Ledger(client), other)


def test_a_due_time_that_has_not_come_is_refused(book: ScheduleBook, schedule: Schedule) -> None:
    later = run_id(int(time.time() * 1000) + 3_600_000)
    with pytest.raises(UsageError, match=r"--due: 2\S+Z has not come; a beat makes that run then"):
        run_now(LedgerPlace(), "a", later)
    assert book.runs("a", 10) == []


def test_a_due_time_without_its_offset_is_refused_where_it_may_be_two(
    book: ScheduleBook, schedule: Schedule, tmp_path: Path
) -> None:
    zone = 'timezone = "Europe/Berlin"\nsteps'
    (tmp_path / "schedule.toml").write_text(TEXT.replace("steps", zone, 1))
    words = "may be UTC or Europe/Berlin: write 2026-11-19T01:30Z or 2026-11-19T01:30+01:00"
    with pytest.raises(UsageError, match=re.escape(words)):
        run_now(LedgerPlace(), "a", "2026-11-19T01:30")
    assert book.runs("a", 10) == []


def test_a_finished_job_is_resumed_first(
    book: ScheduleBook, schedule: Schedule, client: redis.Redis
) -> None:
    run = failed_run(book, schedule)
    job = run.steps[0].job
    ledger = Ledger(client)
    ledger.create(job, {"verb": "count"}, "{}")
    ledger.cancel(job)
    due = run_id(DUE)
    with pytest.raises(UsageError, match=f"{job} is CANCELLED: run `ringhaul resume {job}` first"):
        run_now(LedgerPlace(), "a", due)
    assert book.standing("a").run is None
    assert book.runs("a", 10) == [run]


def test_a_failed_step_is_begun_anew_with_a_new_job(
    book: ScheduleBook, schedule: Schedule, client: redis.Redis
) -> None:
    # Given a failed run whose job cannot be continued
    run = failed_run(book, schedule)
    ledger, first = Ledger(client), run.steps[0].job
    ledger.create(first, {"verb": "count"}, "{}")
    with pytest.raises(UsageError, match=f"{first} is RUNNING: end it first with `ringhaul cancel"):
        run_now(LedgerPlace(), "a", None, earlier=run.id, restart=True)
    ledger.cancel(first)
    with pytest.raises(UsageError, match="start the step over with --restart"):
        run_now(LedgerPlace(), "a", None, earlier=run.id)
    # When it starts over, then the step has another job, which later tries continue
    for restart, job in ((True, f"{first}r1"), (False, f"{first}r1"), (True, f"{first}r2")):
        code = run_now(LedgerPlace(), "a", None, earlier=run.id, restart=restart)
        assert code == EXIT_FATAL, "there is no cluster"
        (now,) = book.runs("a", 10)
        assert (now.id, now.steps[0].job, now.state) == (run.id, job, RunState.FAILED)
        assert step_of(job) == ("a", run.id, 0)


def test_an_earlier_run_is_named_exactly(
    book: ScheduleBook, schedule: Schedule, capfd: pytest.CaptureFixture[str]
) -> None:
    run = failed_run(book, schedule)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"earlier": "20260101T000000Z"}, "--run: a has no run '20260101T000000Z': `ringhaul sch"),
        ({"earlier": "x" * 5}, "a has no run 'xxxxx'"),
        ({"due": run.id, "earlier": run.id}, "--due and --run both name a run"),
        ({"restart": True}, "--restart starts a step of a failed run over: name the run"),
        ({"due": run_id(DUE - 1000), "restart": True}, "does not exist, and only a failed run"),
    ]
    for options, words in refused:
        with pytest.raises(UsageError, match=re.escape(words)):
            run_now(LedgerPlace(), "a", **({"due": None} | options))
    assert book.runs("a", 10) == [run]
    # A run that is done is not run again
    done = new_run(schedule, DUE + 1000, DUE)
    assert book.claim(done, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED
    assert book.keep(replace(done, state=RunState.DONE), lease_ms=0, end=True)
    assert run_now(LedgerPlace(), "a", None, earlier=done.id) == 0
    assert "not run again" in capfd.readouterr().err
    with pytest.raises(UsageError, match="is DONE, and only a failed run can start over"):
        run_now(LedgerPlace(), "a", None, earlier=done.id, restart=True)


def test_a_failed_run_of_files_is_continued_with_the_files_that_it_had(
    book: ScheduleBook, tmp_path: Path
) -> None:
    # Given a run of files whose first step is done, so that no look finds them again
    text = (
        '[schedule.f]\narrive = "in/*.csv"\nsteps = [["load", "{files}", "-t", "k.t"], '
        '["verify", "{files}", "-t", "k.t"]]'
    )
    (tmp_path / "schedule.toml").write_text(text)
    schedule = parse_schedules(text, "f")["f"]
    files = (Arrived(str(tmp_path / "in/1.csv"), 5, "v1", ""),)
    run = new_run(schedule, DUE, DUE, files=files)
    assert book.claim(run, settled_ms=0, lease_ms=60_000) is Claim.CLAIMED
    settled = book.standing("f").settled_ms
    for code in (0, 3):
        run = end_step(begin_step(run, DUE), code, DUE, schedule=schedule)
    assert book.keep(run, lease_ms=0, end=True)
    # When it is continued, then only its second step runs, and no due time is taken
    assert run_now(LedgerPlace(), "f", None, earlier=run.id) == EXIT_FATAL, "there is no cluster"
    now = book.run("f", run.id)
    assert now is not None and now.files == files
    assert [step.tries for step in now.steps] == [1, 1]
    assert now.started_ms is not None and now.started_ms > DUE
    assert book.standing("f").settled_ms == settled


def test_a_failure_is_acknowledged_until_the_next_run_ends(
    book: ScheduleBook, schedule: Schedule, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match="a: there is nothing to acknowledge: no run has ended"):
        acknowledge(LedgerPlace(), "a")
    run = failed_run(book, schedule)
    assert not book.health("a").acknowledged
    assert acknowledge(LedgerPlace(), "a") == 0
    assert f"a  {run.id}  FAILED" in capsys.readouterr().err
    assert book.health("a").acknowledged
    assert print_schedules(LedgerPlace(), as_json=False) == 0
    assert "FAILED, seen" in capsys.readouterr().out
    assert print_schedules(LedgerPlace(), as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["schedules"][0]["acknowledged"] is True
    # The same run fails once more: that is news
    assert run_now(LedgerPlace(), "a", None, earlier=run.id) == EXIT_FATAL
    assert not book.health("a").acknowledged
    done = new_run(schedule, DUE + 1000, DUE)
    assert book.claim(done, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED
    assert book.keep(replace(done, state=RunState.DONE), lease_ms=0, end=True)
    with pytest.raises(UsageError, match="nothing to acknowledge: its last run is DONE"):
        acknowledge(LedgerPlace(), "a")
    with pytest.raises(UsageError, match="no schedule nonesuch"):
        acknowledge(LedgerPlace(), "nonesuch")


def test_lists_show_the_last_version_of_a_broken_file_and_say_so(
    book: ScheduleBook, schedule: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schedule.toml"
    file.write_text("[schedule.a")
    with pytest.raises(UsageError, match=re.escape(str(file.name))):
        print_schedules(LedgerPlace(), as_json=False)  # no version is known yet
    file.write_text(TEXT)
    keep_good(read_schedule_file(file), tmp_path / "state")
    Beats(book._caller).heartbeat("h1:7", 60_000, "the line 3 of h1")
    file.write_text("[schedule.a")
    assert print_schedules(LedgerPlace(), as_json=False) == EXIT_USAGE
    printed = capsys.readouterr()
    assert "every 3600s" in printed.out
    assert "schedule.toml" in printed.err
    assert "shown is the last version that could be read" in printed.err
    assert "beat h1:7 cannot read its schedule file, and keeps to the last" in printed.err
    assert print_schedules(LedgerPlace(), as_json=True) == EXIT_USAGE
    document = json.loads(capsys.readouterr().out)
    assert "schedule.toml" in document["file_problem"]
    assert document["beat_problems"] == {"h1:7": "the line 3 of h1"}
    assert [one["name"] for one in document["schedules"]] == ["a"]
    # A run by hand wants the file itself
    with pytest.raises(UsageError, match=r"schedule\.toml"):
        run_now(LedgerPlace(), "a", None)


def test_the_list_warns_of_a_repeating_output_path(
    client: redis.Redis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step = '["unload", "-t", "k.t", "-o", "out/{due:%a}"]'
    weekly = f'[schedule.b]\ncron = "17 3 * * *"\nsteps = [{step}]'
    (tmp_path / "schedule.toml").write_text(f"{TEXT}\n{weekly}")
    assert print_schedules(LedgerPlace(), as_json=True) == 0
    printed = capsys.readouterr()
    plain, warned = json.loads(printed.out)["schedules"]
    assert plain["warnings"] == []
    (warning,) = warned["warnings"]
    assert "schedule b: steps, step 1 (unload): -o out/" in warning
    assert "repeats after 7d00h" in warning and "warning" not in printed.err
    assert print_schedules(LedgerPlace(), as_json=False) == 0
    assert f"warning: {warning}\n" in capsys.readouterr().err


def forge(client: redis.Redis, record: dict[str, Any], run: str = "") -> None:
    """Write the forged record of a run that waits for a beat into Redis."""
    run = run or run_id(DUE)
    client.hset(keys.schedule_key("a", "records"), run, json.dumps(record))
    client.zadd(keys.schedule_key("a", "runs"), {run: DUE})
    client.hset(
        keys.schedule_key("a", "state"), mapping={"run": run, "owner": "evil", "lease_ms": 1}
    )


def test_a_forged_record_runs_only_the_file_s_steps(
    book: ScheduleBook, schedule: Schedule, client: redis.Redis, tmp_path: Path
) -> None:
    # Given a record whose step has a command line that writes a file
    made = tmp_path / "made"
    (tmp_path / "x.py").write_text(f"open({str(made)!r}, 'w')")
    record = json.loads(json.dumps(begin_step(new_run(schedule, DUE, DUE), DUE).to_json()))
    evil = ["flower", f"--conf={tmp_path}/x.py", "--port=1"]
    record["steps"][0] |= {"arguments": evil, "command": "flower", "job": "evil-1"}
    forge(client, record)
    # When a command continues it
    assert run_now(LedgerPlace(), "a", None) == EXIT_FATAL, "there is no cluster"
    # Then the file's step ran, with a job named after the run
    run = book.run("a", run_id(DUE))
    assert run is not None
    assert run.state is RunState.FAILED
    assert run.reason.startswith("step 1: exit code 4: no node answers at localhost:1")
    assert (run.steps[0].command, run.steps[0].job) == ("count", f"a-{run_id(DUE)}-1")
    assert not made.exists()


@pytest.mark.parametrize("path", ["/etc/passwd", "--config=/tmp/x.toml", "{T}/in/../x.csv"])
def test_a_forged_file_is_not_loaded(
    book: ScheduleBook, client: redis.Redis, tmp_path: Path, path: str
) -> None:
    path = path.replace("{T}", str(tmp_path))
    (tmp_path / "in").mkdir()
    text = '[schedule.a]\narrive = "in/*.csv"\nsteps = [["load", "{files}", "-t", "k.t"]]'
    (tmp_path / "schedule.toml").write_text(text)
    schedule = parse_schedules(text, "s")["a"]
    run = new_run(schedule, DUE, DUE, files=[Arrived(path, 1, "s", "c")])
    forge(client, json.loads(json.dumps(run.to_json())))
    assert run_now(LedgerPlace(), "a", None) == EXIT_FATAL
    found = book.run("a", run_id(DUE))
    assert found is not None and found.state is RunState.FAILED
    assert found.reason == f"step 1: {path!r} is not among the files of arrive: it is ignored"
    assert found.steps[0].tries == 0


def test_an_unreadable_record_is_a_failed_run(
    book: ScheduleBook, client: redis.Redis, capsys: pytest.CaptureFixture[str]
) -> None:
    forge(client, {"schedule": "a", "due_ms": "x"})
    for nested in (b"[" * 100_000, b"\xff", b"3"):
        client.hset(keys.schedule_key("a", "records"), "20200101T000000Z", nested)
        client.zadd(keys.schedule_key("a", "runs"), {"20200101T000000Z": 1, "no run": 0})
        client.hset(keys.schedule_key("a", "records"), "no run", "{}")
        assert print_history(LedgerPlace(), "a", 10, as_json=False) == 0
        assert "cannot be read" in capsys.readouterr().out
    assert run_now(LedgerPlace(), "a", None) == EXIT_FATAL
    found = book.run("a", run_id(DUE))
    assert found is not None and found.reason.endswith(
        "cannot be read: due_ms is not a valid number"
    )
    assert book.standing("a").run is None, "the schedule must continue"
