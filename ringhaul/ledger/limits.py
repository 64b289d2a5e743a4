"""The limit of a job's rejects: a number of records, or a share of those seen."""

import re
from dataclasses import dataclass

from ringhaul.errors import UsageError

#: A share is meaningless for the first few records: one bad header line would be 100 %.
PERCENT_RECORDS_MIN = 1000

#: The group matches a share. Duplicated from `config/values.py` (layering forbids the import); kept
#: in sync by a test.
MAX_ERRORS = re.compile(r"-1|[0-9]{1,15}|(100(?:\.0{1,4})?|[0-9]{1,2}(?:\.[0-9]{1,4})?) ?%")


@dataclass(frozen=True, kw_only=True)
class ErrorLimit:
    """The most rejects with which a job continues. Unset limits are -1."""

    #: Rejected records; one more stops the job.
    records_max: int = -1
    #: Rejected records per million seen, checked from `PERCENT_RECORDS_MIN` records on.
    per_million_max: int = -1

    @classmethod
    def parse(cls, text: str) -> "ErrorLimit":
        """Parse `N` (up to 15 digits), `N%` (up to four decimals), or `-1` for no limit.

        Raises:
          UsageError: the text is none of these, or a share above 100 %.
        """
        text = text.strip()
        match = MAX_ERRORS.fullmatch(text)
        if match is None:
            raise UsageError(
                f'max errors "{text}" is not understood: give a number of records such as 1000, '
                "a share such as 5%, or -1 for no limit (at most 15 digits, four decimals)"
            )
        if match[1] is None:
            return cls(records_max=int(text))
        whole, _, fraction = match[1].partition(".")
        return cls(per_million_max=int(whole) * 10_000 + int(fraction.ljust(4, "0")))

    def exceeded(self, *, rejected: int, seen: int) -> bool:
        """Return whether `rejected` of `seen` records are more than allowed."""
        if 0 <= self.records_max < rejected:
            return True
        return (
            self.per_million_max >= 0
            and seen >= PERCENT_RECORDS_MIN
            and rejected * 1_000_000 > self.per_million_max * seen
        )
