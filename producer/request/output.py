"""Read where the rows of a job go from the options of a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from pathlib import Path

from config.settings import Loaded
from config.values import parse_bytes
from producer.options.job import Showing
from producer.options.option import options_of
from producer.options.output import RowsOutput
from producer.request.input_format import written_text_of
from ringhaul.errors import UsageError
from ringhaul.formats.presets import PRESETS, output_options
from ringhaul.formats.suffixes import compression_of, format_of, plain_name, suffixes_of
from ringhaul.formats.write import OutputFormat
from ringhaul.formats.write.options import SUFFIXES
from ringhaul.output.job import Output
from ringhaul.storage.folders import local_path, open_folder

STDOUT = "-"
#: Options that are fields of an `OutputFormat`, where None is the format's default.
_OF_FORMAT = tuple(
    one.name
    for one in options_of(RowsOutput)
    if one.name in OutputFormat.__dataclass_fields__ and one.default is None
)


def output_of(options: RowsOutput, loaded: Loaded, job_id: str) -> Output:
    """Return the output that the options name; for standard output, a spool folder for the workers.

    Raises `UsageError` for conflicting options, and for a file instead of a folder.
    """
    to_stdout = options.output == STDOUT
    kind = options.format or "csv"
    if to_stdout and (options.max_rows_per_file or options.max_file_size):
        raise UsageError(
            "--max-rows-per-file and --max-file-size apply to files, and -o - makes none: leave "
            "them out, or give -o a folder"
        )
    if to_stdout and kind == "parquet":
        raise UsageError("-o - cannot be Parquet, whose files end with an index: give a folder")
    given = {name: value for name in _OF_FORMAT if (value := getattr(options, name)) is not None}
    if options.dialect is not None:
        if kind != "csv":
            raise UsageError(f"--dialect: only CSV has one, and the format is {kind}")
        given |= output_options(options.dialect, given)
    if to_stdout and kind == "csv":
        given["header"] = False  # once, before the first part, instead of in each part
    url = options.output
    if not to_stdout:
        _refuse_file(options)
    if to_stdout:
        url = str(loaded.settings.state_dir / "spool" / job_id)
    elif "://" not in url:
        url = str(Path(url).absolute())
    size = options.max_file_size
    if to_stdout and given.get("json_layout") not in (None, "lines"):
        raise UsageError(
            f"--json-layout {options.json_layout}: each file has its own array, and -o - writes "
            "parts one after the other: give -o a folder"
        )
    if options.quote_all:
        given["quote_all"] = True
    values = written_text_of(options)
    try:
        form = OutputFormat(kind=kind, values=values, **given)
    except UsageError as error:  # its message starts with the name of the option
        raise UsageError(f"--{error}") from error
    return Output(
        url=url,
        format=form,
        rows_max=options.max_rows_per_file or 0,
        bytes_max=_file_bytes(size) if size else 0,
    )


def _refuse_file(options: RowsOutput) -> None:
    """Raise `UsageError` for an output that is a file, lies in one, or is named like one: the user
    probably expects one file instead of a folder."""
    output = options.output
    path = local_path(output)
    if path is not None:
        there = next(
            place
            for place in (Path(path).absolute(), *Path(path).absolute().parents)
            if os.path.exists(place)
        )
        if not os.path.isdir(there):
            raise UsageError(f"-o {output}: {there} is not a folder; give a folder, empty or new")
        if os.path.isdir(path):
            return
    if output.endswith("/") or os.path.splitext(plain_name(output))[1] not in suffixes_of("auto"):
        return
    one_file = "" if path is None else _one_file(options, path)
    raise UsageError(
        f"-o {output}: an unload writes a folder of files; give a folder ({output}/ if it is to "
        f"have this name){one_file}"
    )


def _one_file(options: RowsOutput, path: str) -> str:
    """Explain how to get the single file that the name of the output suggests."""
    output = options.output
    wanted = {"format": format_of(output)}
    if "parquet" in (wanted["format"], options.format):
        return ""  # never on standard output
    if suffix := compression_of(output):
        written = {known: name for name, known in SUFFIXES.items()}
        if suffix not in written:
            return ""
        wanted["compression"] = written[suffix]
    flags = "".join(
        f" --{name} {value}"
        for name, value in wanted.items()
        if getattr(options, name) is None and value != "csv"
    )
    return f", or `-o -{flags} > {shlex.quote(path)}` for one file"


def _file_bytes(text: str) -> int:
    try:
        size = int(parse_bytes(text))
    except ValueError as error:
        raise UsageError(f"--max-file-size {text!r}: {error}") from error
    if size < 1:
        raise UsageError(f"--max-file-size {text!r}: a file has a byte at least; leave it out")
    return size


def refuse_two_on_stdout(output: str | None, showing: Showing) -> None:
    """Raise `UsageError` if both rows or a result, and messages, would go to standard output.

    `output`: None for a result that goes there, `STDOUT` for rows.
    """
    if output not in (STDOUT, None):
        return
    rows = "-o -" if output == STDOUT else "the result"
    if showing.as_json:
        result = "" if output == STDOUT else "--format json makes the result JSON, "
        raise UsageError(
            f"{rows} and --json both want standard output: give one of them ({result}--summary "
            "FILE has the summary)"
        )
    if showing.progress == "json" and not showing.quiet:
        raise UsageError(f"{rows} and --progress json both want standard output: give one of them")


def refuse_output_options(given: Collection[str], what: str) -> None:
    """Raise `UsageError` for options about rows, if `what` returns none.

    `given`: see `given_options`.
    """
    found = [one.flag for one in options_of(RowsOutput) if one.name in given]
    if found:
        raise UsageError(f"{', '.join(found)}: {what} has no answers: leave such options out")


def wants_header(options: RowsOutput, output: Output) -> bool:
    """Return whether the column names precede the rows on standard output."""
    header = options.header
    if header is None and options.dialect is not None:
        header = PRESETS[options.dialect].header
    return output.format.kind == "csv" and header is not False


def check_empty(url: str) -> None:
    """Raise `UsageError` if the folder has files: they would be taken for the job's."""
    if open_folder(url).sizes():
        raise UsageError(
            f"-o: {url} is not empty; give a new folder ("
            "`ringhaul resume JOB` continues a job that was cut short)"
        )
