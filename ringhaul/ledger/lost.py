"""Advice about jobs that the ledger lost, which each kind of job gives for itself. Pure."""

from __future__ import annotations

#: Advice for a job that wrote nothing.
RUN_AGAIN = "Nothing was written to a table: run the command again."


def lost_files_advice(url: str) -> str:
    """Return what a job that writes files, and no table, may have left. `url`: where; empty:
    nowhere."""
    if not url:
        return RUN_AGAIN
    return (
        f"Nothing was written to a table. Files of the job may be in {url}, which has no "
        "manifest: remove them, and run the command again."
    )
