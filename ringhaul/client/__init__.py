"""A client for programs, notebooks and schedulers: it runs the `ringhaul` command for them.

    from ringhaul import client

    client.load(frame, "shop.orders").check()
    table = client.query("SELECT status, count(*) FROM shop.orders GROUP BY status")

These functions use the settings that a command would use here; `Client` takes others. Nothing of
the engine is imported, and pyarrow only when a table is given or wanted.
"""

from ringhaul.client.client import Client
from ringhaul.client.display import every
from ringhaul.client.errors import (
    BrokerUnavailable,
    ClientError,
    ClusterError,
    ClusterUnavailable,
    CommandCrashed,
    CommandFailed,
    CommandKilled,
    CommandMissing,
    CommandUnavailable,
    OutputError,
    OutputUnavailable,
    SourceError,
    SourceUnavailable,
    TimedOut,
    UsageError,
)
from ringhaul.client.job import Job
from ringhaul.client.job_result import (
    JobCancelled,
    JobError,
    JobFailed,
    JobResult,
    JobStillRunning,
    RejectedRecords,
    TooManyRejects,
)
from ringhaul.client.progress import Progress
from ringhaul.client.results import (
    Event,
    JobStatus,
    LoadResult,
    Plan,
    ReadResult,
    Reject,
    StatementResult,
    VerifyResult,
)

_here = Client()
load, verify, unload = _here.load, _here.verify, _here.unload
read, batches, query, peek = _here.read, _here.batches, _here.query, _here.peek
count, counts, lookup, exec = _here.count, _here.counts, _here.lookup, _here.exec
submit_load, submit_verify, submit_unload = (
    _here.submit_load,
    _here.submit_verify,
    _here.submit_unload,
)
plan_load, plan_unload = _here.plan_load, _here.plan_unload
jobs, job = _here.jobs, _here.job

__all__ = [
    "BrokerUnavailable",
    "Client",
    "ClientError",
    "ClusterError",
    "ClusterUnavailable",
    "CommandCrashed",
    "CommandFailed",
    "CommandKilled",
    "CommandMissing",
    "CommandUnavailable",
    "Event",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobResult",
    "JobStatus",
    "JobStillRunning",
    "LoadResult",
    "OutputError",
    "OutputUnavailable",
    "Plan",
    "Progress",
    "ReadResult",
    "Reject",
    "RejectedRecords",
    "SourceError",
    "SourceUnavailable",
    "StatementResult",
    "TimedOut",
    "TooManyRejects",
    "UsageError",
    "VerifyResult",
    "batches",
    "count",
    "counts",
    "every",
    "exec",
    "job",
    "jobs",
    "load",
    "lookup",
    "peek",
    "plan_load",
    "plan_unload",
    "query",
    "read",
    "submit_load",
    "submit_unload",
    "submit_verify",
    "unload",
    "verify",
]
