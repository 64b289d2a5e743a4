"""Decode result pages to record batches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from ringhaul.cql.decode.head import Body
from ringhaul.cql.types import CqlType


class PageDecoder:
    """Decodes result pages with columns of given names and CQL types.

    The first decoder of a process loads the kernels: ADR 0009 has the figures. Forked children
    share the kernels loaded by their parent (`tasks.kernels`).
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[CqlType],
        *,
        marks: bool = False,
        appended: Collection[str] = (),
    ) -> None:
        """`marks`: append the marked form of each column that holds empty values without an Arrow
        form (`ringhaul.cql.empties`), and mark rows that are too large for a request
        (`heavy_rows.py`). `appended`: the columns that are unfrozen lists."""
        from ringhaul.cql.decode.columns import ColumnDecoder

        self._columns = ColumnDecoder(names, types, marks=marks, appended=appended)

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch, in the Arrow forms of `ringhaul.cql.types`."""
        return self._columns.schema

    def decode(self, body: Body) -> pa.RecordBatch:
        """Decode the rows of a page to a batch.

        `body`: body of a RESULT message of kind Rows, native protocol v4 or v5, without extras in
        front (`result_body`). The batch keeps no reference to it. Raises `HostilePage`.
        """
        return self.decode_many([body])[0]

    def decode_many(self, bodies: Sequence[Body]) -> tuple[pa.RecordBatch, list[int]]:
        """Decode many pages to one batch. Also returns the number of rows of each page.

        Saves time on pages of a few rows, where a batch per page would cost more than the rows. All
        pages together must be below 2 GiB. Raises `HostilePage` if any page is invalid.
        """
        return self._columns.decode_many(bodies)
