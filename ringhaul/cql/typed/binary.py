"""Encode values that are bytes in Arrow and on the wire: blobs, uuids and addresses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import TextColumn
from ringhaul.cql.join import Column, Fault
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType


def encode_blobs(_: CqlType, array: Any, __: TextFormat) -> Column:
    """Encode blobs: the bytes unchanged."""
    return Column(Cells.variable(array.cast(pa.binary())), {})


def encode_uuids(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode uuids of 16 bytes each; a timeuuid must have version 1."""
    column = TextColumn.of(array.cast(pa.binary()))
    odd = column.lengths != 16
    faults = {
        int(row): Fault("", kind.name, f"{column.lengths[row]} bytes where a {kind.name} has 16")
        for row in np.flatnonzero(odd)
    }
    if odd.any():
        column = TextColumn.of(
            pc.if_else(pa.array(odd), pa.scalar(bytes(16), pa.binary()), column.array())
        )
    values = column.data.reshape(-1, 16)
    if kind.name == "timeuuid":
        for row in np.flatnonzero(~odd & (values[:, 6] >> 4 != 1)):
            version = int(values[row, 6]) >> 4
            faults[int(row)] = Fault("", kind.name, f"a uuid of version {version}, not 1")
    return Column(Cells.fixed(values), faults)


def encode_inets(kind: CqlType, array: Any, _: TextFormat) -> Column:
    """Encode addresses of 4 or 16 bytes each."""
    column = TextColumn.of(array.cast(pa.binary()))
    odd = (column.lengths != 4) & (column.lengths != 16)
    faults = {
        int(row): Fault("", kind.name, f"{column.lengths[row]} bytes where an address has 4 or 16")
        for row in np.flatnonzero(odd)
    }
    return Column(Cells.variable(column.array()), faults)
