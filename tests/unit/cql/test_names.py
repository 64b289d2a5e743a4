"""Names as CQL writes them."""

from __future__ import annotations

import pytest

from ringhaul.cql.names import listed_names, read_names
from ringhaul.errors import UsageError


@pytest.mark.parametrize(
    ("text", "parts", "names"),
    [
        (None, [], []),
        ("id, Total,,n ", ["id", "Total", "n"], ["id", "total", "n"]),
        ('id,"Total",N', ["id", '"Total"', "N"], ["id", "Total", "n"]),
        ('"a,b", "c ""d"""', ['"a,b"', '"c ""d"""'], ["a,b", 'c "d"']),
        ('"a"",b",c', ['"a"",b"', "c"], ['a",b', "c"]),
    ],
)
def test_names_are_lower_case_unless_quoted(
    text: str | None, parts: list[str], names: list[str]
) -> None:
    assert listed_names(text, "--key") == parts
    assert read_names(text, "--columns") == names


@pytest.mark.parametrize("text", ['id,"Total', 'To"tal"', '""', '"a"b"'])
def test_misplaced_quotes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--columns .*: double quotes must enclose"):
        read_names(text, "--columns")
