"""Live topics: one look for all pages, news only of changes, nothing kept without pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import pytest

from producer.web import live_pages
from producer.web.live_pages import Live, News, TooManyPages, View
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.reading import JobMissing


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "PAUSE_S", 0.01)
    monkeypatch.setattr(live_pages, "QUIET_PAUSE_S", 0.05)
    monkeypatch.setattr(live_pages, "BEAT_S", 0.5)


class Looks:
    """What a topic finds, one after the other; the last one again and again."""

    def __init__(self, *found: str | Exception) -> None:
        self.found, self.count = list(found), 0

    async def __call__(self) -> View:
        # The pages have their turn before anything changes again: on a busy machine, the time for
        # the next look may come before they got the news of the last one.
        for _ in range(20):
            await asyncio.sleep(0)
        one = self.found[min(self.count, len(self.found) - 1)]
        self.count += 1
        if isinstance(one, Exception):
            raise one
        return View(title="", html=one)


async def first(hub: Live, count: int, look: Callable[[], Awaitable[View]]) -> list[News | None]:
    news = []
    async with aclosing(hub.news("job", look)) as stream:
        async for one in stream:
            news.append(one)
            if len(news) == count:
                break
    return news


def shown(news: list[News | None]) -> list[str | None]:
    return [None if one is None else one.view.html if one.view else one.kind for one in news]


def test_a_page_gets_what_changed_and_signs_of_life() -> None:
    looks = Looks("a", "a", "b")
    assert shown(asyncio.run(first(Live(), 3, looks))) == ["a", "b", None]


def test_redis_may_be_away_for_a_while() -> None:
    looks = Looks("a", LedgerUnavailable("Redis at x did not serve"), "a")
    news = asyncio.run(first(Live(), 3, looks))
    assert shown(news) == ["a", "away", "a"]
    assert news[1] is not None and news[1].text == "Redis at x did not serve"


def test_an_error_of_ours_is_not_shown_and_does_not_end_the_stream() -> None:
    news = asyncio.run(first(Live(), 2, Looks(RuntimeError("secret"), "a")))
    assert shown(news) == ["away", "a"]
    assert news[0] is not None and "secret" not in news[0].text


def test_a_forgotten_job_ends_the_stream() -> None:
    async def run() -> list[News | None]:
        hub = Live()
        return [one async for one in hub.news("job", Looks("a", JobMissing("ld-1")))]

    assert shown(asyncio.run(run())) == ["a", "gone"]


def test_pages_of_one_topic_share_its_looks() -> None:
    async def run() -> int:
        hub, looks = Live(), Looks("a", "b", "c", "d")
        await asyncio.gather(*(first(hub, 4, looks) for _ in range(50)))
        return looks.count

    assert asyncio.run(run()) <= 6


def test_without_pages_nothing_is_looked_at_or_kept() -> None:
    async def run() -> None:
        hub, looks = Live(), Looks("a", "b", "c")
        await first(hub, 2, looks)
        assert hub._topics == {} and hub._pages == 0
        count = looks.count
        await asyncio.sleep(0.1)
        assert looks.count == count

    asyncio.run(run())


def test_a_closed_page_leaves_the_others_alone() -> None:
    async def run() -> list[str | None]:
        hub, looks = Live(), Looks("a", "b", "c", "d", "e")
        one = asyncio.create_task(first(hub, 100, looks))
        other = asyncio.create_task(first(hub, 5, looks))
        await asyncio.sleep(0.02)
        one.cancel()
        return shown(await other)

    assert asyncio.run(run())[-1] == "e"


def test_the_number_of_pages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "PAGES_MAX", 3)

    async def run() -> None:
        hub, looks = Live(), Looks("a")
        tasks = [asyncio.create_task(first(hub, 100, looks)) for _ in range(3)]
        await asyncio.sleep(0.02)
        with pytest.raises(TooManyPages):
            await first(hub, 1, looks)
        tasks[0].cancel()
        await asyncio.sleep(0.02)
        assert shown(await first(hub, 1, looks)) == ["a"]
        for task in tasks:
            task.cancel()

    asyncio.run(run())
