"""The result of a count or a query, folded from what its units found."""

from __future__ import annotations

from producer.report.result_table import print_result
from producer.request.next_command import next_command
from ringhaul.errors import OutputUnusable
from ringhaul.ledger.keys import JOB_TTL_S
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.output.job import ResultOutput
from ringhaul.scan.fold import fold_job, result_types
from ringhaul.scan.job import ReadJob
from ringhaul.scan.spill import forget_old


def print_read_result(ledger: Ledger, job_id: str, job: ReadJob, output: ResultOutput) -> None:
    """Print the result of a complete count or query, and remove what workers spilled for old ones.

    Raises `OutputUnusable` if it cannot be written.
    """
    table = fold_job(ledger, job_id, job)
    try:
        print_result(table, result_types(job), output.form, output.path or None)
    except OutputUnusable as error:
        resume = next_command(f"resume {job_id}")
        raise OutputUnusable(
            f"{error}; `{resume}` prints it again, with `-o FILE` elsewhere"
        ) from error
    # This job's spill files stay as long as the ledger knows it; files of older jobs go.
    forget_old(job.spill, JOB_TTL_S, lambda name: _is_known(ledger, name))


def _is_known(ledger: Ledger, job_id: str) -> bool:
    try:
        ledger.status(job_id)
    except JobMissing:
        return False
    return True
