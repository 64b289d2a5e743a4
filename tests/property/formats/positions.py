"""Where the records of a block begin."""

from ringhaul.formats.records import count_line_ends
from ringhaul.formats.split import Block, Position


def record_position(block: Block, record: int) -> Position:
    """Return where record number `record` of the block begins. It counts lines."""
    start = int(block.starts[record])
    return Position(
        block.position.offset_bytes + start,
        block.position.ordinal + record,
        block.position.line + count_line_ends(block.data, 0, start, block.line_end),
    )
