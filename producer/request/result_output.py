"""Where the result of a count or a query goes: what the options say, what the job keeps of that,
and whether it is possible."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from producer.options.job import Showing
from producer.options.output import ResultPlace
from producer.outputs.whole_file import check_replacing
from producer.request.output import STDOUT, refuse_two_on_stdout
from ringhaul.errors import UsageError
from ringhaul.formats.suffixes import compression_of
from ringhaul.output.job import ResultOutput


def result_output(options: ResultPlace, default: ResultOutput | None = None) -> ResultOutput:
    """Return the output that -o and --format name, with `default` for what they leave open."""
    output = default or ResultOutput()
    path, form = options.output, options.result_format
    if path is not None:
        output = replace(output, path="" if path == STDOUT else str(Path(path).absolute()))
    return output if form is None else replace(output, form=form)


def lasting(output: ResultOutput) -> ResultOutput:
    """Return what a job keeps of an output. It does not keep a pipe or a device: for another
    process, a name such as a shell's `/dev/fd/63` means nothing, or something else."""
    path = Path(output.path)
    return replace(output, path="") if path.exists() and not path.is_file() else output


def check_result_output(output: ResultOutput, showing: Showing) -> None:
    """Raise `UsageError` for an output that cannot take a result, before there is a result.
    `showing`: the command's options for its messages, which may also go to standard output."""
    refuse_two_on_stdout(output.path or None, showing)
    if not output.path:
        if output.form == "parquet" and sys.stdout.isatty():
            raise UsageError("Parquet is not for a terminal: give -o FILE or redirect")
        return
    path = Path(output.path)
    if packed := compression_of(output.path):
        raise UsageError(
            f"-o {path}: a result is not compressed; name it without {packed}, or pipe it "
            "(--format csv | gzip)"
        )
    if path.is_dir():
        raise UsageError(f"-o {path} is a folder: give a file")
    if not path.parent.is_dir():
        raise UsageError(f"-o {path}: there is no folder {path.parent}")
    check_replacing(output.path)
