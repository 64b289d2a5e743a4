"""Write the rows of a unit to SSTables in a folder, instead of to the cluster.

Rows are collected until they take `SSTABLE_BYTES`, then built to one SSTable and written. A row
counts as written once its files are on the disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Any

from ringhaul.errors import NO_ROOM, OutputUnavailable, OutputUnusable
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.collector import RowCollector
from ringhaul.records.sstable_output import SSTABLES_A_UNIT_MAX
from ringhaul.sstables.build import build_sstable
from ringhaul.sstables.columns import Rows
from ringhaul.sstables.components import file_name
from ringhaul.sstables.layout import Layout


class SSTableWriter(RowCollector):
    """Writes one attempt of a unit to files."""

    def __init__(
        self,
        layout: Layout,
        columns: Sequence[str],
        ttl_s: int,
        folder: str,
        number: int,
        hooks: WriterHooks,
    ) -> None:
        """`columns`, `ttl_s`: see `RowCollector`. `folder`: is created; its parent must exist.
        `number`: of the first SSTable."""
        super().__init__(layout, columns, ttl_s, hooks)
        self._folder, self._number = folder, number

    def withdraw(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self, parts: Sequence[Rows]) -> None:
        """Write an SSTable. Raises `OutputUnusable` or `OutputUnavailable`."""
        if self.sstables == SSTABLES_A_UNIT_MAX:
            raise OutputUnusable(
                f"one unit of work fills more than {SSTABLES_A_UNIT_MAX:,} SSTables: split the "
                "source into smaller files"
            )
        built = build_sstable(self._layout, parts)
        self._hooks.tick()
        try:
            self._write(built.files)
        except OSError as error:
            kind = OutputUnusable if _is_lasting(error) else OutputUnavailable
            raise kind(f"cannot write SSTables to {self._folder}: {error.strerror}") from error
        self.sstables += 1

    def _write(self, files: Sequence[tuple[str, Any]]) -> None:
        if not self.sstables:
            self.withdraw()  # of an attempt of the same process that ended without a commit
            os.mkdir(self._folder)
        for component, contents in files:
            name = file_name(self._number + self.sstables, component)
            with open(os.path.join(self._folder, name), "xb", buffering=0) as file:
                view = memoryview(contents).cast("B")
                while len(view):
                    view = view[file.write(view) :]
                os.fsync(file.fileno())


def _is_lasting(error: OSError) -> bool:
    """Return whether a retry would end like this attempt."""
    return error.errno in NO_ROOM or isinstance(
        error, FileNotFoundError | PermissionError | NotADirectoryError
    )
