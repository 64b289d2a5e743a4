"""Calls whose command reads or writes files for a moment: tables in memory, results, keys."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringhaul.client import tables
from ringhaul.client.arguments import option_arguments
from ringhaul.client.connection import Connection, Messages
from ringhaul.client.display import Watcher
from ringhaul.client.errors import COMPLETE, ClientError, UsageError
from ringhaul.client.folder import Folder
from ringhaul.client.frames import is_frame
from ringhaul.client.job import Job
from ringhaul.client.job_result import JobResult, job_error
from ringhaul.client.results import Plan, StatementResult, read_plan
from ringhaul.client.statement import is_select

if TYPE_CHECKING:
    import pyarrow as pa

Options = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wait:
    """How a call waits for its job."""

    progress: Watcher = None
    timeout: float | None = None  #: seconds


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The commands of one client, with the folder for their files."""

    connection: Connection
    folder: Folder

    def run(
        self, command: str, arguments: Sequence[str], names: Sequence[str], wait: Wait
    ) -> JobResult:
        """Run a command that follows its job; return the result."""
        return self.connection.run_job(
            command, arguments, names, progress=wait.progress, timeout=wait.timeout
        )

    def on_records(
        self, command: str, data: object, table: str, wait: Wait, options: Options
    ) -> JobResult:
        """Run a load or a verification of files, or of a table in memory."""
        arguments = [f"--table={table}", *option_arguments(command, options)]
        checked = command == "verify"
        with self._sources(data, options.get("job_id"), checked=checked) as (calls, names):
            return calls.run(command, arguments, names, wait)

    def planned_load(self, data: object, table: str, options: Options) -> Plan:
        """Return the plan of a load."""
        arguments = [f"--table={table}", *option_arguments("load", options)]
        with self._sources(data, None) as (calls, names):
            return calls.plan("load", arguments, names)

    def plan(self, command: str, arguments: Sequence[str], names: Sequence[str]) -> Plan:
        """Return the plan of a command."""
        heard = self.connection.read_messages(command, ["--dry-run", "--json", *arguments], names)
        if heard.plan is None:
            raise heard.error()
        return read_plan(heard.plan)

    def submit(self, command: str, arguments: Sequence[str], names: Sequence[str]) -> Job:
        """Start a command's job, leave it to the broker's workers, and return it."""
        heard = self.connection.read_messages(command, ["--detach", "--json", *arguments], names)
        if heard.job is None or not _is_done(heard):
            raise heard.error()
        return Job(self.connection, heard.job, self.folder)

    def submit_records(self, command: str, files: object, table: str, options: Options) -> Job:
        """Start a load or a verification of files."""
        if tables.is_table(files):
            raise UsageError(
                f"submit_{command} takes files, which stay where they are: write the table to one, "
                f"or wait for it with {command}"
            )
        arguments = [f"--table={table}", *option_arguments(command, options)]
        return self.submit(command, arguments, tables.file_names(files))

    def result(
        self, command: str, arguments: Sequence[str], names: Sequence[str], wait: Wait
    ) -> pa.Table:
        """Return the result of a count or a query."""
        tables.require_pyarrow()
        with self._written(command, "parquet", arguments, names, wait) as place:
            return tables.read_file(place)

    def count(self, arguments: Sequence[str], wait: Wait) -> int:
        """Return the result of a count of all rows. It needs no pyarrow."""
        with self._written("count", "json", arguments, [], wait) as place:
            return int(json.loads(place.read_text())["count"])

    @contextmanager
    def _written(
        self, command: str, form: str, arguments: Sequence[str], names: Sequence[str], wait: Wait
    ) -> Iterator[Path]:
        """Yield the file with the result of a count or a query."""
        with self.folder.of_call() as folder:
            place = folder / "result"
            where = [f"--output={place}", f"--format={form}", "--json", *arguments]
            heard = self.connection.read_messages(
                command, where, names, progress=wait.progress, timeout=wait.timeout
            )
            if heard.summary is not None:
                heard.result()  # raises unless it is complete
            elif heard.ended.exit_code:  # a few rows, without a job
                raise heard.error()
            yield place

    @contextmanager
    def unloaded(self, table_or_query: str, wait: Wait, options: Options) -> Iterator[Path]:
        """Yield a folder with the rows as Parquet."""
        tables.require_pyarrow()
        _refuse(options, "job_id", "read and batches keep no files: use unload, and its folder")
        _refuse(options, "format", "rows come as a table")
        with self.folder.of_call() as folder:
            place = folder / "rows"
            arguments = [what(table_or_query), f"--output={place}", "--format=parquet"]
            arguments += option_arguments("unload", options)
            found = self._near().run("unload", arguments, [], wait)
            if found.exit_code != COMPLETE and not options.get("skip_failed_ranges"):
                raise job_error(found, message=found.problem())
            yield place

    def on_values(
        self,
        command: str,
        values: object,
        arguments: Sequence[str],
        names: Sequence[str],
        wait: Wait,
        *,
        key: Sequence[str] = (),
        answers: bool,
        job_id: object = None,
    ) -> StatementResult:
        """Run a lookup or an exec; its answers come as a table, if it has any.

        Raises `UsageError` for a `job_id` with answers: a repeated call would have none to return.
        """
        if answers:
            tables.require_pyarrow()
            if job_id is not None:
                raise UsageError(
                    "job_id: the answers of this call come as a table, which is not kept; to "
                    "repeat it safely, write them to files with the command"
                )
        option = "keys" if command == "lookup" else "params"
        with ExitStack() as stack:
            folder = stack.enter_context(self.folder.of_call())
            given, calls, place = list(arguments), self, folder / "values.parquet"
            if values is not None:
                file, in_memory = _values(values, key, place)
                if in_memory and job_id is not None:
                    place = stack.enter_context(self.folder.named(place))
                given.append(f"--{option}={place if in_memory else file}")
                calls = self._near() if in_memory else self
            if answers:
                given += [f"--output={folder / 'answers'}", "--format=parquet"]
                calls = self._near()
            with _called(place, f"the {option}"):
                found = calls.run(command, given, names, wait)
            assert isinstance(found, StatementResult)
            if not answers:
                return found
            return replace(found, answers=tables.read_parts(folder / "answers"))

    @contextmanager
    def _sources(
        self, data: object, job_id: object, *, checked: bool = False
    ) -> Iterator[tuple[Calls, list[str]]]:
        """Yield the names of sources, and the calls whose workers can read them. `checked`: see
        `write_table`."""
        if not tables.is_table(data):
            yield self, tables.file_names(data)
            return
        with ExitStack() as stack:
            place = stack.enter_context(self.folder.of_call()) / "table.parquet"
            tables.write_table(data, place, checked=checked)
            if job_id is not None:
                place = stack.enter_context(self.folder.named(place))
            with _called(place, tables.noun(data)):
                yield self._near(), [str(place)]

    def _near(self) -> Calls:
        """Return the calls whose workers read and write in the folder."""
        if self.folder.is_shared:
            return self
        return replace(self, connection=self.connection.with_own_workers())


