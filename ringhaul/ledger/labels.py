"""Labels that a job has in the ledger besides its spec."""

from __future__ import annotations

#: Label: the queues that the job's workers consume, best first, separated by commas: the queues of
#: the data centres that hold its rows, then the queue of all workers. A job with its own workers
#: has its own queue, so that it never runs on workers of another cluster.
QUEUE_LABEL = "queue"


#: Label: what the job does (load, unload, ...).
KIND_LABEL = "kind"

#: Label of a load that publishes something at its end: SSTables.
PUBLISHES_LABEL = "publishes"

#: Label: the context of the job's span, if it is traced; see tasks/tracing.py. Messages carry it.
TRACE_LABEL = "traceparent"
