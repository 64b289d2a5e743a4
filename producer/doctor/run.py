"""The run of `doctor`: settings in, findings on standard output, exit code out."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from producer.doctor.examine import Subject, examine
from producer.doctor.finding import exit_code
from producer.doctor.render import json_document, pipe_lines, terminal_lines
from producer.outputs.stdout import json_text
from producer.request.password import prompting_for_file
from producer.request.settings import CONNECTION_FLAGS, settle
from producer.request.values import refuse_blank
from ringhaul.plain_text import Lines


def run_doctor(
    connection: Mapping[str, Any],
    config_file: Path | None,
    keyspace: str | None,
    inputs: Sequence[str],
    output: str | None,
    *,
    as_json: bool,
    started_at: float,
) -> int:
    """Check everything and print the findings; return the exit code.

    `connection`: click's values of the options about connections. `started_at`: when the command
    began, by the monotonic clock. Raises `UsageError` for blank values, and as `settle` does.
    """
    flags = dict(connection)
    refuse_blank("--keyspace", keyspace, "a name")
    refuse_blank("--output", output, "a folder or a URL")
    for one in inputs:
        refuse_blank("--input", one, "a path or a URL")
    with prompting_for_file(flags["user"], flags["password_file"]) as path:
        flags["password_file"] = path
        loaded = settle({key: flags[flag] for flag, key in CONNECTION_FLAGS.items()}, config_file)
        findings = examine(loaded, Subject(keyspace=keyspace, inputs=inputs, output=output or ""))
    seconds = time.monotonic() - started_at
    if as_json:
        print(json_text(json_document(findings, seconds), indent=2))
    elif sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        print(Lines("\n".join(terminal_lines(findings, seconds, width))))
    else:
        print(Lines("\n".join(pipe_lines(findings))))
    return exit_code(findings)
