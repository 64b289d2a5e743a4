"""The Celery application: `celery -A tasks worker`. One module per task kind."""

from __future__ import annotations

from typing import Any

from ringhaul.own_packages import find_own_packages

# `celery -A tasks` starts here, and not with the command.
find_own_packages()


def __getattr__(name: str) -> Any:
    """Create `tasks.app` on first access: commands that only read the ledger do without Celery."""
    if name != "app":
        raise AttributeError(f"module 'tasks' has no attribute {name!r}")
    from tasks.application import app

    return app
