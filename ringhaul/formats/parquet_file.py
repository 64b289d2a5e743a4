"""A Parquet file that can be opened again, with some of its columns read as dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq


class ParquetSource(pq.ParquetFile):  # type: ignore[misc]
    """An open Parquet file which remembers how it was opened."""

    def __init__(self, source: Any, **options: Any) -> None:
        """`source`, `options`: as `pq.ParquetFile` takes them."""
        super().__init__(source, **options)
        self._source_and_options = source, options

    def with_dictionaries(self, paths: Sequence[str]) -> ParquetSource:
        """The same file, opened again without reading its footer again.

        `paths`: the leaf columns (`path_in_schema`, of byte arrays) whose values come as indices
        into a dictionary. The caller closes what it gets.
        """
        source, options = self._source_and_options
        return ParquetSource(
            source, **{**options, "metadata": self.metadata, "read_dictionary": list(paths)}
        )
