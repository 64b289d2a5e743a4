"""Every key in Redis, its type and its life. Nothing else in ringhaul names a ledger key.

The keys of one job share the hash tag `{job}`, so that a Redis Cluster keeps them on one node and
a script may touch them all:

    ringhaul:{job}:meta          hash    state, epoch, counts, limits, times, the producer's labels
    ringhaul:{job}:spec          string  what the job is, JSON, opaque here
    ringhaul:{job}:units:<b>     hash    unit -> its spec; b = unit // 256
    ringhaul:{job}:results:<b>   hash    unit -> result of the attempt that counted
    ringhaul:{job}:extras        hash    unit -> what it leaves beside numbers: rejected records,
                                         parts written, a partial table; opaque here
    ringhaul:{job}:cursors       hash    unit -> where its attempts got to for good; opaque here
    ringhaul:{job}:done          bitmap  bit n: unit n is committed
    ringhaul:{job}:tot           hash    field -> sum over the committed units
    ringhaul:{job}:lat           hash    latency bucket -> requests, over the committed units
    ringhaul:{job}:issued        zset    unit -> ms at which it was handed out for publishing
    ringhaul:{job}:due           zset    unit -> ms before which it must not be issued again
    ringhaul:{job}:lease         zset    unit -> ms at which its lease ends
    ringhaul:{job}:owner         hash    unit -> token of the attempt that holds the lease
    ringhaul:{job}:live          hash    unit -> "rows,rejected,bytes" so far, not in `tot`
    ringhaul:{job}:starts        hash    unit -> attempts begun and not given back
    ringhaul:{job}:fails         hash    unit -> times given back with blame
    ringhaul:{job}:suspects      zset    unit -> not before; units that lost two workers
    ringhaul:{job}:bad           hash    unit -> why it was given up
    ringhaul:{job}:rate          hash    token bucket of the job's rate limit

A running job's keys have no TTL; from the job's end they live `JOB_TTL_S`, and a resume removes
the TTL again. `rate` lives `RATE_TTL_S` after its last use. Shared by all jobs:

    ringhaul:jobs                zset    job -> ms of creation; a job whose keys are gone is dropped
                                         from it when it is next listed
    ringhaul:running             set     jobs that the sweep looks at
    ringhaul:workers             zset    "host:pid:slots" -> ms until which it counts as alive
    ringhaul:openings:<name>     zset    token -> ms at which a session opening is forgotten

Units are packed 256 to a hash because Redis keeps a hash of up to 512 short fields (values of up to
64 bytes) as one flat listpack: about 40 bytes a unit instead of about 120 as keys of their own.
"""

import re

from ringhaul.errors import UsageError

UNITS_PER_BUCKET = 256
JOB_TTL_S = 7 * 24 * 3600
RATE_TTL_S = 3600

JOBS = "ringhaul:jobs"
RUNNING = "ringhaul:running"
WORKERS = "ringhaul:workers"

#: Keys of a job that exist once, by the last part of their name.
SINGLE = (
    "meta",
    "spec",
    "extras",
    "cursors",
    "done",
    "tot",
    "lat",
    "issued",
    "due",
    "lease",
    "owner",
    "live",
    "starts",
    "fails",
    "suspects",
    "bad",
)
#: Keys of a job that exist once for every `UNITS_PER_BUCKET` units.
BUCKETED = ("units", "results")

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def job_key(job: str, part: str) -> str:
    """The key of `job` that holds `part`.

    Raises:
      UsageError: the job id has characters that cannot be part of a key.
    """
    if not _JOB_ID.fullmatch(job):
        raise UsageError(f'"{job}" is not a job id: job ids look like ld-7f3a9c')
    return f"ringhaul:{{{job}}}:{part}"


def bucket_key(job: str, part: str, unit: int) -> str:
    """The key of `job` that holds `part` of `unit`."""
    return job_key(job, f"{part}:{unit // UNITS_PER_BUCKET}")


def openings_key(name: str) -> str:
    """The key that counts who is opening a session to the cluster `name`."""
    return f"ringhaul:openings:{name}"
