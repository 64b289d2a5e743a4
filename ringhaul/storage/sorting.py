"""The local disk on which worker processes sort rows into SSTables."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import IO

from ringhaul.errors import NO_ROOM, OutputUnavailable, OutputUnusable
from ringhaul.option_names import job_option
from ringhaul.storage.room import Need, check_room

#: Bytes of keys and values that are sorted together. Building takes some seven times as much.
MEMORY_BYTES = 10 * 2**20


@dataclass(frozen=True, kw_only=True)
class SpillBounds:
    """Where and how much a worker process may keep on disk, and how large SSTables get."""

    folder: str
    spill_bytes_max: int  #: bytes on disk of a process, at which its rows become SSTables
    sstable_bytes: int  #: size of Data.db at which an SSTable is finished
    memory_bytes: int = MEMORY_BYTES

    def new_file(self) -> IO[bytes]:
        """Return a file without a name. Raises `OutputUnusable` or `OutputUnavailable`."""
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            return tempfile.TemporaryFile(dir=self.folder)
        except OSError as error:
            raise spill_failed(self.folder, error) from error

    def disk_bytes(self, input_bytes: int) -> int:
        """Return how much a process needs for a unit: its rows, and an SSTable of them.

        Rows take up to twice the bytes of the text they were read from.
        """
        rows_bytes = min(2 * input_bytes, self.spill_bytes_max)
        if rows_bytes <= self.memory_bytes:
            return 0
        return rows_bytes + min(rows_bytes, self.sstable_bytes)

    def needs(self, input_bytes: int, processes: int = 1) -> list[Need]:
        """Return the room that processes take to sort, each a unit of so many bytes of input.

        Raises `OutputUnusable` or `OutputUnavailable` if the folder cannot be made.
        """
        needed = processes * self.disk_bytes(input_bytes)
        if not needed:
            return []
        self.new_file().close()
        return [
            Need(
                folder=self.folder,
                bytes_count=needed,
                what="sorting rows",
                advice="name another folder (sstables.spill_dir), or lower "
                f"sstables.spill_bytes_max or {job_option('unit-size')}",
            )
        ]

    def check_disk(self, input_bytes: int) -> None:
        """Raise as `needs` does, and `OutputUnusable` unless a process has room for such a unit."""
        check_room(self.needs(input_bytes))


def spill_failed(folder: str, error: OSError) -> OutputUnusable | OutputUnavailable:
    """Return the error of a spill folder, by whether a retry would end like this attempt."""
    lasting = is_lasting(error)
    kind = OutputUnusable if lasting else OutputUnavailable
    advice = "; free some, or name another folder (sstables.spill_dir)" if lasting else ""
    return kind(f"cannot write to {folder}, which keeps rows to sort: {error.strerror}{advice}")


def is_lasting(error: OSError) -> bool:
    """Return whether a retry would end like this attempt."""
    return error.errno in NO_ROOM or isinstance(
        error, FileNotFoundError | PermissionError | NotADirectoryError
    )
