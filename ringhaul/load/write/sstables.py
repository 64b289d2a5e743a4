"""Write the rows of a unit to SSTables in a folder, instead of to the cluster.

A row counts as written once its files are on the disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from typing import IO

from ringhaul.destination.files import SSTABLES_A_UNIT_MAX
from ringhaul.errors import OutputUnavailable, OutputUnusable
from ringhaul.load.write.base import WriterHooks
from ringhaul.load.write.collector import RowCollector
from ringhaul.load.write.spill import FileContents, RowStore
from ringhaul.sstables.build import Built, Contents
from ringhaul.sstables.components import file_name
from ringhaul.sstables.layout import Layout
from ringhaul.sstables.version import SSTableVersion
from ringhaul.storage.sorting import SpillBounds, is_lasting


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
        bounds: SpillBounds,
    ) -> None:
        """`columns`, `ttl_s`: see `RowCollector`. `folder` is created; its parent must exist.
        `number`: number of the first SSTable."""
        super().__init__(layout, columns, ttl_s, hooks, bounds)
        self._folder, self._number = folder, number
        self._begun = 0  #: SSTables that have files

    def withdraw(self) -> None:
        """Remove what was written."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _finish(self, store: RowStore) -> None:
        """Write SSTables. Raises `OutputUnusable` or `OutputUnavailable`."""
        with closing(self._sstables(store, self._new_files)) as sstables:
            for built, files in sstables:
                try:
                    files.complete(built)
                except OSError as error:
                    raise self._failed(error) from error
                self.sstables += 1

    def _new_files(self) -> _NamedFiles:
        if self._begun == SSTABLES_A_UNIT_MAX:
            raise OutputUnusable(
                f"one unit of work fills more than {SSTABLES_A_UNIT_MAX:,} SSTables: split the "
                "source into smaller files, or raise sstables.sstable_bytes"
            )
        if not self._begun:
            self.withdraw()  # what an attempt of the same process left that did not commit
            try:
                os.mkdir(self._folder)
            except OSError as error:
                raise self._failed(error) from error
        self._begun += 1
        number = self._number + self._begun - 1
        return _NamedFiles(self._folder, self._layout.version, number, self._bounds)

    def _failed(self, error: OSError) -> OutputUnusable | OutputUnavailable:
        kind = OutputUnusable if is_lasting(error) else OutputUnavailable
        return kind(f"cannot write SSTables to {self._folder}: {error.strerror}")


class _NamedFiles:
    """The files of one SSTable in a folder."""

    def __init__(
        self, folder: str, version: SSTableVersion, number: int, bounds: SpillBounds
    ) -> None:
        self._folder, self._version, self._number = folder, version, number
        self._bounds = bounds
        self._opened: list[IO[bytes]] = []
        self._components: dict[str, IO[bytes]] = {}

    def component(self, name: str) -> IO[bytes]:
        path = os.path.join(self._folder, file_name(self._version, self._number, name))
        file = open(path, "x+b")  # noqa: SIM115 - closed by `close`
        self._opened.append(file)
        self._components[name] = file
        return file

    def scratch(self) -> IO[bytes]:
        self._opened.append(self._bounds.new_file())
        return self._opened[-1]

    def contents(self, file: IO[bytes]) -> Contents:
        file.flush()
        return FileContents(file.fileno())

    def complete(self, built: Built) -> None:
        """Write the components that are in memory. Returns once all are on the disk."""
        for name, contents in built.files:
            if name not in self._components:
                self.component(name).write(contents[:])
        for file in self._components.values():
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        for file in self._opened:
            file.close()
