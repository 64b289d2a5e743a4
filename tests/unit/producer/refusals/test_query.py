"""Counts and queries that are refused before a job exists."""

from __future__ import annotations

import pytest

from tests.planning import PlannedRinghaul


@pytest.fixture
def table(keyspace: str) -> str:
    """Sales of users by day and region."""
    return f"{keyspace}.sales"


REFUSED = {
    "join": ("SELECT count(*) FROM {t} JOIN {t} b ON true", "joins"),
    "window": ("SELECT sum(total) OVER (PARTITION BY region) FROM {t}", "window"),
    "no aggregate": ("SELECT user FROM {t}", "ringhaul unload"),
    "column": ("SELECT sum(totle) FROM {t}", "did you mean 'total'?"),
    "not grouped": ("SELECT region, count(*) FROM {t}", "GROUP BY"),
    "type": ("SELECT sum(region) FROM {t}", "region"),
    "literal": ("SELECT count(*) FROM {t} WHERE day = 'monday'", "day"),
    "not SQL": ("SELEC count(*) FROM {t}", "query"),
    "union": ("SELECT count(*) FROM {t} UNION SELECT count(*) FROM {t}", "UNION cannot be"),
    "subquery": ("SELECT count(*) FROM (SELECT day FROM {t})", "subqueries cannot be answered"),
    "with": ("WITH a AS (SELECT 1) SELECT count(*) FROM a", "WITH cannot be answered"),
    "offset": ("SELECT count(*) FROM {t} GROUP BY day LIMIT 3 OFFSET 3", "OFFSET cannot be"),
    "parameter": ("SELECT count(*) FROM {t} WHERE day = ?", "write the value"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_query_that_cannot_be_answered_is_refused(
    fleet: PlannedRinghaul, table: str, case: str
) -> None:
    sql, words = REFUSED[case]
    finished = fleet.run("query", sql.format(t=table))
    assert finished.code == 2, finished
    assert words in finished.err
    assert "Traceback" not in finished.err


def test_two_kinds_of_count_are_refused(fleet: PlannedRinghaul, table: str) -> None:
    finished = fleet.run("count", "-t", table, "--top", 3, "--by", "host")
    assert finished.code == 2
    assert "--top and --by" in finished.err
