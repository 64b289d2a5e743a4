"""Translation of Celery's exit codes into a worker's."""

from __future__ import annotations

from ringhaul.errors import EXIT_COMPLETE, EXIT_CRASH, EXIT_FATAL


def exit_code(celery_code: object) -> int:
    """Return a worker's exit code for its exit code in Celery. Celery's 1 is an unexpected failure;
    ours is about rejects."""
    if not celery_code:
        return EXIT_COMPLETE
    return EXIT_FATAL if celery_code == EXIT_FATAL else EXIT_CRASH
