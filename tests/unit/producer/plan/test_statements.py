"""What `lookup` and `exec` know about their answers in advance."""

from __future__ import annotations

import pytest

from producer.plan.statements import StatementFacts, never_null_names, nullable_names
from producer.request.statements import wanted_names
from ringhaul.cql.types import CqlType
from ringhaul.ledger.kinds import JobKind
from tests.options import parse_options


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["at"], []),
        (["v"], ["v"]),
        (["at", "v"], ["at", "v"]),
    ],
)
def test_a_column_that_always_has_a_value_makes_no_blank_lines(
    names: list[str], expected: list[str]
) -> None:
    facts = StatementFacts(
        kind=JobKind.LOOKUP,
        markers=(),
        result=tuple((name, CqlType("text")) for name in names),
        never_null=("at",),
        target="shop.events",
    )
    assert nullable_names(facts) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT v FROM t WHERE user = ?", ("[applied]", "[json]", "user")),
        ("SELECT count FROM t WHERE user = ?", ("[applied]", "[json]", "user")),
        ("SELECT COUNT (*) FROM t WHERE user = ?", ("[applied]", "[json]", "count", "user")),
        ("SELECT max(v) AS user FROM t WHERE user = ?", ()),
    ],
)
def test_columns_that_an_answer_always_has(statement: str, expected: tuple[str, ...]) -> None:
    assert never_null_names(statement, ["user"]) == expected


def test_names_are_those_of_cql() -> None:
    options = parse_options(
        *("lookup", "-t", "k.t", "--keys", "-"),
        *("--key", 'User,"Day"', "--columns", 'at,"Total, net"'),
    )
    assert wanted_names(options) == (["user", "Day"], ["at", "Total, net"])
