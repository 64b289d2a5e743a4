"""The example transforms that are shipped, value by value."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ringhaul.transform.examples import hashed, split_wide, starred
from tests.unit.transform.functions import batch_of, chain_of, rows_of

KEY = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    (tmp_path / "key").write_bytes(KEY + b"\n")
    return str(tmp_path / "key")


def values(function: Any, **columns: Any) -> list[dict[str, Any]]:
    rows, errors = rows_of(chain_of(function), batch_of(**columns))
    assert errors == {}
    assert [record for record, _ in rows] == list(range(len(rows)))
    return [dict(row) for _, row in rows]


def test_a_keyed_hash_is_the_same_for_the_same_value(key_file: str) -> None:
    mails = ["a@x.org", "b@x.org", None, "a@x.org", ""]

    found = values(hashed("mail", "other", key_file=key_file), mail=mails, other=mails, n=mails)

    for row, mail in zip(found, mails, strict=True):
        wanted = None
        if mail is not None:
            digest = hashlib.blake2b(mail.encode(), key=KEY, digest_size=16)
            wanted = digest.hexdigest()
        assert row == {"mail": wanted, "other": wanted, "n": mail}


@pytest.mark.parametrize("key", [b"short", b"x" * 65, b""])
def test_a_key_that_can_be_guessed_is_refused(tmp_path: Path, key: bytes) -> None:
    (tmp_path / "key").write_bytes(key)
    with pytest.raises(ValueError, match=f"a key of {len(key)} bytes; give 16 to 64"):
        hashed("mail", key_file=str(tmp_path / "key"))


@pytest.mark.parametrize(
    ("keep", "shown"),
    [
        (4, ["*****6789", "*****ßéü€", "****", "*", "", None]),
        (0, ["*********", "*********", "****", "*", "", None]),
    ],
)
def test_all_but_the_last_characters_become_stars(keep: int, shown: list[str | None]) -> None:
    numbers = ["123456789", "12345ßéü€", "1234", "1", "", None]
    assert [row["n"] for row in values(starred("n", keep=keep), n=numbers)] == shown


def test_text_of_any_arrow_type_is_masked() -> None:
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        column = pa.array(["12345", None]).cast(kind)
        assert [row["n"] for row in values(starred("n"), n=column)] == ["*2345", None]


def test_only_text_is_masked(key_file: str) -> None:
    for function in (hashed("n", key_file=key_file), starred("n")):
        _, errors = rows_of(chain_of(function), batch_of(n=[1]))
        assert "column 'n' is int64, and only text can be masked" in errors[0]
    with pytest.raises(ValueError, match="keep=-1"):
        starred("n", keep=-1)


@pytest.fixture
def dictionary(tmp_path: Path) -> str:
    lines = ["field,matrix,label", "p1,007,All people", 'p3,P3,"Urban, all"', "p2,P2,"]
    (tmp_path / "dictionary.csv").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "dictionary.csv")


def test_a_wide_record_becomes_a_row_for_each_field_of_the_dictionary(dictionary: str) -> None:
    wide = batch_of(
        rec=["r1", "r2"], state=["NY", None], p1=["10", "20"], p2=[None, "21"], p3=["", "22"],
        other=["x", "y"],
    )  # fmt: skip

    rows, errors = rows_of(chain_of(split_wide(["rec", "state"], dictionary=dictionary)), wide)

    assert errors == {}
    looked_up = {"p1": ("007", "All people"), "p3": ("P3", "Urban, all"), "p2": ("P2", "")}
    records: list[tuple[str, str | None, list[str | None]]] = [
        ("r1", "NY", ["10", "", None]),
        ("r2", None, ["20", "22", "21"]),
    ]
    wanted = [
        (record, rec, state, field, value)
        for record, (rec, state, of_record) in enumerate(records)
        for field, value in zip(("p1", "p3", "p2"), of_record, strict=True)
        if value is not None
    ]
    by_field = ("p1", "p3", "p2").index
    wanted.sort(key=lambda row: by_field(row[3]))
    assert rows == [
        (
            record,
            {
                "rec": rec,
                "state": state,
                "item": field,
                "matrix": looked_up[field][0],
                "label": looked_up[field][1],
                "value": value,
            },
        )
        for record, rec, state, field, value in wanted
    ]


def test_nulls_can_be_kept_and_columns_named(dictionary: str) -> None:
    function = split_wide(["rec"], dictionary=dictionary, item="field", value="n", keep_null=True)
    wide = batch_of(rec=[1], p1=pa.array([None], pa.int64()), p2=[5], p3=[6])

    rows, _ = rows_of(chain_of(function), wide)

    assert [(row["rec"], row["field"], row["n"]) for _, row in rows] == [
        (1, "p1", None),
        (1, "p3", 6),
        (1, "p2", 5),
    ]


def test_a_missing_field_is_an_error(dictionary: str) -> None:
    _, errors = rows_of(chain_of(split_wide(["rec"], dictionary=dictionary)), batch_of(rec=["a"]))
    assert errors == {0: "t:0: KeyError: 'Field \"p1\" does not exist in schema'"}


def test_a_batch_without_rows_has_the_same_columns(key_file: str, dictionary: str) -> None:
    nothing = pa.array([], pa.string())
    empty = batch_of(rec=nothing, p1=nothing, p2=nothing, p3=nothing)
    for function, columns in (
        (hashed("rec", key_file=key_file), ["rec", "p1", "p2", "p3"]),
        (starred("p1"), ["rec", "p1", "p2", "p3"]),
        (split_wide(["rec"], dictionary=dictionary), ["rec", "item", "matrix", "label", "value"]),
    ):
        (piece,), errors = chain_of(function).apply(empty)
        assert (list(piece.columns), errors) == (columns, {})
        assert {column.type for column in piece.columns.values()} == {pa.string()}
