"""Check inputs and outputs: here, and from the hosts of all workers."""

from __future__ import annotations

from collections.abc import Sequence

from config.celery_config import QUEUE_LOAD
from producer.doctor.finding import FILES, Finding
from producer.services.preflight import SHARE_ADVICE, Visibility, try_output
from producer.text import bytes_text, count_text
from ringhaul.errors import RinghaulError
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url
from ringhaul.storage.folders import try_writing

_SHOWN = 3


def check_files(inputs: Sequence[str], output: str, ledger: Ledger | None) -> list[Finding]:
    """Return the findings. `ledger`: None if there is no broker, or it cannot be used.

    Nothing is left behind: a small file in the output is removed again.
    """
    files, found = _check_inputs(inputs)
    writable = True
    if output:
        finding, writable = _check_output(output)
        found.append(finding)
    output = output if writable else ""
    if ledger is None or not (files or output):
        return found
    return [*found, *_check_hosts(files, output, ledger)]


def _check_inputs(inputs: Sequence[str]) -> tuple[list[SourceFile], list[Finding]]:
    if not inputs:
        return [], []
    try:
        files = find_sources(inputs)
    except RinghaulError as error:
        return [], [FILES.fault("inputs", str(error))]
    size = bytes_text(sum(file.size_bytes for file in files))
    return files, [FILES.ok("inputs", f"{count_text(len(files), 'file')}, {size}")]


def _check_output(output: str) -> tuple[Finding, bool]:
    """Return the finding, and whether this host can write there."""
    try:
        if is_url(output):
            try_writing(output)
        else:
            try_output(output)
    except RinghaulError as error:
        return FILES.fault("output", str(error)), False
    return FILES.ok("output", f"{output} can be written"), True


def _check_hosts(files: Sequence[SourceFile], output: str, ledger: Ledger) -> list[Finding]:
    what = " and ".join(["the inputs"] * bool(files) + ["the output"] * bool(output))
    with Visibility(ledger, only_look=True) as visibility:
        visibility.start(files, output)
        alive = Workers(ledger.caller).alive()
        workers = [worker for worker in alive if QUEUE_LOAD in worker.queues]
        views = visibility.views(workers)
    found = []
    wrong = {view.host: view.wrong for view in views if view.wrong}
    for host, pairs in wrong.items():
        some = "; ".join(f"{name}: {why}" for name, why in pairs[:_SHOWN])
        more = f"; and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        found.append(FILES.fault("hosts", f"{host} does not see {some}{more}", SHARE_ADVICE))
    for doubt in dict.fromkeys(view.doubt for view in views if view.doubt):
        found.append(FILES.warning("hosts", doubt, "until then, jobs may fail on that host"))
    if not views:
        found.append(FILES.unchecked("hosts", "no worker is up"))
    elif not found:
        found.append(FILES.ok("hosts", f"every worker's host sees {what}"))
    return found
