"""The door: any column of the Arrow forms of `ringhaul.cql.types` as text."""

from collections.abc import Callable, Mapping

import pyarrow as pa

from ringhaul.cql.empties import is_marked
from ringhaul.cql.spell.binary import spell_blobs, spell_uuids
from ringhaul.cql.spell.nested import spell_json
from ringhaul.cql.spell.numbers import spell_booleans, spell_floats, spell_integers
from ringhaul.cql.spell.spans import spell_durations
from ringhaul.cql.spell.temporal import spell_dates, spell_times, spell_timestamps
from ringhaul.cql.types import CqlType


def _as_it_is(array: pa.StringArray) -> pa.StringArray:
    return array


#: Scalar type -> its column as text. Nulls stay nulls.
SPELLERS: Mapping[str, Callable[[pa.Array], pa.StringArray]] = {
    "ascii": _as_it_is,
    "text": _as_it_is,
    "varchar": _as_it_is,
    "inet": _as_it_is,
    "decimal": _as_it_is,
    "varint": _as_it_is,
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
    """The values of a column as text; a null stays a null. Nested values are JSON.

    `array` has the form `cql_type.arrow()`, or its marked one (`ringhaul.cql.empties`). Two values
    that differ have texts that differ, but for NaNs, which all read the same.
    """
    if cql_type.scalar:
        return array if is_marked(cql_type, array) else SPELLERS[cql_type.name](array)
    return spell_json(cql_type, array, SPELLERS)


def json_of(cql_type: CqlType, array: pa.Array) -> pa.StringArray:
    """The values of a column as JSON, by the table in `nested`; a null stays an Arrow null."""
    return spell_json(cql_type, array, SPELLERS)
