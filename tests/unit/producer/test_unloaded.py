"""What the manifest of an unloaded folder says of how to load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from producer.unloaded import manifest_options
from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.read.manifest import Manifest, write_manifest

DEFAULTS: dict[str, Any] = {
    "file_format": "auto",
    "delimiter": ",",
    "quote": '"',
    "null_strings": (),
    "header": True,
    "columns": None,
    "allow_nul": False,
}


def folder(path: Path, **fmt: Any) -> str:
    manifest = Manifest(
        job="ul-1a2b3c",
        keyspace="shop",
        table="orders",
        statement="SELECT * FROM shop.orders",
        columns=(("id", "int"), ("note", "text")),
        format=OutputFormat(**fmt),
        created="2026-01-01T00:00:00.000+00:00",
        parts=(),
    )
    write_manifest(str(path), manifest)
    return str(path)


def asked(*sources: str, given: tuple[str, ...] = (), **options: Any) -> tuple[dict[str, Any], str]:
    return manifest_options({**DEFAULTS, "sources": sources, **options}, given)


def test_what_has_no_manifest_of_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "an extension of a browser"}')
    (tmp_path / "rows.csv").touch()
    assert asked(str(tmp_path), str(tmp_path / "rows.csv"), "-", "*.csv") == ({}, "")


def test_the_usual_dialect_is_not_told(tmp_path: Path) -> None:
    changes, told = asked(folder(tmp_path / "out"), "other.csv")
    assert (changes, told) == ({"allow_nul": True}, "")


def test_json_lines_and_parquet_have_no_dialect(tmp_path: Path) -> None:
    sources = [folder(tmp_path / kind, kind=kind) for kind in ("jsonl", "parquet")]
    assert asked(*sources) == ({}, "")


def test_another_dialect_is_taken_and_told(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";", quote="'", null="NULL", header=False)
    changes, told = asked(out)
    assert changes == {
        "delimiter": ";",
        "quote": "'",
        "null_strings": ("NULL",),
        "header": False,
        "columns": "id,note",
        "allow_nul": True,
    }
    assert told == (
        f"{out}: CSV with delimiter ';', quote \"'\", null 'NULL', no header, "
        "as its manifest.json says"
    )


def test_what_the_user_gives_comes_first(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";", null="NULL")
    changes, told = asked(out, given=("delimiter", "allow_nul"), delimiter="|")
    assert changes == {"null_strings": ("NULL",)}
    assert told == f"{out}: CSV with null 'NULL', as its manifest.json says"


def test_folders_of_one_dialect_go_together(tmp_path: Path) -> None:
    first, second = (folder(tmp_path / name, delimiter=";") for name in "ab")
    assert asked(first, second, str(tmp_path / "more.jsonl"))[0]["delimiter"] == ";"


@pytest.mark.parametrize("odd_first", [True, False])
def test_sources_of_two_dialects_are_refused(tmp_path: Path, odd_first: bool) -> None:
    odd, usual = folder(tmp_path / "odd", delimiter=";"), folder(tmp_path / "usual")
    for other in (usual, "rows.csv"):
        sources = (odd, other) if odd_first else (other, odd)
        with pytest.raises(UsageError) as told:
            asked(*sources)
        assert str(told.value) == (
            f"{odd} is CSV with delimiter ';', says its manifest.json, and {other} is not: load "
            "them one after the other, or give the options"
        )
        # Given, it is the dialect of all.
        assert asked(*sources, given=("delimiter",), delimiter=";")[1] == ""


def test_a_source_that_holds_a_secret_is_told_without_it(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";")
    with pytest.raises(UsageError) as refusal:
        asked(out, "https://me:pa55@host/x.csv?sig=5ecret")
    assert "https://host/x.csv?... is not" in str(refusal.value)
