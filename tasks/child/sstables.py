"""Run one attempt of a load's unit whose rows become SSTables.

Separate from `load`, since its kernels cost the worker of another load time.
"""

from __future__ import annotations

from dataclasses import replace

from config.secrets import mask
from ringhaul.destination.delivered import Delivered
from ringhaul.destination.files import Files
from ringhaul.ledger.history import EventKind
from ringhaul.load.to_sstables import run_unit_streamed, run_unit_to_sstables
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import SENT_TO, TO_THE_END, LoadUnit
from tasks.child.records import done_of, unit_hooks, unit_result
from tasks.child.stream_target import stream_target
from tasks.child.unit import Attempt, Done
from tasks.storage_settings import spill_bounds
from tasks.transforms import transforms_of

#: Text is hardly ever compressed to less than a tenth.
COMPRESSION_MAX = 10


def run_sstables(attempt: Attempt, job: LoadJob) -> Done:
    """Run one attempt of a unit whose SSTables are written to a folder, or streamed to nodes."""
    if isinstance(job.destination, Files):
        return _run_to_files(attempt, job, job.destination)
    assert isinstance(job.destination, Delivered)
    return _run_delivered(attempt, job, job.destination)


def _run_to_files(attempt: Attempt, job: LoadJob, output: Files) -> Done:
    """Run one attempt that writes files. The writer removes them if the commit does not count."""
    child, unit = attempt.child, LoadUnit.unpack(attempt.spec)
    bounds = spill_bounds(child.settings, job)
    bounds.check_disk(_input_bytes(job, unit))
    done = run_unit_to_sstables(
        unit,
        attempt.unit,
        job,
        output.attempt_folder(attempt.job_id, attempt.unit, attempt.number, child.name),
        unit_hooks(attempt),
        bounds,
        transforms_of(child.settings, job.transforms),
    )
    result = unit_result(child, unit, attempt.number, done.outcome)
    result = result._replace(sstables=done.writer.sstables)
    return replace(done_of(job, result, done.outcome), undo=done.writer.withdraw)


def _run_delivered(attempt: Attempt, job: LoadJob, destination: Delivered) -> Done:
    """Run one attempt that streams SSTables. If its commit does not count, another attempt has sent
    the same rows."""
    child, unit = attempt.child, LoadUnit.unpack(attempt.spec)
    bounds = spill_bounds(child.settings, job)
    bounds.check_disk(_input_bytes(job, unit))
    done = run_unit_streamed(
        unit,
        job,
        stream_target(child, job, destination, attempt.job_id),
        unit_hooks(attempt),
        bounds,
        transforms_of(child.settings, job.transforms),
    )
    writer = done.writer
    result = unit_result(child, unit, attempt.number, done.outcome)
    result = result._replace(sstables=writer.sstables, missed=len(writer.missed))
    notes = [
        (EventKind.NODE_MISSED, mask(str(error))) for _, error in sorted(writer.missed.items())
    ]
    finished = done_of(job, result, done.outcome)
    sent = {f"{SENT_TO}{node}": count for node, count in writer.sent_bytes.items()}
    totals = {**finished.totals, "streamed": sum(sent.values()), **sent}
    return replace(finished, notes=notes, totals=totals)


def _input_bytes(job: LoadJob, unit: LoadUnit) -> int:
    """Return the bytes of text of a unit; of a compressed file an estimate."""
    if unit.length_bytes != TO_THE_END:
        return unit.length_bytes
    return COMPRESSION_MAX * job.sources[unit.source].file.size_bytes
