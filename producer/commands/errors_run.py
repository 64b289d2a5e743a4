"""The work of `ringhaul errors`: rejected records on the screen, or in a file."""

from __future__ import annotations

from producer.figures.newest_job import newest_job
from producer.options.connection import LedgerPlace
from producer.report.reject_list import print_rejects, save_rejects
from producer.request.conflicts import refuse_together
from producer.request.values import given_options
from producer.services.ledger import reading_ledger


def run_errors(
    job: str | None, place: LedgerPlace, limit: int, export: str | None, *, as_json: bool
) -> int:
    """List the rejects of a job, or write their records to the file `export`; return the exit code.

    `job`: None for the newest job that can have rejects. `limit`: the most that are listed.
    """
    given = given_options()
    refuse_together(given)
    with reading_ledger(place) as ledger:
        if job is None:
            job = newest_job(
                ledger,
                wanted=lambda kind: kind.is_load or kind.runs_statements,
                none="no job of this broker has rejects: only loads, verify, lookup and exec do",
            )
        if export is not None:
            return save_rejects(ledger, job, export)
        return print_rejects(ledger, job, limit, limited="limit" in given, as_json=as_json)
