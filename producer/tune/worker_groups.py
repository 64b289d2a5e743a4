"""Workers of one command that can do a job with different numbers of processes.

A job goes to the queue of its number. The groups share their processes: with 1, 2 and 4 to choose
from, the first group is one process that consumes all three queues, the second is one more for the
queues of 2 and 4, the third is two more for the queue of 4. So no process starts or ends between
jobs, and there are no more of them than the largest number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from config.settings import Loaded
from producer.services.embedded import LOAD_PREFIX, EmbeddedWorker
from ringhaul.errors import RinghaulError, WorkersUnavailable
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.workers import Workers
from tasks.connect import PARENT_PATIENCE_MS, open_ledger
from tasks.private_queues import private_queue, remove_queue

#: How often the groups are looked for while they start.
LOOK_EVERY_S = 0.1
START_TIMEOUT_S = 120.0


class WorkerGroups:
    """The groups of one run; see the module."""

    def __init__(self, loaded: Loaded, run: str, counts: Sequence[int]) -> None:
        """`loaded`: the workers' settings, with the broker. `counts`: the numbers of
        processes to choose from."""
        self._settings, self._run, self._counts = loaded.settings, run, sorted(set(counts))
        ids = [self._id(count) for count in self._counts]
        sizes = [b - a for a, b in zip([0, *self._counts], self._counts, strict=False)]
        self._groups = [
            EmbeddedWorker(loaded, size, ids[at], ids[at + 1 :]) for at, size in enumerate(sizes)
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the groups; end them at once at the end, whatever they do."""
        with ExitStack() as stack:
            for group in self._groups:
                stack.enter_context(group)
            try:
                yield
            finally:
                for group in self._groups:
                    if not group.dismiss():
                        group.stop(now=True)
                self._forget()

    def wait(self, ledger: Ledger) -> None:
        """Wait until all processes take units. Raises `WorkersUnavailable` if they do not start."""
        workers = Workers(ledger.caller)
        give_up_s = time.monotonic() + START_TIMEOUT_S
        wanted = {group.registered for group in self._groups}
        while not wanted <= set(workers.alive()):
            if time.monotonic() > give_up_s:
                raise WorkersUnavailable(
                    f"the worker processes do not start; see {self._groups[0].log}"
                )
            self.revive()
            wanted = {group.registered for group in self._groups}
            time.sleep(LOOK_EVERY_S)

    def label(self, count: int) -> str:
        """Return the queue label of a job for this many processes."""
        return private_queue(self._id(count))

    def revive(self) -> None:
        """Restart what has died. Raises `ClusterError` if it keeps dying."""
        for group in self._groups:
            group.revive()

    def _id(self, count: int) -> str:
        return f"{LOAD_PREFIX}-tune-{self._run}-c{count}"

    def _forget(self) -> None:
        """Deregister the groups, which were killed and cannot do it themselves, and remove their
        queues. Without Redis, the keepers of other workers do it later."""
        with suppress(RinghaulError):
            caller = open_ledger(self._settings, PARENT_PATIENCE_MS).caller
            for group in self._groups:
                Workers(caller).leave(group.registered)
            for count in self._counts:
                remove_queue(caller, self._settings.broker.key_prefix, self._id(count))
            caller.client.close()
