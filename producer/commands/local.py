"""`ringhaul local`: a real Cassandra and a Valkey on this machine, for trials and tests.

Data goes to stdout (`status`, `env`), everything else to stderr.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from producer.local.cql import run_cqlsh
from producer.local.layout import CQL_PORT
from producer.local.ports import is_free
from producer.local.server_status import ServerStatus, StackStatus
from producer.local.stack import VALKEY_PORT, Stack
from producer.outputs.stdout import json_text
from ringhaul.errors import EXIT_FATAL

if TYPE_CHECKING:
    from config.settings import Settings


@click.group("local")
def local() -> None:
    """Run a real Cassandra and Valkey on this machine, without Docker.

    While it is up, commands without another cluster and broker use this one.
    """


@local.command()
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Cassandra nodes: 1 at 127.0.0.1, several at 127.0.1.1 and up. [default: 1]",
)
@click.option("--heap", metavar="SIZE", help="Heap of each node. [default: 1G; several: 512M]")
@click.option(
    "--auth/--no-auth",
    default=None,
    help="Ask for a password (user and password: cassandra). [default: no]",
)
def up(nodes: int | None, heap: str | None, auth: bool | None) -> None:
    """Start the stack, or its missing servers, and wait until it answers."""
    from producer.local.progress import step_display

    stack = _stack()
    with step_display() as show:
        started = stack.up(nodes, heap=heap, auth=auth, on_progress=show)
    ends = started.endpoints
    click.echo("the local stack is up" if started.anything else "already up", err=True)
    hosts, valkey = ends.contact_points, stack.valkey.port
    taken = _taken(hosts, ends.port, CQL_PORT)
    click.echo(f"  cassandra  {', '.join(hosts)} port {ends.port}{taken}", err=True)
    taken = _taken(["127.0.0.1"], valkey, VALKEY_PORT)
    click.echo(f"  valkey     127.0.0.1 port {valkey}{taken}", err=True)
    click.echo("  other ringhaul commands find it automatically", err=True)


@local.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def status(as_json: bool) -> None:
    """Show the servers of the stack. Exit code 4 when it is not up."""
    state = _stack().status()
    if as_json:
        print(json_text(_as_json(state), indent=2))
    elif not state.servers:
        click.echo("no local stack; `ringhaul local up` starts one", err=True)
    else:
        for server in state.servers:
            click.echo(_line(server))
        if state.partly:
            click.echo("only a part of it is up; `ringhaul local up` starts the rest", err=True)
    if not state.up:
        raise SystemExit(EXIT_FATAL)


@local.command()
@click.option("--wipe", is_flag=True, help="Also remove its data, tables and past jobs included.")
def down(wipe: bool) -> None:
    """Stop the stack. Its data stays for the next `up`."""
    stack = _stack()
    there = bool(stack.status().servers)
    valkey_stopped = stack.down(wipe=wipe)
    if not there:
        click.echo("no local stack; nothing to stop", err=True)
    elif wipe:
        click.echo("the local stack is stopped, its data removed", err=True)
    else:
        click.echo("the local stack is stopped; its data stays", err=True)
    if not valkey_stopped:
        click.echo("Valkey stays up until the command that uses it ends", err=True)


@local.command()
def env() -> None:
    """Print the environment that points ringhaul here: eval "$(ringhaul local env)"."""
    for name, value in _stack().env().items():
        if sys.stdout.isatty():
            click.echo(f"export {name}={_shown(value)}")
        else:
            sys.stdout.buffer.write(os.fsencode(f"export {name}={shlex.quote(value)}\n"))


@local.command()
@click.argument(
    "file", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-f",
    "--file",
    "given_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the statements of this file and end, as cqlsh -f.",
)
@click.option("-e", "--execute", "statements", metavar="STATEMENTS", help="Run these and end.")
def cql(file: Path | None, given_file: Path | None, statements: str | None) -> None:
    """Open cqlsh on the stack: a shell for CQL, also to create keyspaces and tables.

    Statements come from FILE, from -e or from standard input; on a terminal there is a prompt.
    """
    if file is not None and given_file is not None:
        raise click.UsageError("FILE and -f name two files: give one")
    file = file or given_file
    if file is not None and statements is not None:
        raise click.UsageError("give FILE or -e: both have statements")
    settings = _settings()
    arguments = [] if file is None else ["--file", str(file)]
    arguments += [] if statements is None else ["--execute", statements]
    run_cqlsh(_stack().endpoints(), settings.state_dir / "local", arguments)


def _taken(addresses: Sequence[str], port: int, usual: int) -> str:
    """Return why a server does not have its usual port, if that is taken."""
    if port == usual or all(is_free(address, usual) for address in addresses):
        return ""
    return f" (another program has the usual port, {usual})"


def _shown(value: str) -> str:
    """Return the value as a shell reads it back. If it has control characters, use the `$'...'`
    quotes of Bash, zsh and ksh: exact, and without effect on the terminal."""
    if value.isprintable():
        return shlex.quote(value)
    octal = "".join(
        chr(octet) if 32 <= octet < 127 and chr(octet) not in "'\\" else f"\\{octet:03o}"
        for octet in os.fsencode(value)
    )
    return f"$'{octal}'"


def _settings() -> "Settings":
    from config.settings import load_settings  # pydantic: not for --help

    return load_settings().settings


def _stack() -> Stack:
    settings = _settings()
    return Stack(settings.state_dir, settings.cache_dir)


def _line(server: ServerStatus) -> str:
    state = "up" if server.answers else "not answering" if server.pid is not None else "down"
    process = ""
    if server.pid is not None:
        process = f"  pid {server.pid}  {server.rss_bytes / 2**20:,.0f} MiB"
    return f"{server.name:<9}  {server.address}:{server.port}  {state}{process}"


def _as_json(state: StackStatus) -> dict[str, object]:
    servers = [{**asdict(server), "log": str(server.log)} for server in state.servers]
    return {"up": state.up, "servers": servers}
