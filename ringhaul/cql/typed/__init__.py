"""Convert typed columns (Arrow arrays, as from Parquet) to cells.

| CQL | accepted Arrow types, besides the form in `ringhaul.cql.types` |
|---|---|
| every type | string: as a CSV cell, nested values as JSON; dictionaries and large types; null |
| ascii, text, varchar | binary that holds such text; numbers, booleans, dates and times as text |
| tinyint ... bigint, varint | integers of any width; floats and decimals without a fraction |
| decimal | integers; decimals; floats, by the fewest digits that read back the same |
| float, double | floats of any width and decimals, rounded once; integers that are exact |
| boolean | integers, by the words for true and false |
| timestamp | timestamps of any unit, with a zone or in the load's own; dates; integers, as in CSV |
| date | date64, and timestamps at midnight |
| time | time32 and time64 of any unit |
| duration | duration of any unit; intervals of Arrow, and of Parquet as 12 bytes |
| uuid, timeuuid, inet, blob | binary, fixed or not |
| list, set, vector | lists of all three kinds |
| map | list of structs with two fields; struct whose fields have one type, without its nulls |
| tuple | struct, by position |
| user-defined type | struct, by field name in any case; fields that are missing are null |

A record is rejected if a value cannot be represented exactly in its type; but timestamps finer than
milliseconds are floored, as in text.
"""

from ringhaul.cql.typed.column import encode_typed, refusal

__all__ = ["encode_typed", "refusal"]
