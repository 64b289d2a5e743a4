"""Exit codes of a worker: Celery's in ours."""

from __future__ import annotations

from ringhaul.errors import EXIT_COMPLETE, EXIT_CRASH, EXIT_FATAL


def exit_code(celery_code: object) -> int:
    """Return the exit code of a worker with this exit code in Celery, whose 1 is a failure that it
    did not expect; ours is about rejects."""
    if not celery_code:
        return EXIT_COMPLETE
    return EXIT_FATAL if celery_code == EXIT_FATAL else EXIT_CRASH
