"""Labels that a job carries in the ledger beside its spec."""

from __future__ import annotations

#: Label of a job in the ledger: the queues that its workers consume, best first, parted by commas:
#: those of the data centres that hold its rows, and the one of all workers. A job with workers of
#: its own has a queue of its own, so that it never runs on workers of another cluster.
QUEUE_LABEL = "queue"


#: Label of a job in the ledger: what it does (load, unload, ...).
KIND_LABEL = "kind"
