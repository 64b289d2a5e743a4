"""Values of lookup and exec, found by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import UsageError
from ringhaul.ledger.kinds import JobKind
from tasks.command_line import spelled_as
from tests.unit.producer.plan.conftest import Plan

VALUES = {"by_name": True}


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_values_are_found_by_name_in_every_format(plan: Plan, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    match path.suffix:
        case ".csv":
            path.write_text("note,,n,x,id,x\na,b,1,c,2,d\n")
        case ".jsonl":
            path.write_text('{"note": "a", "x": 5, "n": 1, "id": 2}\n')
        case ".parquet":
            pq.write_table(pa.table({"note": ["a"], "x": [5], "n": [1], "id": [2]}), path)
    (source,) = plan(**VALUES)
    assert sorted(source.mapping) == [("id", "id"), ("n", "n"), ("note", "note")]
    assert source.any_fields is (name == "x.jsonl")


def test_values_without_a_header_have_the_columns_in_their_order(
    plan: Plan, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text("1,2,a\n")
    (source,) = plan(**VALUES, header=False)
    assert source.fields == ("id", "n", "note") and source.start_offset_bytes == 0


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        (
            "x.csv",
            b"k1,2,a\n",
            {},
            "no field is named 'id'; its fields are k1, 2, a; if the first record is data, give "
            "--no-values-header",
        ),
        ("x.csv", b"id;n;note\n", {}, "give --values-delimiter ';'"),
        ("x.csv", b"i\0d\0\n\0", {}, "--values-encoding utf-16"),
        ("x.csv", b"\xe9,n\n", {}, "--values-encoding cp1252 reads it as"),
        ("x.csv", b"PAR1\0\0\0\0", {}, "give --values-format parquet, or a name"),
        ("x.jsonl", b'{"a": 1}\n', {}, "in the first record: no field is named 'id'"),
        ("x.jsonl", b'{"id": 1}\n', {"header": False}, "--no-values-header has no effect"),
        ("x.csv", b"", {}, "is empty: it has no header and no records"),
        ("x.csv", b"", {"header": False}, "is empty: it has no records"),
    ],
)
def test_refusals_name_the_options_of_values(
    plan: Plan, tmp_path: Path, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refusal, spelled_as(JobKind.LOOKUP):
        plan(**VALUES, **options)
    assert message in str(refusal.value)


def test_a_type_that_does_not_fit_a_marker_is_reported_without_an_option(
    plan: Plan, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"id": [b"a"], "n": [1], "note": ["a"]}), tmp_path / "x.parquet")
    with pytest.raises(UsageError, match=r"does not become int of shop\.orders\.id; write"):
        plan(**VALUES)
