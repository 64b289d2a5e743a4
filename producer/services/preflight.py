"""Check, before a job exists, that the workers' hosts see its input and its output.

Workers open files themselves. A file that is missing on one host would fail the job at the first
unit that this host takes, perhaps after an hour. This check fails at once, with the host's name.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from config.celery_config import QUEUE_LOAD
from producer.text import count_text
from ringhaul.errors import LedgerUnavailable, OutputUnusable, SetupUnusable
from ringhaul.ledger.host_requests import HostRequests
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Worker
from ringhaul.plain_text import lines_of
from ringhaul.storage.access import is_url
from ringhaul.storage.preflight import request

if TYPE_CHECKING:
    from ringhaul.sources.source import SourceFile  # readers of files

#: A live worker answers within half a second that its check has started.
BEGIN_S = 3.0
#: A started check answers with its result within this time (`tasks.parent.preflight`).
END_S = 12.0
_PAUSE_S = 0.02
#: Between two looks at the answers it waits this many times as long as a look took, up to
#: `_PAUSE_S_MAX`: reading the answers of 5,000 workers costs 30 ms of CPU.
_PAUSE_SHARE = 10
_PAUSE_S_MAX = 0.5
#: Files checked: of more files, an evenly spread sample. A thousand on a mount take a second.
PATHS_MAX = 1000
#: URLs checked. Hosts differ in network and rights, not in single files.
URLS_MAX = 4
HOSTS_SHOWN = 5
_WRONG_SHOWN = 3


class Visibility:
    """One check on all hosts. `start` it, plan meanwhile, then `judge` the answers.

    A context manager: leaves nothing in the ledger or the output.
    """

    def __init__(self, ledger: Ledger | None, *, only_look: bool = False) -> None:
        """`ledger`: None for workers of this command, which see what it sees. `only_look`: no job
        follows, so that a folder made for the output is removed in any case."""
        self._only_look = only_look
        self._requests = None if ledger is None else HostRequests(ledger.caller)
        self._name = ""
        self._probe = _Probe()
        self._started_at = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._probe.remove(failed=self._only_look or error is not None)
        if self._requests is not None and self._name:
            with suppress(LedgerUnavailable):
                self._requests.forget(self._name)

    def start(self, files: Sequence[SourceFile], output: str = "") -> None:
        """Send the check to all workers. Raises `OutputUnusable` if this host cannot write."""
        if self._requests is None or not (files or output):
            return
        if output and not is_url(output):
            self._probe.write(output)
        opened = dict.fromkeys(file.stored for file in files)
        what = request(
            [(file.path, file.size_bytes, file.version) for file in sample([*opened])],
            output,
            self._probe.name,
        )
        self._started_at = time.monotonic()
        self._name = self._requests.send({"queues": [QUEUE_LOAD], "what": what})

    def judge(self, workers: Sequence[Worker], warn: Callable[[str], None]) -> None:
        """Wait for the answers of `workers`, which will work on the job.

        Raises `SetupUnusable` naming the hosts that see something else.
        """
        views = self.views(workers)
        wrong = [view for view in views if view.wrong]
        if wrong:
            raise SetupUnusable(_differences(wrong))
        for text in dict.fromkeys(view.doubt for view in views if view.doubt):
            warn(text)

    def views(self, workers: Sequence[Worker]) -> list[HostView]:
        """Wait for the answers, and return one view for each worker; none if nothing was sent."""
        if not self._name:
            return []
        answers = self._wait(workers)
        return [_view(worker.host, answers.get(worker, {})) for worker in workers]

    def _wait(self, workers: Sequence[Worker]) -> dict[Worker, dict[str, Any]]:
        """Return the answers once all have arrived, or no more can be expected."""
        assert self._requests is not None
        while True:
            began_at = time.monotonic()
            passed_s = began_at - self._started_at
            answers = self._requests.answers(self._name)
            open_ = [worker for worker in workers if not _final(answers.get(worker, {}))]
            services = [worker for worker in open_ if worker in answers]
            if not open_ or passed_s > END_S or (passed_s > BEGIN_S and not services):
                return answers
            pause_s = _PAUSE_SHARE * (time.monotonic() - began_at)
            time.sleep(min(max(_PAUSE_S, pause_s), _PAUSE_S_MAX))


class HostView(NamedTuple):
    """How a worker's host sees the inputs and the output."""

    host: str
    wrong: Sequence[tuple[str, str]]  #: path or URL, and why; empty: it sees what this host sees
    doubt: str = ""  #: why it is not known; empty: it is


