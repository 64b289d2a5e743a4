"""uuid and timeuuid from text."""

import binascii
import re

import numpy as np
from numpy.typing import NDArray

from ringhaul.cql.cells import Cells
from ringhaul.cql.column import (
    BadValue,
    Encoded,
    TextColumn,
    all_bad,
    parse_left,
    quote,
)
from ringhaul.cql.hints import hint, known
from ringhaul.cql.text_format import TextFormat

_UUID_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_HEX4 = "[0-9a-fA-F]{4}"
_UUID_FORM = f"^{_HEX4}{_HEX4}-{_HEX4}-{_HEX4}-{_HEX4}-{_HEX4}{_HEX4}{_HEX4}$"
_ANY_DASHES = "[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"
_OTHER_FORMS = re.compile(
    rf"(?P<plain>{_ANY_DASHES})|\{{(?P<braced>{_ANY_DASHES})\}}|(?i:urn:uuid:)(?P<named>{_ANY_DASHES})"
)

Bytes = NDArray[np.uint8]


def encode_uuids(column: TextColumn, cql_type: str, fmt: TextFormat) -> Encoded:
    """Encode uuid or timeuuid (which must have version 1), written in the form 8-4-4-4-12."""
    column = column.trimmed()
    values = _uuids(column)
    bad: list[BadValue] = []
    if values is None:
        done = column.matches(_UUID_FORM)
        taken = _uuids(column.filter(done))
        assert taken is not None
        values = np.zeros((len(column), 16), np.uint8)
        values[done] = taken
        left = np.flatnonzero(~done)
        left_values, bad = parse_left(
            column, left, cql_type, lambda text: _parse_uuid(text, fmt), bytes(16)
        )
        values[left] = np.frombuffer(b"".join(left_values), np.uint8).reshape(-1, 16)
        done[left] = True
        done[[row for row, _ in bad]] = False
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


def _parse_uuid(text: str, fmt: TextFormat) -> bytes:
    """Return the bytes of a UUID in one of the other forms. Raises `ValueError`."""
    refused = f"{quote(text)} is not a UUID such as 123e4567-e89b-12d3-a456-426614174000"
    form = _OTHER_FORMS.fullmatch(text)
    if form is None:
        raise ValueError(refused)
    digits = (form["plain"] or form["braced"] or form["named"]).replace("-", "").lower()
    if not fmt.accepts("uuids"):
        shown = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        raise ValueError(f"{refused}{hint([known({'accept': 'uuids'}, shown)])}")
    return bytes.fromhex(digits)


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
