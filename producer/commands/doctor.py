"""`ringhaul doctor`: check that everything is ready for jobs."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

import rich_click as click

from producer.commands.options import connection_options
from producer.outputs.stdout import json_text
from ringhaul.plain_text import Lines


@click.command("doctor")
@click.option("--keyspace", metavar="NAME", help="Check the replication of this one [all].")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="PATH|URL",
    help="A file, glob, folder or URL that workers must see. May be repeated.",
)
@click.option(
    "-o", "--output", metavar="FOLDER|URL", help="A folder or URL that workers must write to."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@connection_options
def doctor_command(
    keyspace: str | None,
    inputs: tuple[str, ...],
    output: str | None,
    as_json: bool,
    config_file: Any,
    **flags: Any,
) -> int:
    """Check broker, cluster, workers and this host, and say what to do.

    Changes nothing."""
    started_at = time.monotonic()
    from producer.doctor.examine import Subject, examine
    from producer.doctor.finding import exit_code
    from producer.doctor.render import json_document, pipe_lines, terminal_lines
    from producer.request.password import prompting_for_file
    from producer.request.settings import CONNECTION_FLAGS, settle
    from producer.request.values import refuse_blank

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
