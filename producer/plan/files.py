"""Read the beginnings of source files, several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from producer.request.load import LoadRequest
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, refuse_binary
from ringhaul.formats.split import START, Block, read_blocks
from ringhaul.ledger.kinds import JobKind
from ringhaul.records.targets import Targets
from ringhaul.sources.files import open_whole
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url

T = TypeVar("T")


#: Files behind URLs that are read at the same time: a thousand take some 10 s instead of 200.
REMOTE_AT_ONCE = 16


#: Bytes read at a time to find out whether a file has any record.
LOOK_BYTES = 64 * 1024


def each_file(files: Sequence[SourceFile], work: Callable[[SourceFile], T]) -> list[T]:
    """Return the results of `work` for each file, in order. Files behind URLs, which mean waiting,
    are processed several at once."""
    if not any(is_url(file.path) for file in files):
        return [work(file) for file in files]
    with ThreadPoolExecutor(REMOTE_AT_ONCE) as pool:
        return list(pool.map(work, files))


def first_block(file: SourceFile, dialect: CsvDialect) -> Block:
    """Return the first records of a text file, or a block that begins with one.

    Raises `SourceEmpty` if there are none, and `UsageError` if the file is not text.
    """
    with open_whole(file, dialect) as stream:
        block = next(read_blocks(stream, dialect, block_bytes=LOOK_BYTES, start=START), None)
    if block is None:
        raise SourceEmpty(f"{file.path} is empty: it has no records")
    try:
        refuse_binary(block, dialect)
    except UsageError as error:
        raise UsageError(f"{file.path} {error}") from error
    return block


def _refuse_columns(request: LoadRequest, file: SourceFile, has: str) -> None:
    # A transform gets the same fields of every record; JSON Lines may not name them.
    columns = () if request.transforms and has.startswith("a name") else request.columns
    for option, given in (("columns", columns), ("no-header", not request.header)):
        if given:
            name = request.dialect.option(option)
            raise UsageError(f"{file.path}: {name} has no effect: the file has {has}")


def settled(
    request: LoadRequest, targets: Targets, table: TableSchema, file: SourceFile
) -> Targets:
    """Return the targets as far as the command uses them.

    Raises `UsageError` for a marker of a statement that a mapping leaves without a field.
    """
    if request.kind is JobKind.VERIFY:
        return targets.untimed
    if not request.by_name:
        return targets
    filled = {*(column for _, column in targets.mapping), *(c for c, _ in targets.constants)}
    for name in table.column_names:
        if name not in filled:
            mapping = request.dialect.option("mapping")
            raise UsageError(f"{file.path}: {mapping} gives nothing for the marker {name!r}")
    if targets.filled or targets.times or targets.ttls:
        raise UsageError(
            f"{request.dialect.option('mapping')}: functions and write times belong into the "
            "statement itself, as in VALUES (?, now()) USING TIMESTAMP ?"
        )
    return targets
