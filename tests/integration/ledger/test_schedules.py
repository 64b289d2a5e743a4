"""Due times, runs and files of schedules in a real Valkey: each once, for any number of beats."""

import threading
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest

from ringhaul.ledger import keys
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.schedules import (
    NO_HEALTH,
    RUNS_KEPT,
    UNSEEN_MAX_MS,
    Beats,
    Claim,
    Health,
    ScheduleBook,
    Wait,
    health_of,
)
from ringhaul.schedule.arrivals import REMEMBER_MS, Arrived, remember
from ringhaul.schedule.runs import Run, RunState, new_run
from ringhaul.schedule.schedules import Schedule
from ringhaul.schedule.timing import Timing
from tests.integration.ledger.conftest import Clock

LEASE_MS = 30_000
HOURLY = Schedule(
    name="hourly",
    timing=Timing(zone=ZoneInfo("UTC"), every_s=3600),
    steps=(("load", "{due}", "-t", "k.t"), ("count", "-t", "k.t")),
)


@pytest.fixture
def book(clocked: Ledger) -> ScheduleBook:
    """The schedule book of one beat."""
    return ScheduleBook(clocked.caller)


@pytest.fixture
def other(clocked: Ledger) -> ScheduleBook:
    """The schedule book of another beat."""
    return ScheduleBook(clocked.caller)


def settled(book: ScheduleBook) -> int:
    """Look at the schedule for the first time, and return its settled time."""
    found = book.look("hourly", HOURLY.timing.text).settled_ms
    assert found is not None
    return found


def a_run(hour: int = 1) -> Run:
    """Return the run of a due time, `hour` hours after the start of the test's clock."""
    return new_run(HOURLY, 1_760_000_400_000 + hour * 3_600_000, 1_760_000_400_000)


def test_a_schedule_starts_when_it_is_first_seen(book: ScheduleBook, clock: Clock) -> None:
    assert book.standing("hourly").settled_ms is None
    assert settled(book) == clock.now_ms
    clock.advance(5000)
    assert settled(book) == clock.now_ms - 5000
    # With other times it restarts, and with the old ones it is where it was
    assert book.look("hourly", "other").since_ms == clock.now_ms
    assert book.look("hourly", HOURLY.timing.text).since_ms == clock.now_ms - 5000
    assert book.standing("hourly").now_ms == clock.now_ms


