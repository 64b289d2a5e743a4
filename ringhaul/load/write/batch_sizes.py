"""Bound the size that the server counts for the rows of a prepared statement."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from cassandra.cqltypes import ListType, MapType, SetType, UserType
from cassandra.query import PreparedStatement

from ringhaul.load.write.grouping import stored_bytes
from ringhaul.records.rows import EncodedRows

#: Types whose values are stored in a cell for each element, unless they are frozen; the server does
#: not say of a marker whether they are.
_OF_MANY_CELLS = (ListType, MapType, SetType, UserType)


class BatchSizes:
    """Upper bounds for the rows of one statement."""

    def __init__(self, prepared: PreparedStatement) -> None:
        self._many = [
            position
            for position, column in enumerate(prepared.column_metadata)
            if issubclass(column.type, _OF_MANY_CELLS)
        ]

    def of(
        self, rows: EncodedRows, order: npt.NDArray[np.int64], row_bytes: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return bounds for the rows `order`, which take `row_bytes` when bound."""
        many_bytes = np.zeros(len(order), np.int64)
        for position in self._many:
            many_bytes += np.maximum(rows.columns[position].lengths[order], 0)
        return stored_bytes(row_bytes, len(rows.columns), many_bytes)