def what(table_or_query: str) -> str:
    """Return the option of an unload for a table or a SELECT."""
    return f"--{'query' if is_select(table_or_query) else 'table'}={table_or_query}"


@contextmanager
def _called(place: Path, noun: str) -> Iterator[None]:
    """Write `noun` in errors for the path of the file with a table in memory."""
    try:
        yield
    except ClientError as error:
        error.rename(str(place), noun)
        raise


def _is_done(heard: Messages) -> bool:
    """Return whether a detached job was left to its workers, or had already ended."""
    return heard.detached is not None or heard.summary is not None


def _refuse(options: Options, name: str, why: str) -> None:
    if options.get(name) is not None:
        raise UsageError(f"{name}: {why}")


def _values(values: object, key: Sequence[str], place: Path) -> tuple[str, bool]:
    """Return the file with keys or values, and whether it was in memory."""
    if isinstance(values, Iterator):
        values = list(values)
    if tables.is_table(values) and not (key and _is_plain_list(values)):
        tables.write_table(values, place)
        return str(place), True
    if key and not isinstance(values, str | os.PathLike):
        tables.write_keys(values, key, place)
        return str(place), True
    names = tables.file_names(values)
    if len(names) > 1:
        raise UsageError(
            "give one file, a table, or for keys the option key beside a list of values"
        )
    return names[0], False


def _is_plain_list(values: object) -> bool:
    """Return whether it is a list of values or tuples, not one of dictionaries or frames."""
    if not isinstance(values, Sequence):
        return not is_frame(values)
    first = values[0]
    return not (isinstance(first, Mapping) or is_frame(first))
