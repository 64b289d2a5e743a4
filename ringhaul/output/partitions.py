"""Write rows to folders named after the values of columns, as Hive and Spark do.

The columns are left out of the files. Each folder has parts of its own; a load
with Hive partitioning reads them again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.spell.formats import Speller
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable
from ringhaul.formats.hive import folder_of
from ringhaul.option_names import job_option
from ringhaul.output.parts import PartInfo, PartSet

#: Files that one unit writes at the same time; of further folders' files the oldest ends.
OPEN_MAX = 64
#: Folders of one unit. With more, the columns are not such as divide a table.
FOLDERS_MAX = 10_000
#: Bytes of a folder's name, as disks have it.
_NAME_BYTES_MAX = 255


class PartitionedParts:
    """The parts that one attempt of a unit writes, in folders. Used like a `PartSet`."""

    def __init__(
        self,
        files: PartSet,
        names: Sequence[str],
        types: Sequence[CqlType],
        partition_by: Sequence[str],
    ) -> None:
        """`files` makes the parts of each folder; `names` and `types` describe the columns."""
        self.kind = files.kind
        self._files = files
        self._names = list(names)
        self._by = [self._names.index(name) for name in partition_by]
        self._kept = [place for place in range(len(names)) if place not in self._by]
        self._types = list(types)
        self._speller = Speller(None)
        self._folders: dict[str, PartSet] = {}
        self._open: OrderedDict[str, PartSet] = OrderedDict()
        #: Complete parts, in the order in which they were finished.
        self.parts: list[PartInfo] = []

    def write(self, batch: pa.RecordBatch) -> list[int]:
        """Write rows to their folders; return those too long for a load to read."""
        too_long: list[int] = []
        if not batch.num_rows:
            return too_long
        folders = self._folders_of(batch).dictionary_encode()
        codes = folders.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(folders.dictionary)), side="right")
        kept = batch.select(self._kept)
        begin = 0
        for folder, end in zip(folders.dictionary.to_pylist(), ends.tolist(), strict=True):
            rows = order[begin:end]
            begin = end
            # Most batches of a table that is clustered by these columns are of one folder.
            taken = kept if len(rows) == batch.num_rows else kept.take(pa.array(rows))
            too_long += [int(rows[row]) for row in self._opened(folder).write(taken)]
            self._collect(folder)
        return sorted(too_long)

    def roll(self) -> None:
        """Publish the parts that are being written."""
        for folder in list(self._open):
            self._close(folder)

    def abandon(self) -> None:
        """Remove the parts that are being written. Published parts stay."""
        for files in self._folders.values():
            files.abandon()
        self._open.clear()

    def withdraw(self) -> None:
        """Remove everything this attempt wrote, because another attempt's commit counted."""
        self.abandon()
        self._files.parts = self.parts
        self._files.withdraw()

    def _folders_of(self, batch: pa.RecordBatch) -> pa.StringArray:
        """Return the folder of each row."""
        texts = [self._level(place, batch.column(place)) for place in self._by]
        return pc.binary_join_element_wise(*texts, "/") if len(texts) > 1 else texts[0]

    def _level(self, place: int, column: pa.Array) -> pa.StringArray:
        """Return the folder of each value of a column."""
        name = self._names[place]
        encoded = self._speller.text_of(self._types[place], column).dictionary_encode()
        folders = [folder_of(name, value) for value in [*encoded.dictionary.to_pylist(), None]]
        for folder in folders:
            if len(folder.encode()) > _NAME_BYTES_MAX:
                raise OutputUnusable(
                    f"{job_option('partition-by')} {name}: {folder[:60]}... is longer than the "
                    f"name of a folder may be ({_NAME_BYTES_MAX} bytes); leave the column out of "
                    f"{job_option('partition-by')}"
                )
        null = len(folders) - 1
        return pa.array(folders, pa.string()).take(pc.fill_null(encoded.indices, null))

    def _opened(self, folder: str) -> PartSet:
        files = self._folders.get(folder)
        if files is None:
            if len(self._folders) >= FOLDERS_MAX:
                raise OutputUnusable(
                    f"{job_option('partition-by')} makes more than {FOLDERS_MAX:,} folders of a "
                    "single unit: give columns with fewer values"
                )
            files = self._folders[folder] = self._files.within(folder)
        if folder not in self._open and len(self._open) >= OPEN_MAX:
            self._close(next(iter(self._open)))
        self._open[folder] = files
        self._open.move_to_end(folder)
        return files

    def _close(self, folder: str) -> None:
        self._open.pop(folder).roll()
        self._collect(folder)

    def _collect(self, folder: str) -> None:
        """Take the finished parts of a folder."""
        files = self._folders[folder]
        self.parts += [replace(part, name=f"{folder}/{part.name}") for part in files.parts]
        files.parts.clear()
