"""Spool the standard input of a job to a file in the state folder, so that workers can read ranges.
So are other inputs that can be read only once, such as a pipe.

The file stays while the job may need it: until its end, for a resume, and for rejected records that
are too long for the ledger. The next load of standard input removes files left by killed commands.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from producer.inputs.urlfile import NO_PLACES, find_placed
from producer.spool_names import FOLDER, STANDARD_INPUT
from ringhaul.errors import (
    OutputUnusable,
    RinghaulError,
    SourceMissing,
    SourceUnavailable,
    UsageError,
)
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.signature import LOOK_BYTES, binary_kind
from ringhaul.plain_text import Lines
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage.streams import is_standard_input, is_stream, stream_path


def spool_sources(
    args: Sequence[str],
    dialect: CsvDialect,
    file_format: str,
    spool: Path,
    places: Mapping[str, str] = NO_PLACES,
) -> list[SourceFile]:
    """Return the files to read; spool standard input or a pipe to one first. `places`: see
    `find_placed`."""
    stream = next(filter(is_stream, args), None)
    if stream is None:
        return find_placed(args, places, dialect, file_format)
    if len(args) > 1:
        what = "standard input" if is_standard_input(stream) else "a pipe"
        raise UsageError(f"{stream} ({what}) cannot be given together with other sources")
    try:
        spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with spool.open("xb") as file, _opened(stream) as opened:
            beginning = _read(opened, LOOK_BYTES)
            _refuse_binary(beginning, dialect, file_format)
            file.write(beginning)
            while some := _read(opened, 1 << 20):
                file.write(some)
    except OSError as error:
        raise OutputUnusable(
            f"{spool.parent}: standard input cannot be kept here while it is loaded: "
            f"{error.strerror}; free some disk space, or set state_dir to a larger disk"
        ) from error
    return find_sources([str(spool)], dialect, file_format)


def pipe_note(args: Sequence[str]) -> str | None:
    """Return a line about a pipe that is given by its name: opening it waits for its writer."""
    pipe = next((one for one in args if is_stream(one) and not is_standard_input(one)), None)
    return (
        None if pipe is None else f"{pipe} is a pipe: it is read to its end before the job starts"
    )


@contextmanager
def _opened(stream: str) -> Iterator[BinaryIO]:
    if not is_standard_input(stream):
        try:
            file = open(stream_path(stream), "rb")  # noqa: SIM115 - only opening is guarded
        except OSError as error:
            raise SourceMissing(f"{stream}: {error.strerror or error}") from error
        with file:
            yield file
        return
    if sys.stdin is None:
        raise UsageError(f"{stream} : standard input is closed; pipe the records into the command")
    yield sys.stdin.buffer


def _read(opened: BinaryIO, bytes_max: int) -> bytes:
    """Return up to `bytes_max` bytes of standard input; empty at its end."""
    try:
        return opened.read(bytes_max)
    except OSError as error:
        raise SourceUnavailable(f"standard input cannot be read: {error.strerror}") from error


@contextmanager
def naming_standard_input(spool: Path) -> Iterator[None]:
    """Replace the spool file's path, which the user has never seen, by "standard input" in errors
    from the block.

    Errors of workers keep it: they need the path to find the file.
    """
    try:
        yield
    except RinghaulError as error:
        error.args = tuple(
            as_standard_input(arg, spool) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def as_standard_input(text: str, spool: Path) -> str:
    """Return the text, JSON or not, with "standard input" in place of the spool file's path."""
    path = os.path.abspath(spool)  # the form in which sources are named
    named = text.replace(path, STANDARD_INPUT).replace(json.dumps(path)[1:-1], STANDARD_INPUT)
    return Lines(named) if isinstance(text, Lines) else named


def spool_path(state_dir: Path, job_id: str) -> Path:
    """Return the path of this command's spool file: a new name at each call.

    So two commands with the same job id, of which one may only plan, do not share a file.
    """
    return spool_folder_of(state_dir) / f"{job_id}.{secrets.token_hex(4)}.csv"


def _refuse_binary(beginning: bytes, dialect: CsvDialect, file_format: str) -> None:
    """Raise `UsageError` if standard input starts like a binary file, such as a compressed one,
    which no file name reveals."""
    if dialect.decoding == "stream" or (file_format == "parquet" and beginning[:4] == b"PAR1"):
        return
    problem = binary_kind(beginning, piped=True)
    if problem is not None:
        raise UsageError(f"standard input {problem}")


def spool_folder_of(state_dir: Path) -> Path:
    return state_dir / FOLDER
