"""The walk through a Parquet footer, compiled: 2 ns a byte where Python takes 120."""

from __future__ import annotations

from ringhaul.cql.compiled import COUNT, INT64_TABLE, INT64S, PAGE, kernel
from ringhaul.formats import parquet_walk

walk_footer = kernel(COUNT(PAGE, INT64S, INT64_TABLE, INT64_TABLE))(parquet_walk.walk_footer)
