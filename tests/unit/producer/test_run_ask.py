"""What `lookup` and `exec` know of their answers before there is one."""

from __future__ import annotations

import pytest

from producer.run_ask import _Asked, _may_be_null
from ringhaul.cql.types import CqlType


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["at"], []),
        (["user"], []),
        (["count"], []),
        (["[applied]"], []),
        (["v"], ["v"]),
        (["user", "v"], ["user", "v"]),
    ],
)
def test_a_column_that_always_has_a_value_makes_no_blank_lines(
    names: list[str], expected: list[str]
) -> None:
    asked = _Asked(
        kind="lookup",
        markers=(("user", "text"),),
        result=tuple((name, CqlType("text")) for name in names),
        never_null=("at",),
        facts={},
        target="shop.events",
    )
    assert _may_be_null(asked) == expected
