"""A beat in front of a real Valkey; the steps' cluster is one that nobody answers for."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from config.settings import load_settings
from producer.local.valkey import EmbeddedValkey
from producer.schedule_beat import Beat
from producer.schedule_look import ArrivalLook
from producer.schedule_run import RunWork, step_environment
from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller, connect
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import Beats, Claim, ScheduleBook
from ringhaul.schedule.arrivals import FAILED, Arrived, Listed, remember
from ringhaul.schedule.parse import parse_schedules
from ringhaul.schedule.runs import Run, RunState, new_run
from tests.services import restart_valkey

COUNT = 'steps = [["count", "-t", "k.t"], ["count", "-t", "k.t"]]'


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and says nothing: who connects waits."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


class Rig:
    """Beats on one Valkey, with a schedule file that the test writes."""

    def __init__(self, folder: Path, url: str) -> None:
        self.file = folder / "config" / "schedule.toml"
        self.file.parent.mkdir()
        self.client = connect(url)
        self.ledger = Ledger(self.client)
        self.book = ScheduleBook(self.ledger.caller)

    def beat(self) -> Beat:
        return Beat(load_settings(), self.ledger)

    def set_back(self, name: str, days: int) -> None:
        """As if no beat had looked for so long."""
        key = keys.schedule_key(name, "state")
        for field, value in self.client.hgetall(key).items():
            if field == b"settled_ms" or field.startswith((b"since:", b"seen:")):
                self.client.hset(key, field, int(value) - days * 86_400_000)

    def run(self) -> Run | None:
        return next(iter(self.book.runs("a", 1)), None)


@pytest.fixture
def rig(tmp_path: Path, broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    # Settings that depend on the current folder, which is not that of the steps
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ringhaul.toml").write_text('[cluster]\ncontact_points = ["localhost"]\nport = 1\n')
    monkeypatch.setenv("RINGHAUL_BROKER_URL", broker_url)
    monkeypatch.setenv("RINGHAUL_STATE_DIR", "state")
    monkeypatch.setenv("RINGHAUL_SCHEDULE_FILE", "config/schedule.toml")
    found = Rig(tmp_path, broker_url)
    yield found
    found.client.close()


def look_until(beat: Beat, true: Callable[[], object], what: str, *others: Beat) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(min(0.05, *(one.look() for one in (beat, *others))))


def test_due_times_that_were_missed_are_made_up_for_once(
    rig: Rig, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    # Given a schedule that a beat has seen, whose next due time is far away
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    assert rig.run() is None
    # When no beat looks for five days, and then two do
    rig.set_back("a", 5)
    other = rig.beat()
    with caplog.at_level(logging.WARNING):
        look_until(beat, rig.run, "the run", other)
    # Then one of them runs the latest due time, and says so
    run = rig.run()
    assert run is not None and run.missed_from_ms is not None
    assert run.due_ms - run.missed_from_ms == 4 * 86_400_000
    assert len(rig.book.runs("a", 10)) == 1
    assert f"a {run.id}: the due times from" in caplog.text
    assert f"a {run.id}: starts " in caplog.text or run.late_ms == 0
    # It fails, as there is no cluster: once, and the second step does not run
    look_until(beat, lambda: rig.book.standing("a").run is None, "the end of the run", other)
    run = rig.run()
    assert run is not None
    assert (run.state, run.reason) == (RunState.FAILED, "step 1: exit code 4")
    assert [step.tries for step in run.steps] == [1, 0]
    assert (
        "no node answers at localhost:1"
        in (tmp_path / "state/schedules/a" / f"{run.id}.log").read_text()
    )
    # and nothing is due any more
    other.look()
    assert len(rig.book.runs("a", 10)) == 1
    assert len(Beats(rig.ledger.caller).alive()) == 1, "both are this process"
    beat.close()


def test_each_due_time_that_was_missed_runs_in_order(rig: Rig) -> None:
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\ncatch_up = "all"\n{COUNT}')
    beat, other = rig.beat(), rig.beat()
    beat.look()
    rig.set_back("a", 2)
    # While the first of them is under way, both beats look
    look_until(beat, lambda: len(rig.book.runs("a", 10)) == 2, "two runs", other)
    second, first = rig.book.runs("a", 10)
    assert (first.state, second.state) == (RunState.FAILED, RunState.RUNNING)
    assert second.due_ms - first.due_ms == 86_400_000
    beat.close()
    other.close()


def test_a_beat_that_is_stopped_leaves_its_run_to_the_next(
    rig: Rig, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a run whose step waits for a cluster
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", str(silent))
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    first = rig.beat()
    first.look()
    rig.set_back("a", 2)
    look_until(first, lambda: (run := rig.run()) and run.steps[0].under_way, "its first step")
    began = time.monotonic()
    # When its beat is stopped
    first.close()
    assert time.monotonic() - began < 15
    standing = rig.book.standing("a")
    assert standing.run is not None and standing.lease_ms <= standing.now_ms
    # Then another one goes on with the same step at once
    monkeypatch.delenv("RINGHAUL_CLUSTER_PORT")
    second = rig.beat()
    look_until(second, lambda: rig.book.standing("a").run is None, "the end of the run")
    run = rig.run()
    assert run is not None
    assert (run.takeovers, run.steps[0].tries, run.steps[0].code) == (1, 1, 4)
    second.close()


def watching_its_file(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Beat:
    """A beat that has read a right file with the schedule `a`, and looks at it at every beat."""
    monkeypatch.setattr("producer.schedule_beat.FILE_EVERY_S", 0.0)
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    return beat


def test_a_file_that_changes_is_read_again_and_a_bad_one_is_not_taken(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = watching_its_file(rig, monkeypatch)
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * *"\n{COUNT}')
    beat.look()
    beat.look()
    assert caplog.text.count("expected five fields") == 1, "told once"
    # The last one that was right stays
    rig.set_back("a", 1)
    look_until(beat, rig.run, "the run that was missed")
    run = rig.run()
    assert run is not None
    assert run.id.endswith("T031700Z")
    # and when it is right again it is taken: one that is new begins with its next due time
    rig.file.write_text(f'[schedule.b]\nevery = "1h"\n{COUNT}')
    beat.look()
    assert rig.book.standing("b").settled_ms is not None
    assert rig.book.runs("b", 10) == []
    # The run of the schedule that is gone goes on to its end
    look_until(beat, lambda: rig.book.standing("a").run is None, "the end of the run")
    beat.close()


@pytest.mark.parametrize("named", [True, False])
def test_a_file_that_is_gone_is_told_each_time_and_its_schedules_stay(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    if not named:
        monkeypatch.delenv("RINGHAUL_SCHEDULE_FILE")
    told = f"no such schedule file: {rig.file}" if named else f"{rig.file} is gone; the schedules"
    aside = rig.file.with_suffix(".aside")
    beat = watching_its_file(rig, monkeypatch)
    for times in (1, 2):
        rig.file.rename(aside)
        beat.look()
        beat.look()
        assert caplog.text.count(told) == times
        assert caplog.text.count("the schedules that were read before stay") == times
        aside.rename(rig.file)
        beat.look()
    assert "nothing is scheduled" not in caplog.text
    rig.file.unlink()
    rig.set_back("a", 1)
    look_until(beat, rig.run, "the run that was missed")
    beat.close()


def test_a_file_that_cannot_be_read_for_any_reason_ends_no_beat(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = watching_its_file(rig, monkeypatch)

    def read(path: Path) -> None:
        raise ZeroDivisionError("a defect of ours")

    with monkeypatch.context() as patched:
        patched.setattr("producer.schedule_beat.read_schedule_file", read)
        rig.file.write_text(f'[schedule.b]\nevery = "1h"\n{COUNT}')
        beat.look()
        beat.look()
    told = "the schedule file cannot be read: ZeroDivisionError: a defect of ours; the schedules"
    assert caplog.text.count(told) == 1
    beat.look()
    assert rig.book.standing("b").settled_ms is not None, "it is read again when it can be"
    beat.close()


def test_due_times_beside_a_run_that_is_not_over_are_one_entry_of_the_history(rig: Rig) -> None:
    rig.file.write_text(f'[schedule.a]\nevery = "1s"\n{COUNT}')
    beat = rig.beat()
    # Given a run by hand that nobody ends
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    beat.look()
    now_ms = rig.book.standing("a").now_ms
    run = new_run(schedule, now_ms // 1000 * 1000, now_ms, by_hand=True)
    assert rig.book.claim(run, settled_ms=None, lease_ms=60_000) is Claim.CLAIMED

    def passed_over() -> int:
        found = rig.book.runs("a", 10)
        first = found[0].missed_from_ms
        return found[0].due_ms - first if first else 0

    # When due times pass
    look_until(beat, lambda: passed_over() >= 2000, "three due times")
    # Then they are one entry beside it
    found = rig.book.runs("a", 10)
    assert [one.state for one in found] == [RunState.SKIPPED, RunState.RUNNING]
    assert found[0].reason == "the run before it was not over"
    beat.close()


def test_a_beat_waits_for_redis(rig: Rig, broker: EmbeddedValkey) -> None:
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    # When Redis is killed and comes back, the beat has waited and finds all as it was
    before = rig.book.standing("a").settled_ms
    restart_valkey(broker)
    assert beat.look() >= 0
    look_until(beat, lambda: _answers(rig.client), "Redis")
    assert rig.book.standing("a").settled_ms == before
    beat.close()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


def test_looks_for_files(rig: Rig, tmp_path: Path) -> None:
    """What a look finds, step by step; that beats load them is in tests/acceptance."""
    folder = tmp_path / "in"
    folder.mkdir()
    text = '[schedule.a]\narrive = "in/*.csv"\nsettle = "0s"\nfiles_max = 2\n'
    schedule = parse_schedules(f'{text}steps = [["load", "{{files}}", "-t", "k.t"]]', "s")["a"]
    look = ArrivalLook(ScheduleBook(Caller(rig.client)), schedule, tmp_path)

    def found(*, failed_too: bool = False) -> list[str]:
        """Two looks, since one is never enough."""
        look.look(0, failed_too=failed_too)
        return [Path(file.path).name for file in look.look(0, failed_too=failed_too)]

    for name in "abc":
        (folder / f"{name}.csv").write_text(name)
    assert found() == ["a.csv", "b.csv"], "no more than files_max"
    # What was loaded is not found again
    arrived = look.look(0)
    run = new_run(schedule, 1000, 1000, files=arrived)
    settled_ms = rig.book.look("a", "t").settled_ms
    assert rig.book.claim(run, settled_ms=settled_ms, lease_ms=9000) is Claim.CLAIMED
    rig.book.keep(run, lease_ms=9000, files=remember(arrived, run.id, 5, loaded=True))
    assert found() == ["c.csv"]
    # nor is one that was touched; one that has other content is, even of the same length
    (folder / "a.csv").write_text("a")
    assert found() == ["c.csv"]
    (folder / "b.csv").write_text("B")
    assert found() == ["b.csv", "c.csv"]
    # One that failed waits for a change, or for somebody
    failed = [file for file in look.look(0) if file.path.endswith("c.csv")]
    rig.book.keep(run, lease_ms=9000, files=remember(failed, run.id, 5, loaded=False))
    assert found() == ["b.csv"]
    assert found(failed_too=True) == ["b.csv", "c.csv"]


DROP = '[schedule.a]\narrive = "in/"\nevery = "1s"\nsettle = "0s"\n'


def drop_box(rig: Rig, tmp_path: Path, keys: str, *names: str) -> list[str]:
    """Files in a folder, and a schedule that looks for them; their paths."""
    folder = rig.file.parent / "in"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("id\n1\n")
    rig.file.write_text(DROP + keys)
    return [str(folder / name) for name in names]


def test_an_outage_of_the_cluster_condemns_no_file(rig: Rig, tmp_path: Path) -> None:
    # Given a cluster that is away, and files that arrive
    steps = 'backoff = "1h"\nsteps = [["load", "{files}", "-t", "k.t"]]'
    paths = drop_box(rig, tmp_path, steps, "0.csv", "1.csv")
    beat = rig.beat()
    look_until(beat, rig.run, "a run")
    look_until(beat, lambda: rig.book.standing("a").run is None, "its end")
    beat.close()
    run = rig.run()
    assert run is not None and (run.state, run.steps[0].code) == (RunState.FAILED, 4)
    # Then they are not to blame, and the next try waits, for another beat too
    assert rig.book.remembered("a", paths) == {}
    wait, now_ms = rig.book.wait("a"), rig.book.standing("a").now_ms
    assert wait.troubles == 1
    assert 3_500_000 < wait.until_ms - now_ms <= 3_600_000
    beat = rig.beat()
    until = time.monotonic() + 2.5
    look_until(beat, lambda: time.monotonic() > until, "some looks")
    assert len(rig.book.runs("a", 10)) == 1
    # By hand it does not wait, and the pause after it is longer
    assert by_hand(tmp_path).returncode == 4
    run = rig.run()
    assert run is not None and run.by_hand and len(rig.book.runs("a", 10)) == 2
    assert rig.book.standing("a").settled_ms == run.due_ms, "what a beat found before is stale"
    assert (rig.book.remembered("a", paths), rig.book.wait("a").troubles) == ({}, 2)
    # When the pause is over, a beat tries them again
    rig.client.hset(keys.schedule_key("a", "state"), "wait_ms", now_ms)
    look_until(beat, lambda: len(rig.book.runs("a", 10)) == 3, "the third run")
    run = rig.run()
    assert run is not None and [file.path for file in run.files] == paths
    beat.close()


def by_hand(folder: Path) -> subprocess.CompletedProcess[str]:
    """`ringhaul schedule run a`."""
    command = [sys.executable, "-P", "-m", "producer", "schedule", "run", "a"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_files_whose_chain_fails_before_their_load_are_not_tried_for_ever(
    rig: Rig, tmp_path: Path
) -> None:
    steps = 'steps = [["load", "none.csv", "-t", "k.t"], ["load", "{files}", "-t", "k.t"]]'
    (path,) = drop_box(rig, tmp_path, steps, "0.csv")
    beat = rig.beat()
    look_until(beat, rig.run, "a run")
    look_until(beat, lambda: rig.book.standing("a").run is None, "its end")
    beat.close()
    run = rig.run()
    assert run is not None and [step.code for step in run.steps] == [2, None]
    assert rig.book.remembered("a", [path])[path].state == FAILED


def test_a_file_that_cannot_be_read_does_not_hold_up_others(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    steps = 'files_max = 1\nsteps = [["load", "{files}", "-t", "k.t"]]'
    closed, good = drop_box(rig, tmp_path, steps, "closed.csv", "good.csv")
    folder = rig.file.parent
    with open(os.fsencode(folder) + b"/in/caf\xe9.csv", "w") as odd:
        odd.write("id\n1\n")
    # Given a file that is closed to us, which none is to root
    monkeypatch.setattr("producer.schedule_look.take_checksum", checksum_but_of(closed))
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalLook(rig.book, schedule, folder)
    for _ in range(4):
        found = look.look(0)
    # Then the other one is found, and those are told once
    assert [file.path for file in found] == [good]
    assert caplog.text.count("closed.csv: Permission denied") == 1
    assert caplog.text.count("its name is not UTF-8") == 1
    # By hand what is odd is told when there is nothing else
    Path(good).unlink()
    Path(closed).unlink()
    told = by_hand(tmp_path)
    assert (told.returncode, "its name is not UTF-8: rename it" in told.stderr) == (2, True), told


def checksum_but_of(closed: str) -> Callable[[Listed], Arrived]:
    def take(file: Listed) -> Arrived:
        if file.path == closed:
            raise PermissionError(13, "Permission denied", file.path)
        return Arrived(*file, checksum="c")

    return take


def test_nothing_is_forgotten_while_a_folder_is_away(rig: Rig, tmp_path: Path) -> None:
    steps = 'steps = [["load", "{files}", "-t", "k.t"]]'
    (path,) = drop_box(rig, tmp_path, steps, "0.csv")
    folder = rig.file.parent
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalLook(rig.book, schedule, folder)
    look.look(0)
    arrived = look.look(0)
    run = new_run(schedule, 1000, 1000, files=arrived)
    at = rig.book.look("a", "t").settled_ms
    assert rig.book.claim(run, settled_ms=at, lease_ms=9000) is Claim.CLAIMED
    rig.book.keep(run, lease_ms=9000, files=remember(arrived, run.id, 5, loaded=True))
    (folder / "in").rename(folder / "away")
    for year in (1, 2):
        assert ArrivalLook(rig.book, schedule, folder).look(year * 366 * 86_400_000) == []
    assert rig.book.remembered("a", [path])[path].gone_ms is None
    # One that is gone from a folder that is there is marked
    (folder / "away" / "0.csv").unlink()
    (folder / "away").rename(folder / "in")
    ArrivalLook(rig.book, schedule, folder).look(7)
    assert rig.book.remembered("a", [path])[path].gone_ms == 7


def test_a_run_that_is_let_go_of_after_its_load_has_its_files_remembered(
    rig: Rig, tmp_path: Path
) -> None:
    # Given a run whose load has ended, which nobody has written down yet
    (path,) = drop_box(rig, tmp_path, 'steps = [["load", "{files}", "-t", "k.t"]]', "0.csv")
    schedule = parse_schedules(rig.file.read_text(), "s")["a"]
    look = ArrivalLook(rig.book, schedule, rig.file.parent)
    look.look(0)
    standing = rig.book.look("a", "t")
    run = new_run(schedule, standing.now_ms // 1000 * 1000, standing.now_ms, files=look.look(0))
    claim = rig.book.claim(run, settled_ms=standing.settled_ms, lease_ms=9000)
    assert claim is Claim.CLAIMED
    work = RunWork(
        rig.book,
        rig.ledger,
        schedule,
        run,
        host="h:1",
        lease_ms=9000,
        folder=rig.file.parent,
        environment=step_environment(load_settings()),
        logs=tmp_path / "logs",
    )
    work.look(standing.now_ms)
    child = work._child
    assert child is not None
    child.kill()
    child.wait()
    child.returncode = 0
    assert work.look(standing.now_ms)
    assert work.run.state is RunState.DONE
    # When its beat is stopped in that moment
    work.release()
    # Then the files are known to be loaded
    assert rig.book.remembered("a", [path])[path].run == run.id
