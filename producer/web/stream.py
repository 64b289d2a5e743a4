"""Base of the streams that keep open pages up to date: server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from tornado.iostream import StreamClosedError

from producer.web.live_pages import News, TooManyPages, View
from producer.web.page import Handler, Problem

#: Says that the stream is alive.
_BEAT = "event: beat\ndata: {}\n\n"


class Stream(Handler):
    """Base of a stream. A subclass's `get` calls `follow`."""

    _task: asyncio.Task[object] | None = None

    async def follow(self, topic: str, look: Callable[[], Awaitable[View]]) -> None:
        """Send what changes in a topic until the page is closed. See `Live.news`."""
        self._task = asyncio.current_task()
        self.set_header("Content-Type", "text/event-stream; charset=UTF-8")
        self.set_header("X-Accel-Buffering", "no")  # nginx must not hold events back
        try:
            async with aclosing(self.site.live.news(topic, look)) as all_news:
                async for news in all_news:
                    self.write(_BEAT if news is None else _event(news))
                    await self.flush()
        except TooManyPages as error:
            raise Problem(503, str(error)) from error
        except (StreamClosedError, asyncio.CancelledError):
            return

    def on_connection_close(self) -> None:
        """Stop: the page was closed."""
        if self._task is not None:
            self._task.cancel()


def _event(news: News) -> str:
    document = {"text": news.text}
    if news.view is not None:
        document |= {"title": news.view.title, "html": news.view.html}
    return f"event: {news.kind}\ndata: {json.dumps(document)}\n\n"
