"""First looks into source files, several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from producer.request.load import LoadRequest
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.header import SourceEmpty, refuse_binary
from ringhaul.formats.split import START, Block, read_blocks
from ringhaul.sources.files import open_whole
from ringhaul.sources.source import SourceFile
from ringhaul.storage.access import is_url

T = TypeVar("T")


#: Files behind URLs that are looked at side by side: a thousand of them take some 10 s, not 200.
REMOTE_AT_ONCE = 16


#: Read at a time to see whether a file holds a record at all.
LOOK_BYTES = 64 * 1024


def each_file(files: Sequence[SourceFile], work: Callable[[SourceFile], T]) -> list[T]:
    """What `work` makes of each file, in order. Behind URLs several at once: each waits long."""
    if not any(is_url(file.path) for file in files):
        return [work(file) for file in files]
    with ThreadPoolExecutor(REMOTE_AT_ONCE) as pool:
        return list(pool.map(work, files))


def first_block(file: SourceFile, dialect: CsvDialect) -> Block:
    """The first records of a text file, or what begins as one.

    Raises `SourceEmpty` if there are none, and `UsageError` for what is no text.
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
    # A transform gets the same fields of every record, and JSON Lines may not say which.
    columns = () if request.transforms and has.startswith("a name") else request.columns
    for option, given in (("columns", columns), ("no-header", not request.header)):
        if given:
            name = request.dialect.option(option)
            raise UsageError(f"{file.path}: {name} is of no use: the file has {has}")
