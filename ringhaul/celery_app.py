"""Celery's application, for Celery's own commands: `celery -A ringhaul.celery_app inspect active`.

`celery -A tasks` works as well, but only in a checkout, and only if no other `tasks` is first.
"""

from ringhaul.own_packages import find_own_packages

find_own_packages()

from tasks.application import app  # noqa: E402 - only now it is ours

__all__ = ["app"]
