"""Where the rows of a job go, from the options of a command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from config.settings import Loaded
from config.values import parse_bytes
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.read.folders import open_folder
from ringhaul.read.job import Output

STDOUT = "-"


def output_of(options: Mapping[str, Any], loaded: Loaded, job_id: str) -> Output:
    """The output that the options name; standard output is a spool folder for the workers.

    Raises `UsageError` for options that do not go together.
    """
    to_stdout = options["output"] == STDOUT
    kind = options["format"] or "csv"
    if to_stdout and kind == "parquet":
        raise UsageError("-o - cannot be Parquet, whose files end with an index: give a folder")
    given = {
        name: options[name]
        for name in ("compression", "delimiter", "quote", "header", "null")
        if options[name] is not None
    }
    if to_stdout and kind == "csv":
        given["header"] = False  # once, before the first part, and not in each
    url = options["output"]
    if to_stdout:
        url = str(loaded.settings.state_dir / "spool" / job_id)
    elif "://" not in url:
        url = str(Path(url).absolute())
    size = options["max_file_size"]
    return Output(
        url=url,
        format=OutputFormat(kind=kind, **given),
        rows_max=options["max_rows_per_file"] or 0,
        bytes_max=_file_bytes(size) if size else 0,
    )


def _file_bytes(text: str) -> int:
    try:
        return int(parse_bytes(text))
    except ValueError as error:
        raise UsageError(f"--max-file-size {text!r}: {error}") from error


def refuse_two_on_stdout(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` where rows or a result, and messages, would both go to standard output."""
    if options.get("output") not in (STDOUT, None):
        return
    of_rows = options.get("output") == STDOUT
    rows = "-o -" if of_rows else "the result"
    if options["as_json"]:
        result = "" if of_rows else "--format json makes the result JSON, "
        raise UsageError(
            f"{rows} and --json both want standard output: give one of them ({result}--summary "
            "FILE has the summary)"
        )
    if options["progress"] == "json" and not options["quiet"]:
        raise UsageError(f"{rows} and --progress json both want standard output: give one of them")


def wants_header(options: Mapping[str, Any], output: Output) -> bool:
    """Whether the columns' names come before the rows on standard output."""
    return output.format.kind == "csv" and options["header"] is not False


def check_empty(url: str) -> None:
    """Raise `UsageError` if the folder has files: they would be taken for the job's."""
    if open_folder(url).sizes():
        raise UsageError(
            f"-o: {url} is not empty; give a new folder (an unload that was cut short goes on with "
            "`ringhaul resume JOB`)"
        )
