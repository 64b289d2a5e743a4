"""The Celery application: `celery -A tasks worker`. One module per task kind."""

from tasks.application import app

__all__ = ["app"]
