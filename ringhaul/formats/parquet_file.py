"""A Parquet file that can be opened again, with some of its columns read as dictionaries."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from ringhaul.formats.parquet_footer import Footer, Stored, read_footer
from ringhaul.formats.parquet_pages import ReadAt
from ringhaul.storage.file_version import stamp

#: Larger footers are not kept: they take many times their stored size in memory.
KEPT_FOOTER_BYTES = 8 << 20
#: A file that changed more recently may change again without its times showing it.
SETTLED_SECONDS = 2.0


class _Kept(NamedTuple):
    """The footer of a file as it was at some time."""

    stamp: tuple[int, ...]
    footer: Footer


class Footers:
    """Cache of the last footer: a unit is a row group, and a footer describes all of them.

    Reading it again for each group would take time quadratic in their number.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def find(self, descriptor: int) -> Footer | None:
        """Return the footer of the file, if it was kept and the file has not changed since."""
        kept = self._kept
        return kept.footer if kept and kept.stamp == stamp(os.fstat(descriptor)) else None

    def keep(self, descriptor: int, footer: Footer, *, now: float | None = None) -> None:
        """Keep a footer, replacing the last one, unless it is large or the file is new."""
        about = os.fstat(descriptor)
        now = time.time() if now is None else now
        settled = max(about.st_mtime, about.st_ctime) + SETTLED_SECONDS < now
        if settled and footer.metadata.serialized_size <= KEPT_FOOTER_BYTES:
            self._kept = _Kept(stamp(about), footer)


def _nothing() -> None:
    pass


class ParquetSource(pq.ParquetFile):  # type: ignore[misc]
    """An open Parquet file that remembers how it was opened."""

    def __init__(
        self,
        source: Any,
        *,
        footer: Footer | None = None,
        stored: Stored | None = None,
        look: Callable[[], None] = _nothing,
        **options: Any,
    ) -> None:
        """`source`, `options`: arguments of `pq.ParquetFile`.

        `footer`: the file's footer; None: read it from `source`, an open file of pyarrow. `stored`:
        the file's bytes, to check its pages before they are read; None: the file is remote. `look`:
        called after each read, before its rows are used; raises if the file has changed.
        """
        self.footer = read_footer(Stored.of(source)) if footer is None else footer
        super().__init__(source, metadata=self.footer.metadata, **options)
        self._source_and_options = source, options
        self.stored, self.look = stored, look
        #: Reads bytes of the file at some place; None: not known how.
        self.read_at: ReadAt | None = None if stored is None else stored.read

    def with_dictionaries(self, paths: Sequence[str]) -> ParquetSource:
        """Open the same file again without reading its footer again.

        `paths`: the leaf columns (`path_in_schema`, of byte arrays) to read as indices into a
        dictionary. The caller closes the result.
        """
        source, options = self._source_and_options
        return ParquetSource(
            source, footer=self.footer, **{**options, "read_dictionary": list(paths)}
        )
