"""Decode the columns of result pages by compiled kernels. Importing this loads the kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from ringhaul.cql.decode.cells import Int32s, Page, find_cells
from ringhaul.cql.decode.head import Body, Head, read_head
from ringhaul.cql.decode.heavy_rows import heavy_rows, with_heavy
from ringhaul.cql.decode.hostile_page import HostilePage
from ringhaul.cql.decode.nested import Empties, Leaves, decoder_of
from ringhaul.cql.empties import MARKED
from ringhaul.cql.types import CqlType

#: Limit on the bytes decoded at once, as starts of cells are int32.
_BYTES_MAX = 2**31 - 1


class ColumnDecoder:
    """Decodes result pages with columns of given names and CQL types: see `PageDecoder`."""

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[CqlType],
        *,
        marks: bool = False,
        appended: Collection[str] = (),
    ) -> None:
        #: The columns of every batch, in the Arrow forms of `ringhaul.cql.types`.
        self.schema = pa.schema(
            [pa.field(name, kind.arrow()) for name, kind in zip(names, types, strict=True)]
        )
        self._empties = Empties()
        leaves = Leaves(self._empties if marks else None)
        self._decoders = [decoder_of(kind, leaves) for kind in types]
        self._types = list(types)
        self._marks = marks
        self._appended = [place for place, name in enumerate(names) if name in appended]

    def decode_many(self, bodies: Sequence[Body]) -> tuple[pa.RecordBatch, list[int]]:
        """Decode many pages to one batch; also return the number of rows of each page."""
        heads = [self._head(body) for body in bodies]
        joined = bodies[0] if len(bodies) == 1 else b"".join(bodies)
        if len(joined) > _BYTES_MAX:
            raise ValueError(f"pages of {len(joined)} bytes at once")
        page = np.frombuffer(joined, np.uint8)
        page.flags.writeable = False
        counts = [head.rows_count for head in heads]
        starts = np.empty((len(self._decoders), sum(counts)), np.int32)
        lengths = np.empty_like(starts)
        base = first = 0
        for head, body in zip(heads, bodies, strict=True):
            end = base + len(body)
            at = find_cells(page, base + head.at, end, first, head.rows_count, starts, lengths)
            if at != end:
                raise HostilePage(
                    f"{end - at} bytes follow a page's last row"
                    if at >= 0
                    else f"a page ends in row {(-1 - at) // len(self._decoders)}"
                )
            base, first = end, first + head.rows_count
        arrays, marked = [], list[int]()
        for i, decode in enumerate(self._decoders):
            try:
                arrays.append(decode(page, starts[i], lengths[i]))
            except HostilePage as error:
                raise HostilePage(f"column {self.schema.field(i).name}: {error}") from None
            if self._empties.met:
                self._empties.met = False
                marked.append(i)
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        for i in marked:
            batch = batch.append_column(
                MARKED + self.schema.field(i).name, self._marked(i, page, starts[i], lengths[i])
            )
        if self._marks:
            batch = with_heavy(batch, heavy_rows(page, starts, lengths, self._appended))
        return batch, counts

    def _marked(self, i: int, page: Page, starts: Int32s, lengths: Int32s) -> pa.Array:
        return decoder_of(self._types[i], Leaves(marked=True))(page, starts, lengths)

    def _head(self, body: Body) -> Head:
        head = read_head(body)
        columns_count = len(self._decoders)
        if head.columns_count != columns_count:
            raise HostilePage(f"a page has {head.columns_count} columns, not {columns_count}")
        # Each cell takes at least 4 bytes, so a false count cannot cause a large allocation.
        if not 0 <= head.rows_count * 4 * max(columns_count, 1) <= len(body) - head.at:
            raise HostilePage(f"a page has no room for {head.rows_count} rows")
        return head
