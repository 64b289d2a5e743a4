"""Options of `verify`."""

from __future__ import annotations

from dataclasses import dataclass

from producer.options.load import LoadOptions
from producer.options.option import again


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(LoadOptions):
    """`verify`, whose options have other words for what a load would change."""

    nulls: str = again(
        LoadOptions,
        "nulls",
        help="How an empty field is compared. unset: not at all; tombstone: the column must be "
        "null.",
    )
    max_errors: str | None = again(
        LoadOptions,
        "max_errors",
        help="Stop when more records are not the same [1000]; -1: never.",
        brief="Stop when more records are not the same [1000].",
    )
    consistency: str | None = again(
        LoadOptions, "consistency", help="Consistency level for reads [LOCAL_QUORUM]."
    )
