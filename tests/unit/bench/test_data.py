"""The benches' data files match their descriptions."""

import csv
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from bench.data import KB1, SMALL, WIDE20, Table, data_file, local_table


@pytest.mark.parametrize("table", [SMALL, KB1, WIDE20, local_table(40)], ids=lambda t: t.name)
def test_a_file_has_its_header_and_rows_and_is_the_same_everywhere(
    table: Table, tmp_path: Path
) -> None:
    first = data_file(tmp_path / "first", table, rows=200)
    second = data_file(tmp_path / "second", table, rows=200)

    with first.open(newline="", encoding="utf-8") as file:
        header, *records = csv.reader(file)
    assert tuple(header) == table.columns
    assert len(records) == 200
    assert {len(record) for record in records} == {len(table.columns)}
    assert first.read_bytes() == second.read_bytes()


def test_rows_of_1_kb_have_distinct_keys() -> None:
    lines = list(KB1.lines(500, random.Random(1)))

    assert 900 <= sum(map(len, lines)) / len(lines) <= 1100
    assert len({line.split(",")[0] for line in lines}) == 500
    assert len({line.split(",")[1] for line in lines}) == 500


def test_wide_rows_have_nulls_in_every_column_but_the_key() -> None:
    records = [line.rstrip("\n").split(",") for line in WIDE20.lines(2000, random.Random(1))]

    nulls = Counter(index for record in records for index, field in enumerate(record) if not field)
    assert len(WIDE20.columns) == 20
    assert sorted(nulls) == list(range(1, 20))


@pytest.mark.parametrize("percent", [0, 20, 80])
def test_a_share_of_the_rows_follows_one_of_the_same_partition(percent: int) -> None:
    keys = [line.split(",")[0] for line in local_table(percent).lines(5000, random.Random(1))]

    followers = sum(one == other for one, other in itertools.pairwise(keys))
    assert followers / len(keys) == pytest.approx(percent / 100, abs=0.03)
    assert len(set(keys)) == pytest.approx(len(keys) - followers, abs=1)
