"""WHERE and SELECT over a table's rows: the part that Cassandra evaluates, and the rest in Arrow.

Pure. Batches have the Arrow forms of `ringhaul.cql.types`; names are spelt as in CQL.
"""

from ringhaul.query.aggregate import Aggregation, Partial
from ringhaul.query.errors import QueryError
from ringhaul.query.scope import Fetch
from ringhaul.query.select import Select, parse_select
from ringhaul.query.where import Where, parse_where

__all__ = [
    "Aggregation",
    "Fetch",
    "Partial",
    "QueryError",
    "Select",
    "Where",
    "parse_select",
    "parse_where",
]
