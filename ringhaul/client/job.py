"""One job: its state, its end, its rejects and events."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from ringhaul.client.arguments import option_arguments
from ringhaul.client.connection import Connection, one_document
from ringhaul.client.display import Watcher
from ringhaul.client.errors import ClientError
from ringhaul.client.folder import Folder
from ringhaul.client.job_result import JobResult
from ringhaul.client.options import ResumeOptions
from ringhaul.client.process import running
from ringhaul.client.results import (
    Event,
    Reject,
    read_events,
    read_reject,
    read_result,
)
from ringhaul.client.tables import reject_table, require_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa


class Job:
    """A job by its id. Making one runs no command."""

    def __init__(self, connection: Connection, job: str, folder: Folder) -> None:
        self._connection, self._folder = connection, folder
        self.id = job

    def __repr__(self) -> str:
        return f"Job({self.id!r})"

    def status(self) -> JobResult:
        """Return the state of the job: its result, also while it runs (`state`)."""
        document, ended = self._connection.read_document("status", ["--json"], [self.id])
        return read_result(one_document(document, ended))

    def wait(self, *, progress: Watcher = None, timeout: float | None = None) -> JobResult:
        """Return the result once the job has ended. Ctrl-C and a timeout leave the job running.

        Raises a `JobError` if it did not end well. Rejects are not an error.
        """
        return self._connection.run_job(
            "status", ["--follow"], [self.id], progress=progress, timeout=timeout
        )

    def resume(
        self,
        *,
        progress: Watcher = None,
        timeout: float | None = None,
        **options: Unpack[ResumeOptions],
    ) -> JobResult:
        """Run what is missing of a job that ended early, or continue a paused one and wait for it.

        Raises as `wait` does.
        """
        arguments = ["--json", *option_arguments("resume", options)]
        messages = self._connection.read_messages(
            "resume", arguments, [self.id], progress=progress, timeout=timeout
        )
        if messages.detached is not None:
            return self.wait(progress=progress, timeout=timeout)
        return messages.result()

    def cancel(self) -> None:
        """End the job. Its workers stop within 2 s. Raises `UsageError` if it has ended."""
        self._run("cancel")

    def pause(self) -> None:
        """Hold the job. Raises `UsageError` if it has ended."""
        self._run("pause")

    def rejects(self, *, limit: int | None = None) -> Generator[Reject, None, None]:
        """Yield the records that were rejected, or differ; at most `limit` of them."""
        options = ["--json"] if limit is None else ["--json", f"--limit={limit}"]
        connection = self._connection
        argv = connection.argv("errors", options, [self.id])
        with running(argv, connection.env, password=connection.password) as command:
            for line in command.lines():
                reject = read_reject(json.loads(line))
                yield replace(reject, file=self._folder.shown(reject.file))
            ended = command.ended()
        if ended.exit_code:
            raise ended.error()

    def rejects_table(self, *, limit: int | None = None) -> pa.Table:
        """Return the rejects as a table, for `.to_pandas()`; at most `limit` of them."""
        require_pyarrow()
        return reject_table(self.rejects(limit=limit))

    def events(self) -> list[Event]:
        """Return what happened to the job, in order."""
        document, ended = self._connection.read_document(
            "status", ["--events", "--json"], [self.id]
        )
        return read_events(one_document(document, ended))

    def _run(self, command: str) -> None:
        _, ended = self._connection.read_document(command, names=[self.id])
        if ended.exit_code:
            error: ClientError = ended.error()
            raise error
