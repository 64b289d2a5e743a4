"""A beat, its due times and its schedule file. Arriving files are in `test_schedule_arrivals`."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from producer.local.valkey import EmbeddedValkey
from producer.schedule.scheduler import Beat
from ringhaul.ledger import keys
from ringhaul.ledger.schedules import WANTED_MAX_MS, Beats, Claim
from ringhaul.schedule.parse import parse_schedules
from ringhaul.schedule.runs import RunState, new_run
from tests.integration.producer.rig import Rig, look_until, rewrite
from tests.services import restart_valkey

COUNT = 'steps = [["count", "-t", "k.t"], ["count", "-t", "k.t"]]'


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that accepts connections and never answers: a client waits."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_missed_due_times_are_caught_up_once(
    rig: Rig, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    # Given a schedule known to a beat, whose next due time is far away
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    assert rig.run() is None
    # When no beat looks for five days, and then two look
    rig.set_back("a", 5)
    other = rig.beat()
    with caplog.at_level(logging.WARNING):
        look_until(beat, rig.run, "the run", other)
    # Then one of them runs the latest due time, and logs it
    run = rig.run()
    assert run is not None and run.missed_from_ms is not None
    assert run.due_ms - run.missed_from_ms == 4 * 86_400_000
    assert len(rig.book.runs("a", 10)) == 1
    assert f"a {run.id}: the due times from" in caplog.text
    assert f"a {run.id}: starts " in caplog.text or run.late_ms == 0
    # It fails once for lack of a cluster, and the second step does not run
    look_until(beat, lambda: rig.book.standing("a").run is None, "the end of the run", other)
    run = rig.run()
    assert run is not None
    assert run.state is RunState.FAILED
    assert run.reason.startswith("step 1: exit code 4: no node answers at localhost:1")
    assert [step.tries for step in run.steps] == [1, 0]
    assert (
        "no node answers at localhost:1"
        in (tmp_path / "state/schedules/a" / f"{run.id}.log").read_text()
    )
    # and nothing else is due
    other.look()
    assert len(rig.book.runs("a", 10)) == 1
    assert len(Beats(rig.ledger.caller).alive()) == 1, "both are this process"
    beat.close()


def test_missed_due_times_run_in_order(rig: Rig) -> None:
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\ncatch_up = "all"\n{COUNT}')
    beat, other = rig.beat(), rig.beat()
    beat.look()
    rig.set_back("a", 2)
    # While the first of them runs, both beats look
    look_until(beat, lambda: len(rig.book.runs("a", 10)) == 2, "two runs", other)
    second, first = rig.book.runs("a", 10)
    assert (first.state, second.state) == (RunState.FAILED, RunState.RUNNING)
    assert second.due_ms - first.due_ms == 86_400_000
    beat.close()
    other.close()


def test_a_stopped_beat_leaves_its_run_to_the_next(
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
    # Then another one continues with the same step at once
    monkeypatch.delenv("RINGHAUL_CLUSTER_PORT")
    second = rig.beat()
    look_until(second, lambda: rig.book.standing("a").run is None, "the end of the run")
    run = rig.run()
    assert run is not None
    assert (run.takeovers, run.steps[0].tries, run.steps[0].code) == (1, 1, 4)
    second.close()


def watching_its_file(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Beat:
    """Return a beat that has read a valid file with the schedule `a`, and checks it each time."""
    monkeypatch.setattr("producer.schedule.scheduler.FILE_EVERY_S", 0.0)
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    return beat


def test_a_changed_file_is_read_again_and_an_invalid_one_is_ignored(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = watching_its_file(rig, monkeypatch)
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * *"\n{COUNT}')
    beat.look()
    beat.look()
    assert caplog.text.count("expected five fields") == 1, "one message"
    # The last valid version stays
    rig.set_back("a", 1)
    look_until(beat, rig.run, "the run that was missed")
    run = rig.run()
    assert run is not None
    assert run.id.endswith("T031700Z")
    # and when it is valid again it is used: a new schedule starts with its next due time
    rig.file.write_text(f'[schedule.b]\nevery = "1h"\n{COUNT}')
    beat.look()
    assert rig.book.standing("b").settled_ms is not None
    assert rig.book.runs("b", 10) == []
    # The run of the removed schedule continues to its end
    look_until(beat, lambda: rig.book.standing("a").run is None, "the end of the run")
    beat.close()


@pytest.mark.parametrize("named", [True, False])
def test_a_missing_file_is_reported_each_time_and_its_schedules_stay(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    if not named:
        monkeypatch.delenv("RINGHAUL_SCHEDULE_FILE")
    missing, gone = f"no such schedule file: {rig.file}", f"{rig.file} is gone; the schedules"
    message = missing if named else gone
    aside = rig.file.with_suffix(".aside")
    beat = watching_its_file(rig, monkeypatch)
    for times in (1, 2):
        rig.file.rename(aside)
        beat.look()
        beat.look()
        assert caplog.text.count(message) == times
        assert caplog.text.count("the schedules read before remain in force") == times
        aside.rename(rig.file)
        beat.look()
    assert "nothing is scheduled" not in caplog.text
    rig.file.unlink()
    rig.set_back("a", 1)
    look_until(beat, rig.run, "the run that was missed")
    beat.close()


@pytest.mark.parametrize("broken", ["no closing bracket", "", None], ids=["text", "empty", "gone"])
def test_a_beat_that_starts_with_a_broken_file_goes_on_with_its_last_version(
    rig: Rig, caplog: pytest.LogCaptureFixture, broken: str | None
) -> None:
    # Given a beat that has read the file, and has ended with its host
    rig.file.write_text(f'[schedule.a]\nevery = "1h"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    beat.close()
    # When the file is broken before another starts
    if broken is None:
        rig.file.unlink()
    else:
        rig.file.write_text("[schedule.a" if broken else "[schedule]\nx = 1")
    beat = rig.beat()
    beat.look()
    # Then its schedule runs, and the beat says what is wrong
    rig.set_back("a", 1)
    look_until(beat, rig.run, "the run that was missed")
    assert "the schedules read before remain in force" in caplog.text
    (problem,) = Beats(rig.ledger.caller).problems().values()
    assert str(rig.file) in problem
    # And once the file is mended, it is used
    rig.file.write_text(f'[schedule.b]\nevery = "1h"\n{COUNT}')
    beat._file_due = 0.0
    beat.look()
    beat.look()
    assert rig.book.standing("b").settled_ms is not None
    assert list(Beats(rig.ledger.caller).problems().values()) == [""]
    beat.close()


def test_a_beat_without_an_earlier_version_waits_for_the_file(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.file.write_text("[schedule.a")
    caplog.set_level(logging.INFO)
    beat = rig.beat()
    beat.look()
    assert "remain in force" not in caplog.text and str(rig.file) in caplog.text
    assert caplog.text.count(", 0 schedules") == 1 and "ready: " in caplog.text
    rig.file.write_text(f'[schedule.a]\nevery = "1h"\n{COUNT}')
    beat._file_due = 0.0
    beat.look()
    assert f"{rig.file}: 1 schedule\n" in caplog.text and caplog.text.count("ready: ") == 1
    assert rig.book.standing("a").settled_ms is not None
    beat.close()


def test_an_unreadable_file_ends_no_beat(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = watching_its_file(rig, monkeypatch)

    def read(path: Path) -> None:
        raise ZeroDivisionError("a defect of ours")

    with monkeypatch.context() as patched:
        patched.setattr("producer.schedule.scheduler.read_schedule_file", read)
        rig.file.write_text(f'[schedule.b]\nevery = "1h"\n{COUNT}')
        beat.look()
        beat.look()
    message = "the schedule file cannot be read: ZeroDivisionError: a defect of ours; the schedules"
    assert caplog.text.count(message) == 1
    beat.look()
    assert rig.book.standing("b").settled_ms is not None, "it must be read once it is readable"
    beat.close()


def test_a_repeating_output_path_is_logged_each_time_the_file_is_read(
    rig: Rig, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = watching_its_file(rig, monkeypatch)
    step = '["unload", "-t", "k.t", "-o", "out/{due:%a}"]'
    for times in (1, 2):
        rewrite(rig.file, f'[schedule.a]\ncron = "{times} 3 * * *"\nsteps = [{step}]')
        beat.look()
        beat.look()
        assert (
            caplog.text.count(f"{rig.file}: schedule a: steps, step 1 (unload): -o out/") == times
        )
    beat.close()


def test_due_times_during_an_unfinished_run_are_one_entry_of_the_history(rig: Rig) -> None:
    rig.file.write_text(f'[schedule.a]\nevery = "1s"\n{COUNT}')
    beat = rig.beat()
    # Given a run by hand that never ends
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
    # Then they are one entry in the history
    found = rig.book.runs("a", 10)
    assert [one.state for one in found] == [RunState.SKIPPED, RunState.RUNNING]
    assert found[0].reason == "the previous run had not ended"
    beat.close()


def test_a_beat_waits_for_redis(rig: Rig, broker: EmbeddedValkey) -> None:
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat = rig.beat()
    beat.look()
    # When Redis is killed and returns, the beat has waited and finds everything unchanged
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


def test_a_run_that_somebody_asks_for_is_started_by_one_beat(rig: Rig) -> None:
    # 1. Two beats, and a paused schedule that is not due.
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    beat, other = rig.beat(), rig.beat()
    beat.look()
    rig.book.pause("a")
    # 2. Somebody asks for a run, and somebody else does so again.
    assert rig.book.want_run("a")
    assert not rig.book.want_run("a")
    # 3. It runs once, by hand, and the schedule stays paused.
    look_until(beat, rig.run, "the run", other)
    look_until(beat, lambda: rig.book.standing("a").run is None, "its end", other)
    for _ in range(3):
        beat.look()
        other.look()
    (run,) = rig.book.runs("a", 10)
    assert run.by_hand and run.state is RunState.FAILED
    standing = rig.book.standing("a")
    assert standing.paused_ms is not None and standing.wanted_ms is None
    # 4. After its end it can be requested again.
    assert rig.book.want_run("a")
    beat.close()
    other.close()


def test_a_wish_for_a_run_gets_old(rig: Rig) -> None:
    rig.file.write_text(f'[schedule.a]\ncron = "17 3 * * *"\n{COUNT}')
    rig.beat().look()
    # 1. A run was requested while no beat was up, and hours pass.
    now_ms = rig.book.standing("a").now_ms
    key = keys.schedule_key("a", "state")
    rig.ledger.caller.command("HSET", key, "wanted_ms", now_ms - WANTED_MAX_MS - 1000)
    # 2. A beat starts: it does not run the schedule at an unexpected hour.
    beat = rig.beat()
    look_until(beat, lambda: rig.book.standing("a").wanted_ms is None, "the wish to be given up")
    assert rig.run() is None
    beat.close()
