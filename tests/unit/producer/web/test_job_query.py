"""Filters and paging of lists of jobs."""

from __future__ import annotations

import pytest

from producer.web.job_query import (
    LIMIT_MAX,
    PAGE_JOBS,
    STATES,
    Found,
    JobQuery,
    find_jobs,
    read_query,
)
from ringhaul.errors import UsageError
from ringhaul.ledger.job_list import JobHead
from tests.cases import each

HEADS = [
    JobHead("ld-1", "COMPLETE", 1000, 2000, "load", "shop.orders"),
    JobHead("ld-2", "RUNNING", 2000, None, "load", "shop.lines"),
    JobHead("ul-3", "FAILED", 3000, 4000, "unload", "shop.orders"),
    JobHead("nightly-20261120T013000Z-1", "PARTIAL", 4000, 5000, "load", "shop.Orders"),
    JobHead("qy-5", "PAUSED", 500, None, "query", "shop.lines"),
    JobHead("ld-6", "", 0),  # unreadable
]


def names(page: Found) -> list[str]:
    return [head.job for head in page.heads]


def found(**query: object) -> list[str]:
    return names(find_jobs(HEADS, JobQuery(**query)))  # type: ignore[arg-type]


def test_running_jobs_come_first_then_the_newest() -> None:
    assert found() == ["ld-2", "qy-5", "nightly-20261120T013000Z-1", "ul-3", "ld-1", "ld-6"]


@each(
    ("query", "jobs"),
    [
        ({"state": "open"}, {"ld-2", "qy-5"}),
        ({"state": "ended"}, {"nightly-20261120T013000Z-1", "ul-3", "ld-1", "ld-6"}),
        ({"state": "trouble"}, {"nightly-20261120T013000Z-1", "ul-3", "ld-6"}),
        ({"state": "PAUSED"}, {"qy-5"}),
        ({"kind": "unload"}, {"ul-3"}),
        ({"text": "ORDERS"}, {"ld-1", "ul-3", "nightly-20261120T013000Z-1"}),
        ({"text": "ld-"}, {"ld-1", "ld-2", "ld-6"}),
        ({"schedule": "nightly"}, {"nightly-20261120T013000Z-1"}),
        ({"schedule": "night"}, set()),
        (
            {"state": "ended", "kind": "load", "text": "orders"},
            {"ld-1", "nightly-20261120T013000Z-1"},
        ),
    ],
)
def test_each_filter_leaves_jobs_out(query: dict[str, str], jobs: set[str]) -> None:
    page = find_jobs(HEADS, JobQuery(**query))  # type: ignore[arg-type]
    assert set(names(page)) == jobs
    assert (page.found, page.total, page.open) == (len(jobs), len(HEADS), 2)


def test_pages_are_parts_of_the_list() -> None:
    many = [JobHead(f"ld-{n:03}", "COMPLETE", n) for n in range(PAGE_JOBS * 2 + 1)]
    pages = [names(find_jobs(many, JobQuery().at_page(number))) for number in (1, 2, 3, 4)]
    assert [len(page) for page in pages] == [PAGE_JOBS, PAGE_JOBS, 1, 0]
    assert [job for page in pages for job in page] == [head.job for head in reversed(many)]


def test_a_query_survives_its_url() -> None:
    given = {"state": "open", "kind": "load", "q": "a&b <c>", "schedule": "x", "page": "3"}
    query = read_query(given, paged=True)
    assert query.to_url() == "?state=open&kind=load&q=a%26b+%3Cc%3E&schedule=x&page=3"
    assert (query.page, query.offset) == (3, 2 * PAGE_JOBS)
    assert JobQuery().to_url() == ""


def test_a_limit_is_bounded() -> None:
    query = read_query({"limit": "999999999", "offset": "7"}, paged=False)
    assert (query.limit, query.offset) == (LIMIT_MAX, 7)


@pytest.mark.parametrize(
    "given",
    [
        {"state": "running"},
        {"kind": "x"},
        {"page": "0"},
        {"page": "-1"},
        {"page": "1e3"},
        {"page": "\u0663"},
        {"page": "9" * 40},
    ],
)
def test_what_is_not_known_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        read_query(given, paged=True)


def test_the_form_knows_every_state() -> None:
    from ringhaul.ledger.states import JobState

    assert {state.value for state in JobState} | {"PAUSED"} <= set(STATES)
