"""Standard input of a job, in a file of the state folder: workers read it by ranges.

It stays while the job may want it: to its end, for a resume, and for rejected records that are too
long for the ledger. What commands left that were killed goes with the next load of standard input.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from producer.inputs.urlfile import NO_PLACES, find_placed
from ringhaul.errors import (
    OutputUnusable,
    RinghaulError,
    SourceUnavailable,
    UsageError,
)
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.signature import LOOK_BYTES, binary_kind
from ringhaul.plain_text import Lines
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile

#: In messages, for the file that nobody gave.
STANDARD_INPUT = "standard input"
#: Of spool files, in the state folder.
FOLDER = "spool"


def spool_sources(
    args: Sequence[str],
    dialect: CsvDialect,
    file_format: str,
    spool: Path,
    places: Mapping[str, str] = NO_PLACES,
) -> list[SourceFile]:
    """The files to read; standard input is spooled to one first. `places`: see `find_placed`."""
    if "-" not in args:
        return find_placed(args, places, dialect, file_format)
    if len(args) > 1:
        raise UsageError("- (standard input) cannot be given together with other sources")
    try:
        spool.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with spool.open("xb") as file:
            beginning = _read(LOOK_BYTES)
            _refuse_binary(beginning, dialect, file_format)
            file.write(beginning)
            while some := _read(1 << 20):
                file.write(some)
    except OSError as error:
        raise OutputUnusable(
            f"{spool.parent}: standard input cannot be kept here while it is loaded: "
            f"{error.strerror}; free some of the disk, or set state_dir to a larger one"
        ) from error
    return find_sources([str(spool)], dialect, file_format)


def _read(bytes_max: int) -> bytes:
    """Some of standard input; nothing at its end."""
    if sys.stdin is None:
        raise UsageError("- : standard input is closed; pipe the records into the command")
    try:
        return sys.stdin.buffer.read(bytes_max)
    except OSError as error:
        raise SourceUnavailable(f"standard input cannot be read: {error.strerror}") from error


@contextmanager
def naming_standard_input(spool: Path) -> Iterator[None]:
    """Errors in the block say "standard input" for the spool file, of which the user knows nothing.

    Not for those of workers, who have to find the file: there its path is what helps.
    """
    try:
        yield
    except RinghaulError as error:
        error.args = tuple(
            as_standard_input(arg, spool) if isinstance(arg, str) else arg for arg in error.args
        )
        raise


def as_standard_input(text: str, spool: Path) -> str:
    """A text, of JSON or not, that says "standard input" for the spool file."""
    path = os.path.abspath(spool)  # as sources are named
    said = text.replace(path, STANDARD_INPUT).replace(json.dumps(path)[1:-1], STANDARD_INPUT)
    return Lines(said) if isinstance(text, Lines) else said


def path_as_given(path: str, job_id: str) -> str:
    """How a source of a job is named to people and programs: a spool file, by whichever command
    and on whichever host, as what it holds."""
    folder, name = os.path.split(path)
    number = re.escape(job_id) + r"\.[0-9a-f]{8}\.csv"
    spooled = os.path.basename(folder) == FOLDER and re.fullmatch(number, name)
    return STANDARD_INPUT if spooled else path


def spool_path(state_dir: Path, job_id: str) -> Path:
    """Where this command keeps standard input until all of it is loaded: a new name at each call.

    A command with the same job id, such as one that only plans, has another.
    """
    return spool_folder_of(state_dir) / f"{job_id}.{secrets.token_hex(4)}.csv"


def _refuse_binary(beginning: bytes, dialect: CsvDialect, file_format: str) -> None:
    """Raise `UsageError` if standard input cannot be read by what it begins with. There is no name
    that would tell of a compression."""
    if dialect.decoding == "stream" or (file_format == "parquet" and beginning[:4] == b"PAR1"):
        return
    words = binary_kind(beginning, dialect.option, piped=True)
    if words is not None:
        raise UsageError(f"standard input {words}")


def spool_folder_of(state_dir: Path) -> Path:
    return state_dir / FOLDER
