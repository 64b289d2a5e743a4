"""Split the blocks of a unit whose earlier attempts were lost, to find the record at fault fast.

A lost attempt leaves behind only which records it was working on together. The next attempt takes
them in `PIECES` pieces, each with a breadcrumb, and so on until one record is alone; the attempt
after that leaves it out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ringhaul.breadcrumb import Loss, culprits_of, suspects_of
from ringhaul.formats.parquet_read import RowBlock
from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block, Position
from ringhaul.records.field_readers import AnyBlock

#: Each step divides the suspects by this number: three steps from 64 Ki records to one.
PIECES = 64


def careful_blocks(
    blocks: Iterable[AnyBlock], losses: Sequence[Loss]
) -> Iterator[tuple[AnyBlock, Loss | None]]:
    """Yield the blocks, cut into pieces where `losses` has suspects.

    A block of one record that must be left out comes with the loss that says why.
    """
    culprits = culprits_of(losses)
    edges = {edge for ordinal in culprits for edge in (ordinal, ordinal + 1)}
    for first, end in suspects_of(losses):
        edges.update(range(first, end, max(1, (end - first) // PIECES)), [end])
    for block in blocks:
        begin = block.position.ordinal
        inside = [edge - begin for edge in edges if 0 < edge - begin < block.records_count]
        if block.defect is not None or not (inside or begin in culprits):
            yield block, None
            continue
        for part in _pieces(block, [0, *sorted(inside), block.records_count]):
            loss = culprits.get(part.position.ordinal) if part.records_count == 1 else None
            yield part, loss


def _pieces(block: AnyBlock, edges: Sequence[int]) -> Iterator[AnyBlock]:
    """Cut a block before each of the records `edges`; the last edge is its end."""
    position, count = block.position, block.records_count
    line, counted = position.line, 0
    for first, end in pairwise(edges):
        if isinstance(block, RowBlock):
            size = block.size_bytes
            share = size * end // count - size * first // count
            at = Position(position.offset_bytes, position.ordinal + first, position.line + first)
            yield RowBlock(block.batch.slice(first, end - first), at, share)
            continue
        # Bytes between two records, such as a line end, belong to the earlier record.
        begin = int(block.starts[first]) if first else 0
        following = int(block.starts[end]) if end < count else len(block.data)
        line += count_line_ends(block.data, counted, begin, block.line_end)
        counted = begin
        at = Position(position.offset_bytes + begin, position.ordinal + first, line)
        starts, ends = block.starts[first:end] - begin, block.ends[first:end] - begin
        yield Block(
            *(block.data[begin:following], at, starts, ends, None, following - begin),
            block.line_end,
        )
