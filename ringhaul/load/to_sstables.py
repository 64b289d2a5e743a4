"""Run one load unit to SSTables: read its range in blocks, encode, and write files or stream them.

The same records, rejects and account as `run.py`; only the end differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from ringhaul.destination.delivered import Delivered
from ringhaul.destination.files import Files, first_number
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.collector import RowCollector
from ringhaul.load.write.sstables import SSTableWriter
from ringhaul.load.write.streaming import StreamTarget, StreamWriter
from ringhaul.records.account import Account, UnitHooks, UnitOutcome
from ringhaul.records.job import LoadJob
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.unit import LoadUnit
from ringhaul.storage.access import check_place
from ringhaul.storage.sorting import SpillBounds

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform

W = TypeVar("W", bound=RowCollector)


@dataclass(frozen=True, kw_only=True)
class SSTableUnit(Generic[W]):
    """What became of a unit: its account, and the writer that knows its SSTables."""

    outcome: UnitOutcome
    writer: W


def run_unit_to_sstables(
    unit: LoadUnit,
    number: int,
    job: LoadJob,
    folder: str,
    hooks: UnitHooks,
    bounds: SpillBounds,
    transforms: tuple[Transform, ...] = (),
) -> SSTableUnit[SSTableWriter]:
    """Write the records of unit `number` to SSTables in `folder`.

    Raises what `run_load_unit` does, without what concerns a cluster, `OutsideRoots` for a folder
    that this host does not open for jobs, and `OutputUnusable` or `OutputUnavailable`. Nothing is
    left in the folder then.
    """
    assert isinstance(job.destination, Files)
    layout, columns = job.destination.layout, job.sources[unit.source].columns
    check_place(folder)

    def writer(hooks: WriterHooks) -> SSTableWriter:
        return SSTableWriter(
            layout, columns, job.ttl_s, folder, first_number(number), hooks, bounds
        )

    return _run(unit, job, writer, hooks, transforms, pays_input=True)


def run_unit_streamed(
    unit: LoadUnit,
    job: LoadJob,
    target: StreamTarget,
    hooks: UnitHooks,
    bounds: SpillBounds,
    transforms: tuple[Transform, ...] = (),
) -> SSTableUnit[StreamWriter]:
    """Stream the records of a unit to their replicas.

    Raises what `run_load_unit` does, and what `StreamWriter` does.
    """
    assert isinstance(job.destination, Delivered)
    layout, columns = job.destination.layout, job.sources[unit.source].columns

    def writer(hooks: WriterHooks) -> StreamWriter:
        return StreamWriter(layout, columns, job.ttl_s, target, hooks, bounds)

    return _run(unit, job, writer, hooks, transforms, pays_input=False)


def _run(
    unit: LoadUnit,
    job: LoadJob,
    make_writer: Callable[[WriterHooks], W],
    hooks: UnitHooks,
    transforms: tuple[Transform, ...],
    *,
    pays_input: bool,
) -> SSTableUnit[W]:
    source, first = job.sources[unit.source], unit.source_ordinal
    encoder = RowEncoder(job, source, transforms, source_ordinal=first)
    account = Account(unit, job, encoder, hooks, pays_input=pays_input)

    def on_reject(rows: EncodedRows, row: int, reason: str) -> None:
        account.refuse(rows, {row: ("write", None, reason)})

    writer = make_writer(
        WriterHooks(
            tick=account.tick,
            throttle=account.throttle,
            on_reject=on_reject,
            spend=account.spend,
            stats=account.stats,
        )
    )
    try:
        for rows in account.rows():
            writer.write(rows)
        writer.flush()
        return SSTableUnit(outcome=account.outcome(), writer=writer)
    except BaseException:
        writer.withdraw()
        raise
    finally:
        writer.close()
