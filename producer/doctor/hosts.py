"""Get a report from every worker about itself and its host, through the workers' parents.

They answer while all their processes are busy. See `tasks.parent.preflight` and `tasks.host`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from producer.services.preflight import BEGIN_S
from ringhaul.errors import LedgerUnavailable
from ringhaul.ledger.connection import Caller
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.workers import Worker, Workers
from ringhaul.storage.preflight import request
from tasks.host.report import HostReport, read_report

#: A report ends by itself after 7 s (`tasks.host.__main__`), once Python has started.
END_S = 10.0
_PAUSE_S = 0.05


class WorkerReport(NamedTuple):
    """A live worker and what it reports."""

    worker: Worker
    report: HostReport | None
    trouble: str = ""  #: why there is no report; empty: there is one


def read_reports(caller: Caller) -> list[WorkerReport]:
    """Ask all live workers, and wait at most `END_S`. Raises as `Caller.script` does."""
    alive = Workers(caller).alive()
    if not alive:
        return []
    requests = HostRequests(caller)
    queues = sorted({queue for worker in alive for queue in worker.queues})
    started_at = time.monotonic()
    name = requests.send({"queues": queues, "what": request([]), "host": True})
    try:
        answers = _wait(requests, name, alive, started_at)
    finally:
        with suppress(LedgerUnavailable):
            requests.forget(name)
    return [_read(worker, answers.get(worker, {})) for worker in alive]


def _wait(
    requests: HostRequests, name: str, alive: Sequence[Worker], started_at: float
) -> Mapping[Worker, Mapping[str, Any]]:
    """Return the answers once all have arrived, or no more can be expected."""
    while True:
        passed_s = time.monotonic() - started_at
        answers = requests.answers(name)
        open_ = [worker for worker in alive if not answers.get(worker, {}).keys() - {"begun"}]
        started = [worker for worker in open_ if worker in answers]
        if not open_ or passed_s > END_S or (passed_s > BEGIN_S and not started):
            return answers
        time.sleep(_PAUSE_S)


def _read(worker: Worker, answer: Mapping[str, Any]) -> WorkerReport:
    if "host" in answer:
        report = read_report(answer["host"])
        return WorkerReport(worker, report, "" if report else "its report cannot be read")
    if "failed" in answer:
        return WorkerReport(worker, None, f"it could not look: {answer['failed']}")
    if "wrong" in answer:
        return WorkerReport(worker, None, "its version cannot report about its host")
    return WorkerReport(worker, None, "it does not answer")
