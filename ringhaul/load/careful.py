"""Blocks of a unit whose earlier attempts were lost: the records at fault are found one by one.

Of an attempt that was lost only the block is known. The next one takes the records of that block
one at a time, each with a breadcrumb, so that the record is known if it costs the process again;
the one after that leaves it out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ringhaul.breadcrumb import Loss, culprits_of, suspects_of
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block, Position
from ringhaul.load.fields import AnyBlock


def careful_blocks(
    blocks: Iterable[AnyBlock], losses: Sequence[Loss]
) -> Iterator[tuple[AnyBlock, Loss | None]]:
    """The blocks, those among `losses` record by record. Beside a record that is to be left out
    stands the loss that says why."""
    suspects, culprits = suspects_of(losses), culprits_of(losses)
    spans = [*suspects, *((ordinal, ordinal + 1) for ordinal in culprits)]
    for block in blocks:
        first = block.position.ordinal
        end = first + block.records_count
        if block.defect is not None or not any(a < end and first < b for a, b in spans):
            yield block, None
            continue
        line, counted = block.position.line, 0
        for record in range(block.records_count):
            if isinstance(block, RowBlock):
                line = block.position.line + record
            elif record:
                begin = int(block.starts[record])
                line += count_line_ends(block.data, counted, begin)
                counted = begin
            yield one_record(block, record, line), culprits.get(first + record)


def one_record(block: AnyBlock, record: int, line: int) -> AnyBlock:
    """A block of one of its records, which begins on `line`."""
    position, count = block.position, block.records_count
    if isinstance(block, RowBlock):
        size = block.size_bytes
        share = size * (record + 1) // count - size * record // count
        at = Position(position.offset_bytes, position.ordinal + record, line)
        return RowBlock(block.batch.slice(record, 1), at, share)
    start, end = int(block.starts[record]), int(block.ends[record])
    # What lies between two records, such as the end of a line, belongs to the first of them.
    begin = start if record else 0
    following = int(block.starts[record + 1]) if record + 1 < count else len(block.data)
    at = Position(position.offset_bytes + begin, position.ordinal + record, line)
    zero = np.array([start - begin], block.starts.dtype)
    size = following - begin
    return Block(block.data[begin:following], at, zero, zero + (end - start), None, size)
