"""Convert typed columns (Arrow arrays, as from Parquet) to cells.

| CQL | accepted Arrow types, besides the form in `ringhaul.cql.types` |
|---|---|
| every type | string: as a CSV cell, nested values as JSON; dictionaries and large types; null |
| ascii, text, varchar | binary that holds such text |
| tinyint ... bigint | integers of any width; floats without a fraction; decimals of scale 0 |
| varint, decimal | integers; decimals |
| float, double | floats of any width, rounded once; integers that are exact |
| timestamp | timestamps of any unit, with a zone or in the load's own; dates; integers, as in CSV |
| date | date64, and timestamps at midnight |
| time | time32 and time64 of any unit |
| duration | duration of any unit |
| uuid, timeuuid, inet, blob | binary, fixed or not |
| list, set, vector | lists of all three kinds |
| map | list of structs with two fields |
| tuple | struct, by position |
| user-defined type | struct, by field name; fields that are missing are null |

A record is rejected if a value cannot be represented exactly in its type; but timestamps finer than
milliseconds are floored, as in text.
"""

from ringhaul.cql.typed.column import encode_typed, refusal

__all__ = ["encode_typed", "refusal"]
