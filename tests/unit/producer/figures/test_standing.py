"""A running job that gets no work done looks so, and says since when and what to do."""

from __future__ import annotations

from typing import Any

from config.celery_config import QUEUE_LOAD
from producer.figures.speed import STILL_S, recent_snapshot
from producer.figures.standing import (
    OWN_START_S,
    WAITS_S,
    Condition,
    Standing,
    no_worker_text,
    standing_of,
)
from producer.report.progress import bar_lines
from ringhaul.ledger.fleet import Fleet, OpenJob
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.labels import QUEUE_LABEL
from ringhaul.ledger.pace import Limits
from ringhaul.ledger.workers import Worker
from tasks.private_queues import private_queue
from tests.cases import each
from tests.unit.producer.statuses import STARTED_MS, status

NOW_MS = STARTED_MS + 600_000
UP = Worker("h1", 1, 4, (QUEUE_LOAD,))
DEAD = Fleet((), {}, NOW_MS, NOW_MS - 150_000)


def job(**changes: Any) -> JobStatus:
    """A job that has run for ten minutes; its units have been published for 40 s."""
    usual: dict[str, Any] = {
        "units": 10, "pending": 6, "done": 4, "issued": 4, "leased": 0,
        "oldest_issued_ms": NOW_MS - 40_000, "progress_ms": NOW_MS - 45_000,
    }  # fmt: skip
    return status(600, **(usual | changes))


def open_job(queue: str = QUEUE_LOAD) -> OpenJob:
    return OpenJob(queue, "normal", 5, Limits())


def fleet(*others: str, workers: tuple[Worker, ...] = (UP,)) -> Fleet:
    return Fleet(workers, {job().job: open_job(), **{name: open_job() for name in others}}, NOW_MS)


def test_without_a_live_worker_it_is_stalled_and_says_since_when() -> None:
    found = standing_of(job(leased=3), DEAD)
    text = "no worker has been alive for 2:30: start one with `ringhaul worker`"
    assert found == Standing(condition=Condition.STALLED, seconds=150.0, text=text)
    assert no_worker_text(DEAD) == text
    assert no_worker_text(DEAD._replace(last_alive_ms=None)) == (
        "no worker is alive: start one with `ringhaul worker`"
    )
    assert no_worker_text(fleet()) == ""


def test_workers_of_other_queues_do_not_count() -> None:
    elsewhere = UP._replace(queues=("ringhaul.load@dc:2",))
    first = job(labels={QUEUE_LABEL: "ringhaul.load@dc:1"})
    found = standing_of(first, fleet(workers=(elsewhere,)))
    assert found is not None
    assert found.condition is Condition.STALLED
    assert found.text.startswith("no live worker takes units from ringhaul.load@dc:1")
    both = job(labels={QUEUE_LABEL: "ringhaul.load@dc:1,ringhaul.load@dc:2"})
    assert standing_of(both, fleet(workers=(elsewhere,))) is None


def test_a_job_whose_command_was_killed_says_how_to_continue() -> None:
    own = {QUEUE_LABEL: private_queue("ld-7f3a9c")}
    found = standing_of(job(labels=own, progress_ms=NOW_MS - 100_000), fleet("ld-other"))
    assert found is not None
    assert (found.condition, found.seconds) == (Condition.STALLED, 100.0)
    assert found.text == (
        "the command that worked on it is gone: continue it with `ringhaul resume ld-7f3a9c`"
    )
    # Its workers may just be starting
    fresh = job(labels=own, progress_ms=NOW_MS - int(OWN_START_S * 1000) + 1)
    assert standing_of(fresh, fleet()) is None


def test_a_job_waits_for_a_slot_behind_others() -> None:
    found = standing_of(job(), fleet("ld-b", "ld-a"))
    assert found == Standing(
        condition=Condition.WAITING,
        seconds=40.0,
        text="waits for a slot for 0:40, behind ld-a, ld-b",
    )
    many = standing_of(job(), fleet("ld-b", "ld-a", "ld-c", "ld-d"))
    assert many is not None and many.text.endswith("behind ld-a, ld-b and 2 other jobs")


@each(
    "changes",
    [
        {"leased": 1},
        {"oldest_issued_ms": None},
        {"oldest_issued_ms": NOW_MS - int(WAITS_S * 1000) + 1},
        {"paused_ms": NOW_MS - 9000},
        {"pending": 0},
        {"damage": ("its spec is lost",)},
    ],
    ids=str,
)
def test_a_job_that_gets_work_done_waits_for_nothing(changes: dict[str, Any]) -> None:
    assert standing_of(job(**changes), fleet("ld-b")) is None


def test_other_jobs_of_other_queues_hold_no_slot_of_it() -> None:
    others = fleet()
    others.jobs["ld-b"] = open_job(private_queue("ld-b"))
    assert standing_of(job(), others) is None


def test_every_view_says_it_and_gives_no_estimate() -> None:
    moving = job(leased=2, progress_ms=NOW_MS)
    assert recent_snapshot(moving, []).eta_s is not None
    stalled = recent_snapshot(moving, [], fleet=DEAD)
    assert (stalled.state, stalled.shown_state, stalled.eta_s) == ("RUNNING", "STALLED", None)
    first, *_, last = bar_lines(stalled)
    assert "STALLED" in first and "ETA" not in first
    assert last == f" {stalled.standing}"
    waiting = recent_snapshot(job(), [], fleet=fleet("ld-b"))
    assert (waiting.shown_state, waiting.condition_s) == ("WAITING", 40.0)
    # Without progress there is no estimate, whatever it waits for
    still = job(leased=2, progress_ms=NOW_MS - int(STILL_S * 1000))
    assert recent_snapshot(still, [], fleet=fleet()).eta_s is None
