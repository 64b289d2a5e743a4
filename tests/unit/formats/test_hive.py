"""Folders named after values: what is encoded, and what is refused."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.hive import NULL, folder_of, values_of
from tests.cases import each


@each(
    ("value", "folder"),
    [
        ("north", "region=north"),
        ("", "region="),
        (None, f"region={NULL}"),
        (NULL, f"region=%5F{NULL[1:]}"),
        ("a/b", "region=a%2Fb"),
        ("2024-01-01 10:00", "region=2024-01-01 10%3A00"),
        ("100%", "region=100%25"),
        ("x=y", "region=x%3Dy"),
        ("Zürich", "region=Zürich"),
        ("\n\0", "region=%0A%00"),
    ],
)
def test_a_value_names_a_folder(value: str | None, folder: str) -> None:
    assert folder_of("region", value) == folder
    assert values_of([folder]) == {"region": value}


def test_other_folders_do_not_matter() -> None:
    assert values_of(["data", "", "=x", "year=2023", "b%3Dc=1"]) == {"year": "2023", "b=c": "1"}


def test_spark_s_encoding_in_lower_case_is_read() -> None:
    assert values_of(["t=10%3a00", "city=Z%C3%BCrich"]) == {"t": "10:00", "city": "Zürich"}


@pytest.mark.parametrize(
    ("folders", "why"),
    [(["a=%FF"], "what it encodes with % is not UTF-8"), (["a=1", "a=2"], "another value")],
)
def test_what_cannot_be_read_is_refused(folders: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        values_of(folders)
