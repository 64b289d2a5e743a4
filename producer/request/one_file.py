"""Read from the options of an unload whether its rows go to one file, and to which."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, replace

from producer.options.reads import UnloadOptions
from ringhaul.cluster.schema import TableSchema
from ringhaul.errors import UsageError
from ringhaul.formats.suffixes import compression_of, format_of, plain_name, suffixes_of
from ringhaul.formats.write.options import COMPRESSIONS, SUFFIXES
from ringhaul.output.file_names import FileNames
from ringhaul.output.job import Output
from ringhaul.output.one_file import parts_folder
from ringhaul.storage.access import is_url
from ringhaul.storage.folders import local_path

#: The name of one file in a folder, if none is given.
TABLE_NAME = "{table}"
#: Suffix of a compressed file -> the compression that is written for it.
_COMPRESSION_OF = {suffix: name for name, suffix in SUFFIXES.items() if suffix} | {".zstd": "zstd"}


@dataclass(frozen=True)
class OneFile:
    """One file that an unload makes."""

    folder: str  #: as given
    name: str  #: empty: by a pattern, once the table is known


def one_file_of(options: UnloadOptions) -> OneFile | None:
    """Return the file that the options name; None for a folder of files or standard output.

    Raises `UsageError` for a place that cannot be a file.
    """
    output = options.output
    if output == "-":
        given = options.single_file and "--single-file"
        if given := given or (options.file_name_format is not None and "--file-name-format"):
            raise UsageError(f"{given} applies to files, and -o - makes none: leave it out")
        return None
    path = local_path(output)
    if output.endswith("/") or (path is not None and os.path.isdir(path)):
        return OneFile(output, "") if options.single_file else None
    named = os.path.splitext(plain_name(output))[1] in suffixes_of("auto")
    if not named and not options.single_file:
        return None
    if path is not None and os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"-o {output}: is neither a file nor a folder; name a file to be made")
    folder, name = posixpath.split(output)
    if is_url(output) and folder.endswith((":", ":/")):
        raise UsageError(f"-o {output}: names no file; give one within it, such as {output}/a.csv")
    if options.file_name_format is not None:
        raise UsageError(
            f"--file-name-format names the files of a folder, and -o {output} is one file: give "
            f"its folder ({folder or '.'}/ with --single-file), or leave it out"
        )
    return OneFile(folder or ".", name)


def with_file_format(options: UnloadOptions, file: OneFile) -> UnloadOptions:
    """Return the options with the format and compression of the file's name, and its folder as the
    output. Raises `UsageError` if the options contradict the name, or ask for several files."""
    if options.max_rows_per_file or options.max_file_size:
        raise UsageError(
            "--max-rows-per-file and --max-file-size make several files, and you want one: "
            "leave them out, or give a folder without --single-file"
        )
    if not file.name:
        return options
    kind, compression = options.format, options.compression
    if os.path.splitext(plain_name(file.name))[1] in suffixes_of("auto"):
        kind = format_of(file.name)
        if options.format not in (None, kind):
            raise UsageError(
                f"-o {options.output}: has the name of {kind}, and --format is {options.format}: "
                "leave one of them out"
            )
    if suffix := compression_of(file.name):
        compression = _COMPRESSION_OF.get(suffix)
        if compression not in COMPRESSIONS[kind or "csv"]:
            raise UsageError(
                f"-o {options.output}: {suffix} is not written for {kind or 'csv'}; a name ends "
                f"with {' '.join(_COMPRESSION_OF) if kind != 'parquet' else '.parquet'}"
            )
        if options.compression not in (None, compression):
            raise UsageError(
                f"-o {options.output}: has the name of {compression}, and --compression is "
                f"{options.compression}: leave one of them out"
            )
    return replace(options, output=file.folder, format=kind, compression=compression)


def check_names(options: UnloadOptions, output: Output, *, single: bool) -> Output:
    """Return the output with the pattern of its files' names. Raises `UsageError` for an unusable
    pattern."""
    pattern = options.file_name_format
    if pattern is None:
        return replace(output, names=TABLE_NAME) if single else output
    FileNames(pattern, output.format.suffix, single=single)
    return replace(output, names=pattern)


def in_one_file(output: Output, file: OneFile, table: TableSchema, job: str) -> Output:
    """Return the output whose parts become one file. `output`: its folder."""
    name = file.name
    if not name:
        names = FileNames(output.names, output.format.suffix, single=True)
        name = names.name(1, keyspace=table.keyspace, table=table.table, job=job)
    path = posixpath.join(output.url, name)
    listed = not file.name
    return replace(output, file=path, url=parts_folder(path, job), listed=listed, names="")
