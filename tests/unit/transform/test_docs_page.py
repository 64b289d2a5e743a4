"""The functions in docs/how-to/transforms.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.cql.types import parse_type
from ringhaul.scan.reshape import planned_results
from ringhaul.transform.chain import Transform
from tests.unit.transform.functions import batch_of, chain_of, rows_of

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "transforms.md").read_text()


@pytest.fixture(scope="module")
def etl(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page's etl.py, with its files in a temporary folder."""
    folder = tmp_path_factory.mktemp("etl")
    (folder / "mask.key").write_text("a key that only the tests use\n")
    (folder / "fields.csv").write_text("field,matrix\np1,P1\np2,P2\n")
    blocks = re.findall(r"^```python\n(# etl\.py\n.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    exec("".join(blocks).replace("/etc/ringhaul", str(folder)), names)
    return SimpleNamespace(**names)


def run(function: Any, **columns: Any) -> list[dict[str, Any]]:
    rows, errors = rows_of(chain_of(function), batch_of(**columns))
    assert errors == {}
    return [dict(row) for _, row in rows]


def test_the_functions_of_batches(etl: Any) -> None:
    assert run(etl.grown_ups, age=["17", "18", "99"]) == [{"age": "18"}, {"age": "99"}]
    assert run(etl.card, card=["4000123412341234"]) == [{"card": "*" * 12 + "1234"}]
    (row,) = run(etl.mask, email=["a@example.org"])
    assert re.fullmatch("[0-9a-f]{32}", row["email"])
    assert run(etl.census, logrecno=["7"], p1=["1"], p2=["2"]) == [
        {"logrecno": "7", "item": "p1", "matrix": "P1", "value": "1"},
        {"logrecno": "7", "item": "p2", "matrix": "P2", "value": "2"},
    ]


def test_the_functions_of_rows(etl: Any) -> None:
    assert run(etl.tidy, email=[" A@Example.org ", None]) == [{"email": "a@example.org"}]
    assert run(etl.orders, id=["c"], items=["x|y"]) == [
        {"customer": "c", "number": 0, "item": "x"},
        {"customer": "c", "number": 1, "item": "y"},
    ]
    assert run(etl.birth_years, id=[1], age=[26]) == [{"id": 1, "born": 2000}]


def test_the_columns_of_an_unload(etl: Any) -> None:
    kinds = [parse_type("int"), parse_type("int")]
    found = planned_results(["id", "age"], kinds, [Transform("etl:x", etl.birth_years)])
    assert [(name, str(kind)) for name, kind in found] == [("id", "int"), ("born", "int")]
    assert pa.types.is_int32(found[0][1].arrow())
