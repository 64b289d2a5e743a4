"""Rows of values for a statement's markers, from files that are read as a load reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ringhaul.ledger.kinds import JobKind
from ringhaul.records.job import Input
from ringhaul.records.load_rules import InputRules, rules_of
from ringhaul.records.row_fields import TTL, WRITETIME, RowField
from ringhaul.records.spec import values_in, written


@dataclass(frozen=True, kw_only=True)
class StatementValues(Input):
    """Files with a row of values for each request, read into a table that has the statement's
    markers as its columns and no key. Without sources, the values come from ranges."""

    #: Markers that stand for write times and for TTLs, and are read as such.
    marker_timestamps: tuple[str, ...] = ()
    marker_ttls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rules: InputRules, **facts: Any) -> StatementValues:
        """Return the values that are read by these rules. `facts`: fields that planning found
        out, before the rules."""
        return cls(**rules_of(InputRules, rules) | facts)

    @property
    def meanings(self) -> Mapping[str, RowField]:
        """Markers that stand for the write time or the TTL of a row."""
        times = dict.fromkeys(self.marker_timestamps, WRITETIME)
        return times | dict.fromkeys(self.marker_ttls, TTL)

    def to_json(self) -> dict[str, Any]:
        return written(self) | _OF_LOADS

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StatementValues:
        return cls(**values_in(cls, data))


#: Keys that workers of older versions read: values were the spec of a load, which writes nothing.
_OF_LOADS: dict[str, Any] = {
    "kind": JobKind.LOAD,
    "cluster_name": "",
    "base_us": 0,
    "ttl_s": 0,
    "consistency": "LOCAL_QUORUM",
    "strategy": "pipeline",
    "exact_timestamps": False,
    "sstable_bytes": 2**30,
    "in_flight_requests_max": 0,
    "batch_rows_max": 0,
    "sstables": None,
    "stream": None,
}
