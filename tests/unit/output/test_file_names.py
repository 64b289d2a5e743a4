"""Patterns of files' names: what they give, and which are refused."""

from __future__ import annotations

import pytest

from ringhaul.errors import UsageError
from ringhaul.output.file_names import FileNames
from tests.cases import each

KNOWN = {"keyspace": "shop", "table": "orders", "job": "ul-7f3a9c"}


@each(
    ("pattern", "suffix", "name"),
    [
        ("{table}-{number}", ".csv", "orders-12.csv"),
        ("{keyspace}.{table}.{number:06}.csv", ".csv", "shop.orders.000012.csv"),
        ("output-%06d.csv", ".csv", "output-000012.csv"),
        ("output-%d", ".jsonl", "output-12.jsonl"),
        ("{job}-{number:4}.csv", ".csv.gz", "ul-7f3a9c-  12.csv.gz"),
        ("{number}.csv.gz", ".csv.gz", "12.csv.gz"),
        ("{number}.json", ".jsonl", "12.json"),
        ("{number}.json", ".jsonl.zst", "12.json.zst"),
        ("{number}.json.zst", ".jsonl.zst", "12.json.zst"),
        ("{number}.json", ".csv", "12.json.csv"),
        ("{number}.json", ".json", "12.json"),
        ("{number}.jsonl", ".json", "12.jsonl"),
        ("{{{number}}}", ".csv", "{12}.csv"),
        ("été {number}", ".parquet", "été 12.parquet"),
        ("{number}.txt", ".csv", "12.txt.csv"),
    ],
)
def test_a_pattern_gives_a_name_with_the_format_s_end(pattern: str, suffix: str, name: str) -> None:
    assert FileNames(pattern, suffix).name(12, **KNOWN) == name


@each(
    ("pattern", "why"),
    [
        ("orders.csv", "gives all files one name"),
        ("../{number}", "has a slash"),
        ("a\\{number}", "has a slash"),
        (".{number}", r"begins with \.; such files are hidden"),
        ("_{number}", "begins with _; such files are hidden"),
        ("{number}\n", "has a control character"),
        ("{number}\0", "has a control character"),
        ("{unit}-{number}", r"has \{unit\}, which is not one of \{number\}"),
        ("{number.real}", r"has \{number.real\}"),
        ("{job[0]}{number}", r"has \{job\[0\]\}"),
        ("{number!r}", r"has \{number\}"),
        ("{number:99}", "only a number has a width"),
        ("{number:>5}", "only a number has a width"),
        ("{table:05}{number}", "only a number has a width"),
        ("{number", "is not a pattern"),
        ("{number}" + "x" * 240, "may give names of more than 240 bytes"),
    ],
)
def test_a_pattern_that_gives_no_good_names_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        FileNames(pattern, ".csv")


def test_one_file_needs_no_number() -> None:
    assert FileNames("{table}", ".csv", single=True).name(1, **KNOWN) == "orders.csv"
    with pytest.raises(UsageError, match="is the name of the list of files"):
        FileNames("manifest.json", ".json", single=True)
