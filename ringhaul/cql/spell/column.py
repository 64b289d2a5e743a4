"""Format any column in the Arrow forms of `ringhaul.cql.types` as text. Entry point of `spell`."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from ringhaul.cql.empties import is_marked
from ringhaul.cql.spell.binary import spell_blobs, spell_uuids
from ringhaul.cql.spell.nested import spell_json
from ringhaul.cql.spell.numbers import spell_booleans, spell_floats, spell_integers
from ringhaul.cql.spell.spans import spell_durations
from ringhaul.cql.spell.temporal import spell_dates, spell_times, spell_timestamps
from ringhaul.cql.types import CqlType


def _unchanged(array: pa.StringArray) -> pa.StringArray:
    return array


#: Scalar type -> its column as text. Nulls stay nulls.
SPELLERS: Mapping[str, Callable[[pa.Array], pa.StringArray]] = {
    "ascii": _unchanged,
    "text": _unchanged,
    "varchar": _unchanged,
    "inet": _unchanged,
    "decimal": _unchanged,
    "varint": _unchanged,
    "tinyint": spell_integers,
    "smallint": spell_integers,
    "int": spell_integers,
    "bigint": spell_integers,
    "counter": spell_integers,
    "float": spell_floats,
    "double": spell_floats,
    "boolean": spell_booleans,
    "timestamp": spell_timestamps,
    "date": spell_dates,
    "time": spell_times,
    "duration": spell_durations,
    "uuid": spell_uuids,
    "timeuuid": spell_uuids,
    "blob": spell_blobs,
}


def text_of(cql_type: CqlType, array: pa.Array) -> pa.StringArray:
    """Format the values of a column as text; nulls stay null. Nested values become JSON.

    `array` has the form `cql_type.arrow()`, or its marked form (`ringhaul.cql.empties`). Different
    values have different texts, except that all NaNs have one text.
    """
    if cql_type.scalar:
        return array if is_marked(cql_type, array) else SPELLERS[cql_type.name](array)
    return spell_json(cql_type, array, SPELLERS)


def json_of(cql_type: CqlType, array: pa.Array) -> pa.StringArray:
    """Format the values of a column as JSON, by the table in `nested`; nulls stay Arrow nulls."""
    return spell_json(cql_type, array, SPELLERS)
