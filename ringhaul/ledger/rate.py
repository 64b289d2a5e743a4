"""Rate limits of a job across all hosts: token buckets in Redis."""

from collections.abc import Sequence
from typing import NamedTuple

from ringhaul.ledger import keys
from ringhaul.ledger.connection import Caller


class Draw(NamedTuple):
    """An amount to take from a bucket, which fills at `per_s` up to `burst`."""

    bucket: str
    amount: int
    per_s: int
    burst: int


def take(caller: Caller, job: str, draws: Sequence[Draw]) -> list[int]:
    """Pay for all of `draws`; return the ms to wait for each before continuing, 0 for none.

    A bucket may go into debt: an amount larger than the burst passes after a longer wait, and later
    takers wait behind it.

    Raises:
      ValueError: a rate or burst that is not positive, or a negative amount.
    """
    for draw in draws:
        if draw.amount < 0 or draw.per_s <= 0 or draw.burst <= 0:
            raise ValueError(f"cannot be taken from a bucket: {draw}")
    words = [word for draw in draws for word in draw]
    waits: list[int] = caller.script("bucket", keys.job_key(job, "rate"), keys.RATE_TTL_S, *words)
    return waits
