"""Live pages: a topic looks again and again, and every open page of it gets what changed.

However many pages show a topic, it looks once. Without pages it does not look at all, and nothing
is kept of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from ringhaul.errors import LedgerUnavailable, RinghaulError
from ringhaul.ledger.connection import LedgerRefused

logger = logging.getLogger(__name__)

#: Pause between two looks; longer if a look takes long, so that looks take a tenth of the time.
PAUSE_S = 2.0
_LOOK_SHARE = 10
#: Pause between two looks at what hardly changes any more, such as a job that has ended.
QUIET_PAUSE_S = 5.0
#: A silent stream says this often that it is alive, so that both ends notice a dead connection.
BEAT_S = 15.0
#: Open pages; one more is refused.
PAGES_MAX = 500


class TooManyPages(RinghaulError):
    """More than `PAGES_MAX` pages are open."""


@dataclass(frozen=True, kw_only=True)
class View:
    """What a topic shows."""

    title: str
    html: str
    quiet: bool = False  #: It hardly changes any more.


@dataclass(frozen=True, kw_only=True)
class News:
    """What an open page has to know."""

    kind: str  #: `view`; `away`: Redis does not answer; `gone`: there is nothing to show any more.
    text: str = ""
    view: View | None = None


class Live:
    """The topics that are open."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._pages = 0

    async def news(
        self, name: str, look: Callable[[], Awaitable[View]]
    ) -> AsyncGenerator[News | None]:
        """Yield what changes in a topic until it is gone or the caller stops; None as a sign of
        life. `look`: reads the topic; all callers of a name give an equivalent function.

        Raises TooManyPages.
        """
        if self._pages >= PAGES_MAX:
            raise TooManyPages(f"{PAGES_MAX} pages are open: close some, and load this one again")
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic(look)
        self._pages += 1
        topic.pages += 1
        try:
            seen = 0
            while True:
                number, news = await topic.newer_than(seen)
                if number > seen:
                    seen = number
                    yield news
                else:
                    yield None
                if news is not None and news.kind == "gone":
                    return
        finally:
            self._pages -= 1
            topic.pages -= 1
            if not topic.pages:
                topic.stop()
                if self._topics.get(name) is topic:
                    del self._topics[name]


class _Topic:
    """Looks as long as pages are open."""

    def __init__(self, look: Callable[[], Awaitable[View]]) -> None:
        self._look = look
        self.pages = 0
        self._number = 0
        self._news: News | None = None
        self._changed = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        self._task.cancel()

    async def newer_than(self, seen: int) -> tuple[int, News | None]:
        """Wait until the news are newer, at most `BEAT_S`; return their number and the news."""
        if self._number <= seen:
            changed = self._changed
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), BEAT_S)
        return self._number, self._news

    async def _run(self) -> None:
        while True:
            began_s = time.monotonic()
            news = await self._next()
            took_s = time.monotonic() - began_s
            if news != self._news:
                self._news = news
                self._number += 1
                self._changed.set()
                self._changed = asyncio.Event()
            if news.kind == "gone":
                return
            await asyncio.sleep(_pause_s(news, took_s))

    async def _next(self) -> News:
        try:
            return News(kind="view", view=await self._look())
        except (LedgerUnavailable, LedgerRefused) as error:
            return News(kind="away", text=str(error))
        except RinghaulError as error:
            return News(kind="gone", text=str(error))
        except Exception:
            logger.exception("a page cannot be shown")
            return News(kind="away", text="An internal error; the log of Flower has more.")


def _pause_s(news: News, took_s: float) -> float:
    """Return how long to wait for the next look. `took_s`: how long the last one took."""
    if news.view is None:  # Redis is away: that took long, but cost nothing
        return PAUSE_S
    return max(QUIET_PAUSE_S if news.view.quiet else PAUSE_S, took_s * _LOOK_SHARE)
