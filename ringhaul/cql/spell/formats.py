"""The spellers of a `TextFormat`, which write values as the options of reading describe them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.cql.empties import EMPTY, is_marked
from ringhaul.cql.spell.column import SPELLERS
from ringhaul.cql.spell.nested import Spellers, spell_json
from ringhaul.cql.spell.patterned import spell_moments
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.types import CqlType

_NUMBERS = (
    *("tinyint", "smallint", "int", "bigint", "counter"),
    *("varint", "decimal", "float", "double"),
)


class Speller:
    """Writes columns as text, spelled as a `TextFormat` says; None: in the usual way."""

    def __init__(self, fmt: TextFormat | None) -> None:
        self._in_json: Spellers = SPELLERS if fmt is None else _in_json(fmt)
        self._scalars: Mapping[str, Callable[[pa.StringArray], pa.StringArray]] = (
            {} if fmt is None else _scalars(fmt)
        )

    def text_of(self, cql_type: CqlType, array: pa.Array) -> pa.StringArray:
        """Format a column as `spell.text_of` does, with the options of the format."""
        if not cql_type.scalar:
            return self.json_of(cql_type, array)
        marked = is_marked(cql_type, array)
        text = array if marked else self._in_json[cql_type.name](array)
        respell = self._scalars.get(cql_type.name)
        if respell is None:
            return text
        if not marked:
            return respell(text)
        return pc.if_else(pc.equal(text, EMPTY), text, respell(text))

    def json_of(self, cql_type: CqlType, array: pa.Array) -> pa.StringArray:
        """Format a column as `spell.json_of` does; JSON keeps its own numbers, true and false."""
        return spell_json(cql_type, array, self._in_json)


def _in_json(fmt: TextFormat) -> Spellers:
    found = dict(SPELLERS)
    for kind in ("timestamp", "date", "time"):
        found[kind] = partial(_moments, kind, fmt)
    if fmt.blob == "base64":  # not "any": base64 may begin with 0x, like hex
        found["blob"] = _base64
    return found


def _moments(kind: str, fmt: TextFormat, array: pa.Array) -> pa.StringArray:
    return spell_moments(kind, array, fmt)


def _base64(array: pa.Array) -> pa.StringArray:
    return pa.array(
        [
            None if value is None else base64.b64encode(value).decode()
            for value in array.to_pylist()
        ],
        pa.string(),
    )


def _scalars(fmt: TextFormat) -> dict[str, Callable[[pa.StringArray], pa.StringArray]]:
    """Return functions from the usual text of a scalar to the format's text, outside of JSON."""
    usual = TextFormat()
    found: dict[str, Callable[[pa.StringArray], pa.StringArray]] = {}
    if (fmt.true_words[0], fmt.false_words[0]) != (usual.true_words[0], usual.false_words[0]):
        found["boolean"] = lambda text: pc.if_else(
            pc.equal(text, "true"), fmt.true_words[0], fmt.false_words[0]
        )
    if not fmt.plain_numbers:
        found |= dict.fromkeys(_NUMBERS, partial(_separated, fmt))
    return found


def _separated(fmt: TextFormat, text: pa.StringArray) -> pa.StringArray:
    if not fmt.thousands_sep:
        return pc.replace_substring(text, ".", fmt.decimal_sep)
    return pa.array(
        [None if one is None else grouped(one, fmt) for one in text.to_pylist()], pa.string()
    )


def grouped(number: str, fmt: TextFormat) -> str:
    """Write a number with the separators of a format: `1,234.5`. Linear in its length."""
    exponent_at = next((at for at, c in enumerate(number) if c in "eE"), len(number))
    mantissa, exponent = number[:exponent_at], number[exponent_at:]
    sign = mantissa[: len(mantissa) - len(mantissa.lstrip("+-"))]
    whole, point, fraction = mantissa[len(sign) :].partition(".")
    if whole.isdigit() and len(whole) > 3 and whole[0] != "0":
        first = len(whole) % 3 or 3
        groups = [whole[:first], *(whole[at : at + 3] for at in range(first, len(whole), 3))]
        whole = fmt.thousands_sep.join(groups)
    return f"{sign}{whole}{fmt.decimal_sep if point else ''}{fraction}{exponent}"
