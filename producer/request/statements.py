"""What a lookup or an exec was asked to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from producer.request.input_format import dialect_of, text_of, values_options
from producer.request.load import LoadRequest
from ringhaul.cql.names import read_names
from ringhaul.errors import UsageError
from ringhaul.option_names import VALUES_PREFIX


def wanted_names(options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The columns that --key and --columns name. Raises `UsageError` for what is no name."""
    return read_names(options["key"], "--key"), read_names(options["columns"], "--columns")


def check_inputs(options: Mapping[str, Any], given: Collection[str]) -> None:
    """Raise `UsageError` for options of `ringhaul exec` that do not say where its values are.

    `given`: see `options.given_options`.
    """
    if (options["params"] is not None) == bool(options["ranges"]):
        raise UsageError("give --params FILE, or one --range for each marker")
    if options["ranges"] and (values_options(dict.fromkeys(given)) or "nulls" in given):
        raise UsageError(
            "the --values options and --nulls are about a file: give none of them with --range"
        )


def values_request(options: Mapping[str, Any], kind: str) -> LoadRequest:
    """How the rows of values are read. Raises `UsageError` naming the option at fault."""
    given = values_options(options)
    return LoadRequest(
        keyspace=kind,
        table="values",
        file_format=given["format"],
        header=given["header"],
        by_name=True,
        dialect=dialect_of(given, VALUES_PREFIX),
        text=text_of(given, VALUES_PREFIX),
    )
