"""The calls of the client: each runs one command and returns its result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, cast

from ringhaul.client import tables
from ringhaul.client.arguments import option_arguments, takes_options
from ringhaul.client.calls import Calls, Wait, what
from ringhaul.client.connection import (
    NO_BROKER,
    Connection,
    command_line,
    one_document,
    settings_env,
)
from ringhaul.client.display import Watcher
from ringhaul.client.errors import COMPLETE, UsageError
from ringhaul.client.folder import Folder
from ringhaul.client.job import Job
from ringhaul.client.job_result import job_error
from ringhaul.client.options import (
    CountOptions,
    ExecOptions,
    LoadOptions,
    LookupOptions,
    PeekOptions,
    QueryOptions,
    UnloadOptions,
    VerifyOptions,
)
from ringhaul.client.results import (
    JobStatus,
    LoadResult,
    Plan,
    ReadResult,
    StatementResult,
    VerifyResult,
    read_jobs,
)
from ringhaul.client.statement import returns_rows

if TYPE_CHECKING:
    import pyarrow as pa

PathLike: TypeAlias = str | os.PathLike[str]
#: A table in memory (see `tables.is_table`), or one or several paths, globs and URLs.
Data: TypeAlias = Any

#: User and password in the URL of a broker.
_USER = re.compile(r"://[^@/]*@")


class Client:
    """Runs `ringhaul` commands. It holds no connection, and several threads may use it.

    `contact_points`, `port`, `secure_connect_bundle`, `local_dc`, `user`, `password_file`, `broker`
    and `config` are the options of the command; what is left out is as configured. `password` is an
    alternative to `password_file`. `environment`: more variables for the command. `command`: the
    `ringhaul` of another environment; default: this environment's.

    `shared_folder`: a folder that this host and all workers read and write under the same path.
    With it, the broker's workers also load tables of this process, and write what it reads. Without
    it, the command's own workers do that, on this host.
    """

    def __init__(
        self,
        *,
        contact_points: str | Sequence[str] | None = None,
        port: int | None = None,
        secure_connect_bundle: PathLike | None = None,
        local_dc: str | None = None,
        user: str | None = None,
        password: str | None = None,
        password_file: PathLike | None = None,
        broker: str | None = None,
        config: PathLike | None = None,
        environment: Mapping[str, str] | None = None,
        command: PathLike | Sequence[str] | None = None,
        shared_folder: PathLike | None = None,
    ) -> None:
        if password is not None and password_file is not None:
            raise UsageError("password and password_file: give one of them")
        # An empty variable counts as not set: a set variable would contradict the other argument.
        if secure_connect_bundle is not None and contact_points is None:
            contact_points = ""
        elif contact_points is not None and secure_connect_bundle is None:
            secure_connect_bundle = ""
        settings = {
            "cluster.contact_points": contact_points,
            "cluster.port": port,
            "cluster.secure_connect_bundle": secure_connect_bundle,
            "cluster.local_dc": local_dc,
            "cluster.user": user,
            "cluster.password_file": password_file,
            "broker.url": None if broker == NO_BROKER else broker,
            "config": config,
        }
        self._connection = Connection(
            command=command_line(command),
            env={**(environment or {}), **settings_env(settings)},
            no_broker=broker == NO_BROKER,
            password=password,
        )
        folder = Folder(None if shared_folder is None else Path(shared_folder))
        self._calls = Calls(connection=self._connection, folder=folder)
        self._given = {
            **{name.rpartition(".")[2]: value for name, value in settings.items() if value},
            "broker": broker and _USER.sub("://***@", broker),
            "command": command,
            "shared_folder": shared_folder,
            "password": password and "***",
            "environment": environment and sorted(environment),
        }
        self._given.pop("url", None)

    def __repr__(self) -> str:
        given = (f"{name}={value!r}" for name, value in self._given.items() if value)
        return f"Client({', '.join(given)})"

    @takes_options("load")
    def load(
        self,
        data: Data,
        table: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[LoadOptions],
    ) -> LoadResult:
        """Load a table in memory, or files, into `KEYSPACE.TABLE`.

        Rejects are not an error: see `rejected`, `check()` and the option `max_errors`. With
        `job_id` the call may be repeated: it follows, continues or reports the job of that id.
        """
        found = self._calls.on_records(
            "load", data, table, Wait(progress=progress, timeout=timeout), options
        )
        return cast(LoadResult, found)

    @takes_options("verify")
    def verify(
        self,
        data: Data,
        table: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[VerifyOptions],
    ) -> VerifyResult:
        """Compare a table in memory, or files, with `KEYSPACE.TABLE`; change nothing.

        Differences are not an error: see `missing`, `differing` and `check()`.
        """
        found = self._calls.on_records(
            "verify", data, table, Wait(progress=progress, timeout=timeout), options
        )
        return cast(VerifyResult, found)

    @takes_options("load")
    def submit_load(self, files: Data, table: str, **options: Unpack[LoadOptions]) -> Job:
        """Start a load of files and return its job, which the broker's workers do."""
        return self._calls.submit_records("load", files, table, options)

    @takes_options("verify")
    def submit_verify(self, files: Data, table: str, **options: Unpack[VerifyOptions]) -> Job:
        """Start a comparison of files and return its job, which the broker's workers do."""
        return self._calls.submit_records("verify", files, table, options)

    @takes_options("load")
    def plan_load(self, data: Data, table: str, **options: Unpack[LoadOptions]) -> Plan:
        """Return what a load would do. It reads a sample, and writes nothing."""
        return self._calls.planned_load(data, table, options)

    @takes_options("unload")
    def unload(
        self,
        table_or_query: str,
        folder: PathLike,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[UnloadOptions],
    ) -> ReadResult:
        """Write the rows of a table, or of a SELECT, to an empty folder or a URL."""
        arguments = [what(table_or_query), f"--output={os.fspath(folder)}"]
        arguments += option_arguments("unload", options)
        found = self._calls.run("unload", arguments, [], Wait(progress=progress, timeout=timeout))
        return cast(ReadResult, found)

    @takes_options("unload")
    def read(
        self,
        table_or_query: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[UnloadOptions],
    ) -> pa.Table:
        """Return all rows of a table, or of a SELECT, which must fit into memory."""
        wait = Wait(progress=progress, timeout=timeout)
        with self._calls.unloaded(table_or_query, wait, options) as folder:
            return tables.read_parts(folder)

    @takes_options("unload")
    @contextmanager
    def batches(
        self,
        table_or_query: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[UnloadOptions],
    ) -> Iterator[pa.RecordBatchReader]:
        """Yield a reader over the rows of a table, or of a SELECT, in bounded memory. Until the end
        of the block they are in files of a temporary folder."""
        wait = Wait(progress=progress, timeout=timeout)
        with (
            self._calls.unloaded(table_or_query, wait, options) as folder,
            tables.open_parts(folder) as reader,
        ):
            yield reader

    @takes_options("query")
    def query(
        self,
        sql: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[QueryOptions],
    ) -> pa.Table:
        """Return the result of a SELECT: aggregates of a table, or with LIMIT a few of its rows."""
        wait = Wait(progress=progress, timeout=timeout)
        return self._calls.result("query", option_arguments("query", options), [sql], wait)

    @takes_options("peek")
    def peek(self, table: str, **options: Unpack[PeekOptions]) -> pa.Table:
        """Return a few rows of a table (`rows`, by default 5)."""
        option_arguments("peek", options)  # refuses unknown options
        keyspace = options.get("keyspace")
        columns = options.get("columns") or "*"
        listed = columns if isinstance(columns, str) else ", ".join(columns)
        where = f" WHERE {options['where']}" if options.get("where") else ""
        name = f"{keyspace}.{table}" if keyspace else table
        return self.query(f"SELECT {listed} FROM {name}{where} LIMIT {options.get('rows', 5)}")

    @takes_options("count")
    def count(
        self,
        table: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[CountOptions],
    ) -> int:
        """Return the number of rows of a table, or with `where` only of the matching rows."""
        arguments = [f"--table={table}", *option_arguments("count", options)]
        return self._calls.count(arguments, Wait(progress=progress, timeout=timeout))

    @takes_options("count")
    def counts(
        self,
        table: str,
        *,
        by: Literal["range", "host"] | None = None,
        top: int | None = None,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[CountOptions],
    ) -> pa.Table:
        """Return the number of rows for each token range or host (`by`), or of the `top` largest
        partitions."""
        if (by is None) == (top is None):
            raise UsageError("give by='range', by='host' or top=N")
        how = f"--by={by}" if by is not None else f"--top={top}"
        arguments = [f"--table={table}", how, *option_arguments("count", options)]
        return self._calls.result("count", arguments, [], Wait(progress=progress, timeout=timeout))

    @takes_options("lookup")
    def lookup(
        self,
        keys: Data,
        table: str,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[LookupOptions],
    ) -> pa.Table:
        """Return the rows of a list of keys, in its order; keys without a row have none.

        `keys`: a table whose columns have the names of the key, a file, or with the option `key`
        a list of values or tuples. Raises `RejectedRecords` for keys that cannot be read.
        """
        columns, job = options.get("key") or (), options.get("job_id")
        columns = columns.split(",") if isinstance(columns, str) else list(columns)
        arguments = [f"--table={table}", *option_arguments("lookup", options)]
        wait = Wait(progress=progress, timeout=timeout)
        found = self._calls.on_values(
            "lookup", keys, arguments, [], wait, key=columns, answers=True, job_id=job
        )
        if found.exit_code != COMPLETE:
            raise job_error(found, message=found.problem())
        return found.answers

    @takes_options("exec")
    def exec(
        self,
        statement: str,
        params: Data | None = None,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[ExecOptions],
    ) -> StatementResult:
        """Run a CQL statement once for each row of `params`, whose columns have the names of the
        `?` markers. Answers of a SELECT or of a condition are in `answers`.

        `params`: a table, a list of dictionaries or a file; or the option `range`.
        """
        return self._calls.on_values(
            "exec",
            params,
            option_arguments("exec", options),
            [statement],
            Wait(progress=progress, timeout=timeout),
            answers=returns_rows(statement),
            job_id=options.get("job_id"),
        )

    @takes_options("unload")
    def submit_unload(
        self, table_or_query: str, folder: PathLike, **options: Unpack[UnloadOptions]
    ) -> Job:
        """Start an unload and return its job, which the broker's workers do. `wait` of the job
        writes the manifest at its end."""
        arguments = [what(table_or_query), f"--output={os.fspath(folder)}"]
        arguments += option_arguments("unload", options)
        return self._calls.submit("unload", arguments, [])

    @takes_options("unload")
    def plan_unload(
        self, table_or_query: str, folder: PathLike, **options: Unpack[UnloadOptions]
    ) -> Plan:
        """Return what an unload would do. It reads no row."""
        arguments = [what(table_or_query), f"--output={os.fspath(folder)}"]
        return self._calls.plan("unload", [*arguments, *option_arguments("unload", options)], [])

    def jobs(self, *, limit: int = 20) -> list[JobStatus]:
        """Return the last jobs of the broker, newest first."""
        document, ended = self._connection.read_document("status", ["--json", f"--limit={limit}"])
        return read_jobs(one_document(document, ended))

    def job(self, job: str) -> Job:
        """Return a job by its id: a job of the broker, or of this client's own workers."""
        own = job in self._connection.own_jobs
        connection = self._connection.with_own_workers() if own else self._connection
        return Job(connection, job, self._calls.folder)
