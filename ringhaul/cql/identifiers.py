"""uuid and timeuuid from text."""

import binascii

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import (
    Encoded,
    TextColumn,
    all_bad,
)
from ringhaul.cql.text_format import TextFormat

_UUID_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_HEX4 = "[0-9a-fA-F]{4}"
_UUID_FORM = f"^{_HEX4}{_HEX4}-{_HEX4}-{_HEX4}-{_HEX4}-{_HEX4}{_HEX4}{_HEX4}$"

Bytes = NDArray[np.uint8]


def encode_uuids(column: TextColumn, cql_type: str, _: TextFormat) -> Encoded:
    """Encode uuid or timeuuid (which must have version 1), written in the form 8-4-4-4-12."""
    column = column.trimmed()
    values = _uuids(column)
    bad = []
    if values is None:
        done = column.matches(_UUID_FORM)
        taken = _uuids(column.filter(done))
        assert taken is not None
        values = np.zeros((len(column), 16), np.uint8)
        values[done] = taken
        bad = all_bad(
            column,
            np.flatnonzero(~done),
            cql_type,
            lambda text: f"{text} is not a UUID such as 123e4567-e89b-12d3-a456-426614174000",
        )
    else:
        done = np.ones(len(column), np.bool_)
    if cql_type == "timeuuid":
        other = done & (values[:, 6] >> 4 != 1)
        if other.any():
            bad += all_bad(
                column,
                np.flatnonzero(other),
                cql_type,
                lambda text: f"{text} is not a UUID of version 1",
            )
    return Encoded(Cells.fixed(values), bad)


def _uuids(column: TextColumn) -> Bytes | None:
    """Return bytes of shape (n, 16), or None unless every value has the canonical form."""
    if len(column.data) != len(column) * _UUID_LENGTH:
        return None
    if not (column.lengths == _UUID_LENGTH).all():
        return None
    characters = column.data.reshape(-1, _UUID_LENGTH)
    if not all((characters[:, place] == 0x2D).all() for place in _DASHES):
        return None
    digits = column.data.tobytes().translate(None, b"-")
    if len(digits) != len(column) * 32:
        return None
    try:
        return np.frombuffer(binascii.unhexlify(digits), np.uint8).reshape(-1, 16)
    except binascii.Error:
        return None
