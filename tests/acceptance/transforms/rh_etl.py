"""Transforms of the tests, as a user would keep them in the folder of `transform.path`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ringhaul.transform import each_row
from ringhaul.transform.examples import hashed, split_wide, starred

print("rh_etl is imported")

HERE = Path(__file__).parent

mask = hashed("email", key_file=str(HERE / "mask.key"))
card = starred("card")
census = split_wide(["logrecno"], dictionary=str(HERE / "fields.csv"))


def picky(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Fail in every way that a function can, each for one value of `a`."""
    values = batch.column("a").to_pylist()
    if "exit" in values:
        sys.exit("leaving")
    if "memory" in values:
        raise MemoryError
    if "raise" in values:
        raise ValueError("no such thing")
    return batch


def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Take a millisecond for each record."""
    time.sleep(batch.num_rows / 1000)
    return batch


def short(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a correct result for the first records, and an invalid one for others."""
    return batch if "1" in batch.column("id").to_pylist() else batch.drop_columns("a")


def grown_ups(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Keep the rows of adults, and print a line."""
    print("grown_ups is called")
    return batch.filter(pc.greater_equal(pc.cast(batch.column("age"), "int64"), 18))


@each_row
def thrice(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Turn a record into three rows, every seventh one into none; raise on an invalid id."""
    number = int(row["id"])
    if number % 7:
        for part in range(3):
            yield {"id": number, "part": part, "a": None if number % 11 else "x" * number}


@each_row(columns={"id": pa.int32(), "words": pa.list_(pa.string()), "length": pa.int64()})
def counted(row: dict[str, Any]) -> dict[str, Any] | None:
    """Split a note into words; drop rows without one; fail on the note of 100 characters."""
    if row["a"] is None:
        return None
    return {"id": row["id"], "words": row["a"].split(), "length": 100 // (100 - len(row["a"]))}


@each_row(columns={"id": pa.int32(), "born": pa.int32()})
def birth_years(row: dict[str, Any]) -> dict[str, Any]:
    """The example of docs/how-to/transforms.md, which fails on a row without an age."""
    return {"id": row["id"], "born": 2026 - row["age"]}


@each_row(columns={"id": pa.int32(), "a": pa.string()})
def refused(row: dict[str, Any]) -> dict[str, Any]:
    """Reject every row."""
    raise ValueError("not good enough")