def test_a_timing_that_returns_starts_again(book: ScheduleBook, clock: Clock) -> None:
    first_ms = clock.now_ms
    assert book.look("hourly", "a").since_ms == first_ms
    # Without a look nothing is forgotten: missed due times are caught up
    clock.advance(10 * 86_400_000)
    assert book.look("hourly", "a").since_ms == first_ms
    # When its times are changed, and changed back later
    for _ in range(UNSEEN_MAX_MS // 1000 + 1):
        clock.advance(1000)
        book.look("hourly", "b")
    # Then it starts now
    assert book.look("hourly", "a").since_ms == clock.now_ms


def test_beats_with_different_files_do_not_restart_each_other(
    book: ScheduleBook, other: ScheduleBook, clock: Clock, ledger: Ledger
) -> None:
    first_ms = clock.now_ms
    for _ in range(300):
        assert book.look("hourly", "a").since_ms == first_ms
        assert other.look("hourly", "b").since_ms == first_ms
        clock.advance(1000)
    # A removed one leaves nothing
    for _ in range(100):
        clock.advance(1000)
        book.look("hourly", "a")
    fields = ledger.caller.command("HKEYS", keys.schedule_key("hourly", "state"))
    assert set(fields) == {b"settled_ms", b"since:a", b"seen:a"}


def test_a_due_time_has_one_run(book: ScheduleBook, other: ScheduleBook) -> None:
    at = settled(book)
    run = a_run()
    assert book.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.CLAIMED
    assert other.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.BUSY
    assert book.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.CLAIMED, "claimed again"
    standing = other.standing("hourly")
    assert (standing.run, standing.settled_ms) == (run.id, run.due_ms)
    # When it is over, another beat with an older decision cannot start it again
    assert book.keep(run, lease_ms=LEASE_MS, end=True)
    assert other.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.MOVED
    assert other.standing("hourly").run is None
    # nor can one with a wrong clock or file
    now = other.standing("hourly").settled_ms
    assert other.claim(run, settled_ms=now, lease_ms=LEASE_MS) is Claim.KNOWN
    assert book.run("hourly", run.id) == run


def test_many_beats_make_one_run(ledger: Ledger) -> None:
    books = [ScheduleBook(ledger.caller) for _ in range(8)]
    at = settled(books[0])
    answers: list[Claim] = []

    def claim(book: ScheduleBook) -> None:
        for _ in range(20):
            answers.append(book.claim(a_run(), settled_ms=at, lease_ms=LEASE_MS))

    threads = [threading.Thread(target=claim, args=(book,)) for book in books]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # One beat has it, however often it claims; all others are refused
    assert answers.count(Claim.CLAIMED) == 20
    assert answers.count(Claim.BUSY) == 140
    assert len(books[0].runs("hourly", 10)) == 1


def test_a_run_with_a_silent_beat_is_taken_over(
    book: ScheduleBook, other: ScheduleBook, clock: Clock
) -> None:
    run = a_run()
    assert other.take_over("hourly", LEASE_MS) is None, "no run to take over"
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    clock.advance(LEASE_MS - 1)
    assert other.take_over("hourly", LEASE_MS) is None
    assert book.renew(run, LEASE_MS)
    clock.advance(LEASE_MS - 1)
    assert other.take_over("hourly", LEASE_MS) is None
    clock.advance(1)
    assert other.take_over("hourly", LEASE_MS) == run
    # The first beat learns that it lost the run, and changes nothing
    assert not book.renew(run, LEASE_MS)
    assert not book.keep(replace(run, reason="late"), lease_ms=LEASE_MS, end=True)
    assert other.run("hourly", run.id) == run
    # and the second one keeps it, also when it asks twice
    assert other.take_over("hourly", LEASE_MS) == run
    assert other.keep(replace(run, takeovers=1), lease_ms=LEASE_MS)
    assert book.run("hourly", run.id) == replace(run, takeovers=1)


def test_a_beat_that_stops_releases_its_run_at_once(
    book: ScheduleBook, other: ScheduleBook
) -> None:
    run = a_run()
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    assert book.keep(run, lease_ms=0)
    assert other.take_over("hourly", LEASE_MS) == run


def test_skipped_due_times_are_in_the_history(book: ScheduleBook, other: ScheduleBook) -> None:
    at = settled(book)
    skipped = replace(a_run(), state=RunState.SKIPPED, steps=())
    assert book.pass_over(skipped, settled_ms=at)
    assert not other.pass_over(skipped, settled_ms=at), "it is settled already"
    assert book.runs("hourly", 10) == [skipped]
    assert book.claim(a_run(), settled_ms=at, lease_ms=LEASE_MS) is Claim.MOVED
    # Consecutive ones are one entry
    later = replace(a_run(2), state=RunState.SKIPPED, steps=(), missed_from_ms=skipped.due_ms)
    assert book.pass_over(later, settled_ms=skipped.due_ms, instead_of=skipped)
    assert book.runs("hourly", 10) == [later]
    assert book.run("hourly", skipped.id) is None
    skipped = later
    # A run by hand can catch up
    by_hand = replace(a_run(2), by_hand=True)
    assert other.claim(by_hand, settled_ms=None, lease_ms=LEASE_MS) is Claim.KNOWN
    assert other.claim(by_hand, settled_ms=None, lease_ms=LEASE_MS, before=skipped) is Claim.CLAIMED
    assert book.runs("hourly", 10) == [by_hand]


def ended(book: ScheduleBook, run: Run, state: RunState, before: Run | None = None) -> Run:
    """Make a run that ends in a state, and return it."""
    assert book.claim(run, settled_ms=None, lease_ms=LEASE_MS, before=before) is Claim.CLAIMED
    over = replace(run, state=state)
    assert book.keep(over, lease_ms=LEASE_MS, end=True)
    return over


def test_failures_in_a_row_and_the_last_success_outlive_runs_and_skipped_due_times(
    book: ScheduleBook, other: ScheduleBook, clock: Clock
) -> None:
    at = settled(book)
    assert book.health("hourly") == NO_HEALTH
    # A run that fails, and fails again when it is continued, is one failure
    first = ended(book, a_run(1), RunState.FAILED)
    assert book.health("hourly") == Health(first, None, 1)
    first = ended(book, a_run(1), RunState.FAILED, before=first)
    assert other.health("hourly") == Health(first, None, 1)
    # A run that goes on hides nothing, nor do so many skipped due times that they fill the history
    second = a_run(2)
    assert book.claim(second, settled_ms=None, lease_ms=LEASE_MS) is Claim.CLAIMED
    assert book.health("hourly") == Health(first, None, 1)
    for hour in range(3, RUNS_KEPT + 10):
        skipped = replace(a_run(hour), state=RunState.SKIPPED, steps=())
        assert other.pass_over(skipped, settled_ms=at)
        at = skipped.due_ms
    assert book.run("hourly", first.id) is None
    found = book.health("hourly")
    assert found.ended is not None
    assert (found.ended.due_ms, found.ended.state, found.failures) == (
        *(first.due_ms, RunState.FAILED, 1),
    )
    # When the run that went on fails, too, these are two; a success ends the count
    assert book.keep(replace(second, state=RunState.FAILED), lease_ms=LEASE_MS, end=True)
    assert book.health("hourly").failures == 2
    clock.advance(5000)
    third = ended(book, a_run(RUNS_KEPT + 20), RunState.DONE)
    assert book.health("hourly") == Health(third, clock.now_ms, 0)
    fourth = ended(book, a_run(RUNS_KEPT + 21), RunState.FAILED)
    assert book.health("hourly") == Health(fourth, clock.now_ms, 1)


def test_the_health_of_a_schedule_that_an_earlier_version_ran(book: ScheduleBook) -> None:
    states = (RunState.SKIPPED, RunState.FAILED, RunState.FAILED, RunState.DONE, RunState.FAILED)
    runs = [
        replace(a_run(9 - n), state=state, ended_ms=1000 * (9 - n))
        for n, state in enumerate(states)
    ]
    assert health_of(runs) == Health(runs[1], 6000, 2)
    assert health_of(runs[:3]) == Health(runs[1], None, 2)
    assert health_of([]) == NO_HEALTH


def test_a_due_time_that_ran_by_hand_does_not_run_again(
    book: ScheduleBook, other: ScheduleBook
) -> None:
    at = settled(book)
    run = replace(a_run(), by_hand=True)
    assert book.claim(run, settled_ms=None, lease_ms=LEASE_MS) is Claim.CLAIMED
    assert other.claim(a_run(), settled_ms=at, lease_ms=LEASE_MS) is Claim.BUSY
    book.keep(run, lease_ms=LEASE_MS, end=True)
    assert book.standing("hourly").settled_ms == at, "a run by hand must not settle due times"
    assert other.claim(a_run(), settled_ms=at, lease_ms=LEASE_MS) is Claim.KNOWN
    assert book.standing("hourly").settled_ms == run.due_ms


def test_no_run_starts_while_a_schedule_is_paused(
    book: ScheduleBook, other: ScheduleBook, clock: Clock
) -> None:
    at = settled(book)
    book.pause("hourly")
    paused_at = clock.now_ms
    clock.advance(10)
    book.pause("hourly")
    assert book.standing("hourly").paused_ms == paused_at, "the first pause counts"
    assert other.claim(a_run(), settled_ms=at, lease_ms=LEASE_MS) is Claim.PAUSED
    clock.advance(3_600_000)
    book.resume("hourly")
    standing = book.standing("hourly")
    # Due times in the pause are settled
    assert (standing.paused_ms, standing.settled_ms) == (None, clock.now_ms)
    book.resume("hourly")
    assert book.standing("hourly").settled_ms == clock.now_ms
    # A run by hand works in a pause
    book.pause("hourly")
    assert other.claim(a_run(), settled_ms=None, lease_ms=LEASE_MS) is Claim.CLAIMED


def test_the_history_is_bounded_and_keeps_the_unfinished_run(book: ScheduleBook) -> None:
    at = settled(book)
    run = a_run(0)
    assert book.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.CLAIMED
    at = run.due_ms
    for hour in range(1, RUNS_KEPT + 10):
        skipped = replace(a_run(hour), state=RunState.SKIPPED, steps=())
        assert book.pass_over(skipped, settled_ms=at)
        at = skipped.due_ms
    found = book.runs("hourly", 10 * RUNS_KEPT)
    assert len(found) == RUNS_KEPT
    assert found[-1] == run
    assert found[0].due_ms == at
    assert book.keep(run, lease_ms=LEASE_MS, end=True)


def test_files_are_remembered_with_the_end_of_their_load(
    book: ScheduleBook, other: ScheduleBook, clock: Clock
) -> None:
    files = [Arrived(f"/in/{n}.csv", n, str(n), f"sum{n}") for n in range(2500)]
    run = a_run()
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    paths = [file.path for file in files]
    assert other.remembered("hourly", paths) == {}
    remembered = remember(files, run.id, clock.now_ms, loaded=True)
    assert book.keep(run, lease_ms=LEASE_MS, files=remembered)
    assert other.remembered("hourly", paths) == remembered
    # A beat that lost the run records nothing
    clock.advance(LEASE_MS)
    assert other.take_over("hourly", LEASE_MS)
    failed = remember(files, run.id, clock.now_ms, loaded=False)
    assert not book.keep(run, lease_ms=LEASE_MS, files=failed)
    assert other.remembered("hourly", paths[:1]) == {paths[0]: remembered[paths[0]]}


def test_files_that_are_missing_for_long_are_forgotten(
    book: ScheduleBook, ledger: Ledger, clock: Clock
) -> None:
    files = [Arrived(f"/in/{n}.csv", n, str(n), f"sum{n}") for n in range(2500)]
    paths = [file.path for file in files]
    run = a_run()
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    remembered = remember(files, run.id, clock.now_ms, loaded=True)
    assert book.keep(run, lease_ms=LEASE_MS, files=remembered)
    # Given files that were loaded long ago, and a mount that is missing for a moment
    clock.advance(2 * REMEMBER_MS)
    assert book.forget("hourly", set(), clock.now_ms) == 0
    clock.advance(1000)
    assert book.forget("hourly", set(paths), clock.now_ms) == 0
    assert book.remembered("hourly", paths) == remembered, "a short absence must not matter"
    # When some are missing for the retention time, they are forgotten
    there = set(paths[:2000])
    assert book.forget("hourly", there, clock.now_ms) == 0
    clock.advance(REMEMBER_MS)
    assert book.forget("hourly", there, clock.now_ms) == 0, "not long enough gone"
    clock.advance(1)
    assert book.forget("hourly", there, clock.now_ms) == 500
    assert set(book.remembered("hourly", paths)) == there
    # and the others stay as long as a beat looks
    key = keys.schedule_key("hourly", "files")
    ledger.caller.command("EXPIRE", key, 1000)
    book.keep_files("hourly")
    assert ledger.caller.command("TTL", key) > 366 * 86_400


def test_files_of_a_run_by_hand_are_not_taken_by_an_older_look(
    book: ScheduleBook, other: ScheduleBook
) -> None:
    file = Arrived("/in/a", 1, "1", "c")
    drop = replace(HOURLY, steps=(("load", "{files}", "-t", "k.t"),), arrive=("/in",))

    def run_of(hour: int, *, by_hand: bool) -> Run:
        return replace(a_run(hour), files=(file,), steps=(), by_hand=by_hand)

    # Given a command by hand that looks before any beat
    assert drop.arrive and book.standing("hourly").settled_ms is None
    by_hand = run_of(0, by_hand=True)
    assert book.claim(by_hand, settled_ms=0, lease_ms=LEASE_MS) is Claim.CLAIMED
    book.keep(by_hand, lease_ms=LEASE_MS, end=True)
    # and a beat, while it is paused
    at = settled(book)
    book.pause("hourly")
    by_hand = run_of(1, by_hand=True)
    assert book.claim(by_hand, settled_ms=at, lease_ms=LEASE_MS) is Claim.CLAIMED
    book.keep(by_hand, lease_ms=LEASE_MS, end=True)
    # Then the beat's earlier findings do not count
    book.resume("hourly")
    assert other.claim(run_of(2, by_hand=False), settled_ms=at, lease_ms=LEASE_MS) is Claim.MOVED
    # nor do findings by hand from before a beat's run
    at = settled(book)
    run = run_of(3, by_hand=False)
    assert other.claim(run, settled_ms=at, lease_ms=LEASE_MS) is Claim.CLAIMED
    other.keep(run, lease_ms=LEASE_MS, end=True)
    by_hand = run_of(4, by_hand=True)
    assert book.claim(by_hand, settled_ms=at, lease_ms=LEASE_MS) is Claim.MOVED


def test_the_wait_for_files_outlives_a_beat(book: ScheduleBook, other: ScheduleBook) -> None:
    assert book.wait("hourly") == Wait(0, 0)
    run = a_run()
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    book.keep(run, lease_ms=LEASE_MS, end=True, wait=Wait(3, 1_760_000_000_000))
    assert other.wait("hourly") == Wait(3, 1_760_000_000_000)
    # A run without a wait leaves it unchanged
    run = a_run(2)
    other.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    other.keep(run, lease_ms=LEASE_MS, end=True)
    assert other.wait("hourly").troubles == 3


def test_keys_of_a_schedule_live_for_more_than_a_year(book: ScheduleBook, ledger: Ledger) -> None:
    run = a_run()
    book.claim(run, settled_ms=settled(book), lease_ms=LEASE_MS)
    file = Arrived("/in/a", 1, "1", "c")
    book.keep(run, lease_ms=LEASE_MS, files=remember([file], run.id, 0, loaded=True))
    names = ledger.caller.command("KEYS", "ringhaul:schedule:*")
    assert {name.decode().rpartition(":")[2] for name in names} == {
        *("state", "runs", "records", "files")
    }
    for name in names:
        ttl_s = ledger.caller.command("TTL", name.decode())
        assert 366 * 86_400 < ttl_s <= keys.SCHEDULE_TTL_S


def test_living_beats_are_listed(clocked: Ledger, clock: Clock) -> None:
    beats = Beats(clocked.caller)
    beats.heartbeat("h1:1", 1000)
    beats.heartbeat("h2:7", 5000)
    assert beats.alive() == ["h1:1", "h2:7"]
    clock.advance(1000)
    assert beats.alive() == ["h2:7"]
    beats.leave("h2:7")
    assert beats.alive() == []


def test_beats_report_a_file_that_they_cannot_read(clocked: Ledger, clock: Clock) -> None:
    beats = Beats(clocked.caller)
    beats.heartbeat("h1:1", 5000, "schedule.toml: line 3")
    beats.heartbeat("h2:7", 9000)
    assert beats.problems() == {"h1:1": "schedule.toml: line 3", "h2:7": ""}
    beats.heartbeat("h1:1", 5000)
    beats.heartbeat("h2:7", 9000, "gone")
    assert beats.problems() == {"h1:1": "", "h2:7": "gone"}
    clock.advance(5000)
    assert beats.problems() == {"h2:7": "gone"}
    beats.leave("h2:7")
    assert beats.problems() == {}
