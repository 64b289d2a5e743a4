"""Where a unit lies: a file and its bytes, token ranges, or rows of ranges of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from producer.spool_names import path_as_given
from ringhaul.plain_text import as_line
from ringhaul.records.unit import TO_THE_END, LoadUnit
from ringhaul.scan.ranges import unpack_ranges
from ringhaul.storage.access import mask_url
from tasks.kinds import is_statement_job

if TYPE_CHECKING:
    from ringhaul.records.job import Input
    from tasks.kinds import Job


class UnitPlaces:
    """The places of the units of one job."""

    def __init__(self, job_id: str, job: Job) -> None:
        self._job_id = job_id
        self._input: Input | None = job.input
        self._spans: Sequence[str] = job.spans if is_statement_job(job) else ()

    def place(self, spec: str | None) -> str:
        """Return the place of the unit with this spec; empty if there is none, or a strange one."""
        if spec is None:
            return ""
        try:
            return as_line(self._place(spec))
        except (ValueError, IndexError, TypeError):
            return ""

    def _place(self, spec: str) -> str:
        if self._input is not None:
            return self._of_file(self._input, spec)
        if self._spans:
            first, _, end = spec.partition("-")
            return f"rows {int(first):,} to {int(end) - 1:,} of {' '.join(self._spans)}"
        ranges = unpack_ranges(spec)
        more = f" and {len(ranges) - 1:,} more ranges" if len(ranges) > 1 else ""
        return f"tokens {ranges[0].lo} to {ranges[0].hi}{more}"

    def _of_file(self, job: Input, spec: str) -> str:
        unit = LoadUnit.unpack(spec)
        file = mask_url(path_as_given(job.sources[unit.source].file.path, self._job_id))
        if unit.length_bytes == TO_THE_END:
            return f"{file}, from byte {unit.offset_bytes:,} to its end"
        end = unit.offset_bytes + unit.length_bytes
        return f"{file}, bytes {unit.offset_bytes:,} to {end:,}"