class _Probe:
    """A file in the output's folder that every host must find there."""

    def __init__(self) -> None:
        self.name = ""
        self._folder = ""
        self._made: list[str] = []

    def write(self, folder: str) -> None:
        name = f".ringhaul-{secrets.token_hex(8)}"
        try:
            self._make(folder)
            with open(os.path.join(folder, name), "xb"):
                self._folder, self.name = folder, name
        except OSError as error:
            self.remove(failed=True)
            raise OutputUnusable(
                f"{folder}: cannot be written: {error.strerror or error}"
            ) from error

    def _make(self, folder: str) -> None:
        if not folder or os.path.isdir(folder):
            return
        self._make(os.path.dirname(folder))
        with suppress(FileExistsError):
            os.mkdir(folder)
            self._made.append(folder)

    def remove(self, *, failed: bool) -> None:
        """Remove the file; and the folders that were made for it if there will be no job."""
        with suppress(OSError):
            if self.name:
                os.unlink(os.path.join(self._folder, self.name))
        self.name = ""
        while failed and self._made:
            with suppress(OSError):
                os.rmdir(self._made.pop())


def try_output(folder: str) -> None:
    """Write a small file into a folder of this host, and remove it and all folders made for it.
    Raises `OutputUnusable`."""
    probe = _Probe()
    probe.write(folder)
    probe.remove(failed=True)


def sample(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files to check: at most `PATHS_MAX` paths and `URLS_MAX` URLs, with the last."""
    paths = [file for file in files if not is_url(file.path)]
    urls = [file for file in files if is_url(file.path)]
    return _spread(paths, PATHS_MAX) + _spread(urls, URLS_MAX)


def _spread(files: Sequence[SourceFile], count: int) -> list[SourceFile]:
    if len(files) <= count:
        return list(files)
    return [files[number * (len(files) - 1) // (count - 1)] for number in range(count)]


def _final(answer: dict[str, Any]) -> bool:
    return bool(answer.keys() - {"begun"})


#: What to do about hosts that see something else.
SHARE_ADVICE = (
    "workers read and write by themselves: use a mount that all hosts share, under the same path, "
    "or an object store (s3://), and give every host the rights to it"
)


def _differences(wrong: Sequence[HostView]) -> str:
    """Format the hosts' differences from this host, and the remedy."""
    hosts = dict.fromkeys(one.host for one in wrong)
    lines = [
        f"{', '.join(list(hosts)[:HOSTS_SHOWN])}"
        + (f" and {len(hosts) - HOSTS_SHOWN} more" if len(hosts) > HOSTS_SHOWN else "")
        + (" does" if len(hosts) == 1 else " do")
        + " not see what this host sees:"
    ]
    seen: dict[str, None] = {}
    for host in list(hosts)[:HOSTS_SHOWN]:
        found = [pair for one in wrong if one.host == host for pair in one.wrong]
        unlike = list(dict.fromkeys(found))
        seen.update((f"  {host}: {name}: {why}", None) for name, why in unlike[:_WRONG_SHOWN])
        if len(unlike) > _WRONG_SHOWN:
            seen[f"  {host}: and {count_text(len(unlike) - _WRONG_SHOWN, 'more file')}"] = None
    return lines_of(
        [
            *lines,
            *seen,
            SHARE_ADVICE,
        ]
    )


def _view(host: str, answer: dict[str, Any]) -> HostView:
    if "wrong" in answer:
        return HostView(host, [(str(name), str(why)) for name, why in answer["wrong"]])
    return HostView(host, [], _doubt(host, answer))


def _doubt(host: str, answer: dict[str, Any]) -> str:
    """Return a warning that a host's check gave no result, with the reason."""
    if "stuck" in answer:
        return f"{host} got no answer about {answer['stuck'] or 'the input'}: check its mounts"
    if "failed" in answer:
        return f"{host} could not check the input: {answer['failed']}"
    return f"{host} did not answer whether it sees the input; if it does not, the job will fail"
