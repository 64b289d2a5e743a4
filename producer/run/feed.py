"""The feeder: splits the sources and appends units to the ledger while workers process the first
ones.

It runs in a thread beside the watch. Units are sent to the ledger in numbered batches, so a batch
may be sent twice, and after a feeder was killed another one continues after the last unit in the
ledger.
"""

from __future__ import annotations

import threading
import time

from config.secrets import mask
from producer.plan.units import _Stopped, split_sources
from producer.text import count_text
from ringhaul.causes import cause_of
from ringhaul.errors import LedgerUnavailable, RinghaulError, SourceChanged
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.connection import LedgerRefused
from ringhaul.ledger.ledger import BATCH_UNITS, Ledger
from ringhaul.ledger.reading import JobMissing
from ringhaul.records.job import Input
from ringhaul.records.unit import TO_THE_END

#: Units are appended when there are `BATCH_UNITS`, or when this much time has passed: about the
#: time to split two units, so that workers begin with the first units while others are split.
BATCH_S = 0.02
#: Pause before a failure is recorded again that the ledger could not take.
FAIL_PAUSE_S = 1.0


class Feeder:
    """Splits one job. `start` it, watch `finished`; an error ends the job as failed.

    A job that has ended takes no more units; `stop` also ends the long reads between them.
    """

    def __init__(self, ledger: Ledger, job_id: str, epoch: int, job: Input) -> None:
        self._ledger, self._job_id, self._epoch, self._job = ledger, job_id, epoch, job
        self._thread = threading.Thread(target=self._run, name="feeder", daemon=True)
        self._stopped = threading.Event()
        self.bytes_split = 0
        self.error: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The job has ended: stop soon, and write nothing to the ledger."""
        self._stopped.set()

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def join(self, timeout_s: float | None = None) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        """Feed the job to its end, however long Redis is unavailable: the watch reports that."""
        while True:
            try:
                if self.error is None:
                    self._feed()
                else:
                    self._ledger.fail(self._job_id, _words(self.error), cause=cause_of(self.error))
                return
            except LedgerUnavailable:
                # Units are identified by number: starting again adds only the missing units.
                self.bytes_split = 0
            except (JobMissing, JobDamaged, _Stopped):  # the watch reports it
                return
            except LedgerRefused as error:  # the watching command also gets it
                self.error = self.error or error
                return
            except Exception as error:
                if self.error is not None:
                    time.sleep(FAIL_PAUSE_S)
                self.error = self.error or error

    def _feed(self) -> None:
        """Append every unit, then seal; start again from the ledger's count when it lost some."""
        count = self._append(0)
        while count is not None:
            known = self._ledger.seal(self._job_id, self._epoch, count)
            if known is None or known == count:
                return
            # With fewer units the ledger lost some; unless another feeder sealed the job with them.
            if known > count or self._ledger.status(self._job_id).sealed:
                raise SourceChanged(
                    f"the input has {count_text(count, 'unit')} now and had {known:,} when the "
                    "job started: a file was changed since; start again with a new job"
                )
            count = self._append(known)

    def _append(self, first: int) -> int | None:
        """Append the units from number `first` on; their number, None if the job has ended."""
        batch: list[str] = []
        number = batch_first = 0
        due = time.monotonic() + BATCH_S
        for number, unit in enumerate(split_sources(self._job, self._stopped), start=1):
            if number <= first:
                batch_first = number
                continue
            batch.append(unit.pack())
            self.bytes_split += max(unit.length_bytes, 0)
            # After the unit of a complete file, that file is read, which takes long: send now.
            keep = unit.length_bytes != TO_THE_END and time.monotonic() < due
            if keep and len(batch) < BATCH_UNITS:
                continue
            known = self._ledger.add_units(self._job_id, self._epoch, batch_first, batch)
            if known is None:
                return None
            if known < batch_first:  # Redis lost its last second and came back with less
                return self._append(known)
            batch_first, batch = number, []
            due = time.monotonic() + BATCH_S
        if batch and self._ledger.add_units(self._job_id, self._epoch, batch_first, batch) is None:
            return None
        return number


def _words(error: BaseException) -> str:
    if isinstance(error, RinghaulError):
        return mask(str(error))
    return mask(f"splitting failed: {type(error).__name__}: {error}")
