"""Events of a worker while its broker is away."""

from __future__ import annotations

from typing import Any

from celery.worker.heartbeat import Heart

from tasks.application import UnitCelery
from tasks.events import UnitDispatcher


class _Away:
    """A producer whose broker is away."""

    def __init__(self) -> None:
        self.retries: list[object] = []

    def publish(self, *_: Any, retry: object, **__: Any) -> None:
        self.retries.append(retry)
        raise OSError("connection refused")


class _Timer:
    """Stores the callbacks instead of calling them."""

    def call_repeatedly(self, _interval: float, function: Any, args: tuple[Any, ...]) -> None:
        self.beat = lambda: function(*args)


def test_a_heartbeat_is_sent_once_and_kept_when_the_broker_is_away() -> None:
    app = UnitCelery("test", set_as_current=False)
    dispatcher = app.events.Dispatcher(enabled=False)
    assert isinstance(dispatcher, UnitDispatcher)
    dispatcher.enabled, dispatcher.producer = True, (away := _Away())
    Heart(timer := _Timer(), dispatcher).start()
    timer.beat()
    assert away.retries == [False, False]
    kept = [event["type"] for event, _ in dispatcher._outbound_buffer]
    assert kept == ["worker-online", "worker-heartbeat"]
