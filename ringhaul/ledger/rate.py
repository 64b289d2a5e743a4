"""One rate limit for a job, however many hosts work on it: a token bucket in Redis."""

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller


def take(caller: Caller, job: str, rows: int, rows_per_s: int, burst_rows: int) -> int:
    """Pay for `rows`; returns the ms to wait before sending them, 0 if there is no need to.

    The bucket fills at `rows_per_s` up to `burst_rows`. It may go into debt: a block larger than
    the burst is let through after a longer wait, and later takers wait behind it.

    Raises:
      ValueError: a rate or burst that is not positive, or negative rows.
    """
    if rows < 0 or rows_per_s <= 0 or burst_rows <= 0:
        raise ValueError(f"{rows=}, {rows_per_s=}, {burst_rows=}")
    key = keys.job_key(job, "rate")
    wait_ms: int = caller.script("bucket", key, rows, rows_per_s, burst_rows, keys.RATE_TTL_S)
    return wait_ms
