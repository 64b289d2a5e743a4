"""Which jobs a list shows: filters and paging over the heads of all jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from ringhaul.errors import UsageError
from ringhaul.ledger.job_list import JobHead
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.states import JobState
from ringhaul.schedule.runs import schedule_of

#: Jobs of a page, and the most that the API returns at once.
PAGE_JOBS = 50
LIMIT_MAX = 500
_TEXT_CHARS_MAX = 100

#: Names of sets of states beside the states themselves, with the words for them.
_OPEN, _ENDED, _TROUBLE = "open", "ended", "trouble"
STATES: Mapping[str, str] = {
    "": "all states",
    _OPEN: "running or paused",
    _ENDED: "ended",
    _TROUBLE: "ended with trouble",
    **{state.value: state.value for state in JobState},
    "PAUSED": "PAUSED",
}
KINDS: Mapping[str, str] = {"": "all kinds", **{kind.value: kind.value for kind in JobKind}}


@dataclass(frozen=True, kw_only=True)
class JobQuery:
    """Filters and the place in the list."""

    state: str = ""  #: One of STATES.
    kind: str = ""  #: One of KINDS.
    text: str = ""  #: In the job's id or its table.
    schedule: str = ""  #: The name of a schedule.
    limit: int = PAGE_JOBS
    offset: int = 0

    @property
    def filters(self) -> bool:
        """Whether it leaves jobs out."""
        return bool(self.state or self.kind or self.text or self.schedule)

    @property
    def page(self) -> int:
        """The number of the page, from 1."""
        return self.offset // self.limit + 1

    def at_page(self, page: int) -> JobQuery:
        """Return the same query for another page."""
        return replace(self, offset=(max(page, 1) - 1) * self.limit)

    def to_url(self) -> str:
        """Return the query part of a page's URL, with its question mark; empty for the first page
        of all jobs."""
        given = {
            "state": self.state,
            "kind": self.kind,
            "q": self.text,
            "schedule": self.schedule,
            "page": str(self.page) if self.page > 1 else "",
        }
        words = urlencode({name: value for name, value in given.items() if value})
        return f"?{words}" if words else ""


@dataclass(frozen=True, kw_only=True)
class Found:
    """The jobs of one page of a list, and how many there are."""

    heads: tuple[JobHead, ...]
    found: int  #: Jobs that the filters let through.
    total: int
    open: int  #: Running and paused jobs, whatever the filters.


def read_query(given: Mapping[str, str], *, paged: bool) -> JobQuery:
    """Read a query from the arguments of a URL. `paged`: a place is a page, not limit and offset.

    Raises UsageError for values that it does not know.
    """
    state, kind = given.get("state", ""), given.get("kind", "")
    if state not in STATES:
        raise UsageError(f'no state "{state}": give one of {", ".join(filter(None, STATES))}')
    if kind not in KINDS:
        raise UsageError(f'no kind "{kind}": give one of {", ".join(filter(None, KINDS))}')
    query = JobQuery(
        state=state,
        kind=kind,
        text=given.get("q", "").strip()[:_TEXT_CHARS_MAX],
        schedule=given.get("schedule", "").strip()[:_TEXT_CHARS_MAX],
    )
    if paged:
        return query.at_page(_number(given, "page", 1, least=1))
    return replace(
        query,
        limit=min(_number(given, "limit", PAGE_JOBS, least=1), LIMIT_MAX),
        offset=_number(given, "offset", 0, least=0),
    )


def find_jobs(heads: Iterable[JobHead], query: JobQuery) -> Found:
    """Return the page of the list that the query wants: jobs that have not ended first, then the
    newest first."""
    all_heads = heads if isinstance(heads, Sequence) else list(heads)
    chosen = [head for head in all_heads if _matches(head, query)]
    chosen.sort(key=lambda head: (head.ended, -head.created_ms, head.job))
    return Found(
        heads=tuple(chosen[query.offset : query.offset + query.limit]),
        found=len(chosen),
        total=len(all_heads),
        open=sum(not head.ended for head in all_heads),
    )


def _matches(head: JobHead, query: JobQuery) -> bool:
    if query.kind and head.kind != query.kind:
        return False
    if query.schedule and schedule_of(head.job) != query.schedule:
        return False
    words = query.text.casefold()
    if words and words not in head.job.casefold() and words not in head.table.casefold():
        return False
    match query.state:
        case "":
            return True
        case state if state == _OPEN:
            return not head.ended
        case state if state == _ENDED:
            return head.ended
        case state if state == _TROUBLE:
            return head.ended and head.state != JobState.COMPLETE.value
        case state:
            return head.state == state


def _number(given: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = given.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
        raise UsageError(f"{name} is a whole number from {least}")
    return int(text)
