"""Looks of the pages into a real ledger: what is kept between them, and lists over many jobs."""

from __future__ import annotations

import asyncio
import threading

import pytest

from bench.made_jobs import make_load
from producer.web import job_index, ledger_looks
from producer.web.job_index import JobIndex
from producer.web.job_query import JobQuery
from producer.web.ledger_looks import Busy, JobLooks, Looks
from ringhaul.ledger import keys
from ringhaul.ledger.job_list import job_names, read_heads
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.ledger.sweep import sweep_running


@pytest.fixture(autouse=True)
def no_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look is a new one."""
    monkeypatch.setattr(ledger_looks, "FRESH_S", -1.0)
    monkeypatch.setattr(job_index, "_FRESH_S", -1.0)


def names(index: JobIndex, ledger: Ledger, **query: str) -> list[str]:
    return [one.status.job for one in index.page(ledger, JobQuery(**query)).jobs]


def forget(ledger: Ledger, job: str) -> None:
    """As if its keys had expired."""
    for key in ledger.caller.command("KEYS", f"ringhaul:{{{job}}}:*"):
        ledger.caller.command("DEL", key)


def test_what_is_kept_of_jobs_is_bounded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_looks, "JOBS_KEPT", 3)
    kept = JobLooks(show_data=False)
    for number in range(6):
        make_load(ledger, f"ld-{number}", 4)
        assert kept.look(ledger, f"ld-{number}").status.done == 4
    assert list(kept._kept) == ["ld-3", "ld-4", "ld-5"]
    # By their units, too; the last one stays
    monkeypatch.setattr(ledger_looks, "UNITS_KEPT", 7)
    kept.look(ledger, "ld-3")
    assert list(kept._kept) == ["ld-3"]
    with pytest.raises(JobMissing):
        kept.look(ledger, "ld-never")


def test_a_large_job_is_not_read_at_once_but_later(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_looks, "UNITS_AT_ONCE_MAX", 5)
    make_load(ledger, "ld-large", 6, rejects=2)
    kept = JobLooks(show_data=False)
    first = kept.look(ledger, "ld-large", at_once=True)
    assert (first.units_read, first.hosts, first.snapshot.rejected) == (False, (), 2)
    whole = kept.look(ledger, "ld-large")
    assert whole.units_read and sum(host.units for host in whole.hosts) == 6
    again = kept.look(ledger, "ld-large", at_once=True)
    assert again.units_read and again.hosts == whole.hosts


def test_figures_of_an_ended_job_are_computed_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_load(ledger, "ld-1", 4, done=2)
    ledger.cancel("ld-1")
    kept = JobLooks(show_data=False)
    figures = kept.look(ledger, "ld-1").end.figures
    counts = {"results": 0}
    results = ledger.results

    def counted(*given: object, **named: object) -> object:
        counts["results"] += 1
        return results(*given, **named)

    monkeypatch.setattr(ledger, "results", counted)
    assert kept.look(ledger, "ld-1").end.figures == figures
    assert kept.closing(ledger, "ld-1").data["units_done"] == 2
    assert counts["results"] == 0
    # until it is resumed
    ledger.resume("ld-1")
    assert kept.look(ledger, "ld-1").snapshot.state == "RUNNING"
    assert kept.closing(ledger, "ld-1").data["state"] == "RUNNING"


def test_too_many_waiting_looks_are_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_looks, "WAITING_MAX", 3)
    go_on = threading.Event()

    async def run() -> None:
        site = Looks(lambda: ledger)
        waiting = [asyncio.create_task(site.run(lambda _: go_on.wait(20))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await site.run(lambda _: True)
        go_on.set()
        assert await asyncio.gather(*waiting) == [True] * 3
        assert await site.run(lambda found: found is ledger)

    asyncio.run(run())


def test_a_list_follows_jobs_that_end_return_and_expire(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = JobIndex()
    make_load(ledger, "ld-a", 2)
    make_load(ledger, "ld-b", 2, done=1)
    assert names(index, ledger) == ["ld-b", "ld-a"]  # what runs is first
    ledger.cancel("ld-b")
    sweep_running(ledger, lambda job: 0, lambda *_: None)  # no longer among those that run
    assert names(index, ledger, state="CANCELLED") == ["ld-b"]
    ledger.resume("ld-b")
    assert names(index, ledger, state="open") == ["ld-b"]
    # Its keys expire; the list of names is left as it is, since pages may have no right to write
    forget(ledger, "ld-a")
    monkeypatch.setattr(job_index, "_ALL_AGAIN_S", -1.0)  # after a minute
    assert names(index, ledger) == ["ld-b"]
    monkeypatch.undo()
    monkeypatch.setattr(job_index, "_FRESH_S", -1.0)
    assert names(index, ledger) == ["ld-b"]  # it is not requested again and again
    assert "ld-a" in job_names(ledger.caller, 10).created
    # Another job of that name
    make_load(ledger, "ld-a", 3)
    assert [one.status.units for one in index.page(ledger, JobQuery(text="ld-a")).jobs] == [3]
    # Of more jobs, the newest are listed
    monkeypatch.setattr(job_index, "JOBS_MAX", 1)
    assert len(names(JobIndex(), ledger)) == 1


def test_an_ended_job_of_a_list_is_kept_for_a_while(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = JobIndex()
    make_load(ledger, "ld-a", 2)
    sweep_running(ledger, lambda job: 0, lambda *_: None)
    first = index.page(ledger, JobQuery()).jobs
    assert index.page(ledger, JobQuery()).jobs[0] is first[0]
    monkeypatch.setattr(job_index, "_KEPT_S", -1.0)
    ledger.caller.command("DEL", keys.job_key("ld-a", "done"))
    assert index.page(ledger, JobQuery()).jobs[0].status.damage
    monkeypatch.setattr(job_index, "_LISTED_MAX", 2)
    for number in range(5):
        make_load(ledger, f"ld-{number}", 1)
    index.page(ledger, JobQuery())
    assert len(index._listed) == 2


def test_a_head_of_any_job_can_be_read(ledger: Ledger) -> None:
    make_load(ledger, "ld-whole", 1)
    make_load(ledger, "ld-paused", 2, done=1)
    ledger.pause("ld-paused")
    ledger.caller.command("SET", keys.job_key("ld-text", "meta"), "x")
    ledger.caller.command("HSET", keys.job_key("ld-strange", "meta"), "state", "RUNNING")
    jobs = ["ld-whole", "ld-paused", "ld-text", "ld-strange", "ld-none"]
    heads = {head.job: head for head in read_heads(ledger.caller, jobs)}
    assert set(heads) == {"ld-whole", "ld-paused", "ld-text", "ld-strange"}
    assert heads["ld-whole"].state == "COMPLETE" and heads["ld-whole"].table == "shop.orders"
    assert heads["ld-whole"].finished_ms == ledger.status("ld-whole").finished_ms
    assert (heads["ld-paused"].state, heads["ld-paused"].ended) == ("PAUSED", False)
    assert heads["ld-text"].state == heads["ld-strange"].state == ""
