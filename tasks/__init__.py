"""The Celery application: `celery -A tasks worker`. One module per task kind."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    """`tasks.app`, made when it is asked for: commands that only look do without Celery."""
    if name != "app":
        raise AttributeError(f"module 'tasks' has no attribute {name!r}")
    from tasks.application import app

    return app
