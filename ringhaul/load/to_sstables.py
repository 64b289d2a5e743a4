"""Run one load unit to SSTables: read its range in blocks, encode, write files.

The same records, rejects and account as `run.py`; only the end differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.sstables import SSTableWriter
from ringhaul.records.job import LoadJob
from ringhaul.records.rows import EncodedRows, RowEncoder
from ringhaul.records.sstable_output import first_number
from ringhaul.records.unit import LoadUnit
from ringhaul.storage.access import check_place
from ringhaul.units.account import Account, UnitHooks, UnitOutcome

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform


@dataclass(frozen=True, kw_only=True)
class SSTableUnit:
    """What became of a unit: its account, and the writer that knows its files."""

    outcome: UnitOutcome
    writer: SSTableWriter


def run_unit_to_sstables(
    unit: LoadUnit,
    number: int,
    job: LoadJob,
    folder: str,
    hooks: UnitHooks,
    transforms: tuple[Transform, ...] = (),
) -> SSTableUnit:
    """Write the records of unit `number` to SSTables in `folder`.

    Raises what `run_load_unit` does, without what concerns a cluster, `OutsideRoots` for a folder
    that this host does not open for jobs, and `OutputUnusable` or `OutputUnavailable`. Nothing is
    left in the folder then.
    """
    assert job.sstables is not None
    check_place(folder)
    source = job.sources[unit.source]
    account = Account(unit, job, RowEncoder(job, source, transforms), hooks)

    def on_reject(rows: EncodedRows, row: int, reason: str) -> None:
        account.refuse(rows, {row: ("write", None, reason)})

    writer = SSTableWriter(
        job.sstables.layout,
        source.columns,
        job.ttl_s,
        folder,
        first_number(number),
        WriterHooks(
            tick=account.tick,
            throttle=account.throttle,
            on_reject=on_reject,
            stats=account.stats,
        ),
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
