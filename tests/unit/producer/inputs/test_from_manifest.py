"""Load options taken from the manifest of an unloaded folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import fsspec
import pytest

from producer.inputs.from_manifest import as_unloaded
from ringhaul.errors import SourceUnavailable, UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.output.manifest import Manifest, write_manifest
from ringhaul.storage import web
from ringhaul.storage.access import SCHEMES, Access, access, set_access
from tests.options import parse_options
from tests.web_server import running_web_server


def folder(path: Path | str, **fmt: Any) -> str:
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


def changes_of(
    *sources: str, given: tuple[str, ...] = (), **options: Any
) -> tuple[dict[str, Any], str]:
    """The options that change, and the lines to show."""
    plain = parse_options("load", *sources, "-t", "k.t")
    before = replace(plain, given=frozenset(given), **options)
    after, notes = as_unloaded(before)
    changes = {
        field.name: getattr(after, field.name)
        for field in fields(before)
        if getattr(after, field.name) != getattr(before, field.name)
    }
    return changes, "\n".join(note.text for note in notes)


def test_sources_without_our_manifest_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "_manifest.json").write_text('{"name": "an extension of a browser"}')
    (tmp_path / "rows.csv").touch()
    assert changes_of(str(tmp_path), str(tmp_path / "rows.csv"), "-", "*.csv") == ({}, "")


def test_the_default_dialect_is_not_mentioned(tmp_path: Path) -> None:
    changes, note = changes_of(folder(tmp_path / "out"), "other.csv")
    assert (changes, note) == ({"allow_nul": True}, "")


def test_json_lines_and_parquet_have_no_dialect(tmp_path: Path) -> None:
    sources = [folder(tmp_path / kind, kind=kind) for kind in ("jsonl", "parquet")]
    assert changes_of(*sources) == ({}, "")


def test_another_dialect_is_used_and_mentioned(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";", quote="'", null="NULL", header=False)
    changes, note = changes_of(out)
    assert changes == {
        "delimiter": ";",
        "quote": "'",
        "null_strings": ("NULL",),
        "header": False,
        "columns": "id,note",
        "allow_nul": True,
    }
    assert note == (
        f"{out}: CSV with delimiter ';', quote \"'\", null 'NULL', no header, as its manifest says"
    )


def test_the_encoding_and_the_word_for_the_empty_text_are_used(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", empty_word="EMPTY", encoding="utf-16", comment="#", trim="text")
    changes, note = changes_of(out)
    assert changes == {"empty_word": "EMPTY", "encoding": "utf-16", "allow_nul": True}
    assert note == f"{out}: CSV with empty text 'EMPTY', encoding utf-16, as its manifest says"
    lines = folder(tmp_path / "lines", kind="jsonl", encoding="cp1252")
    changes, note = changes_of(lines)
    assert changes == {"encoding": "cp1252"}
    assert note == f"{lines}: JSON with encoding cp1252, as its manifest says"


def test_options_of_the_user_take_precedence(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";", null="NULL")
    changes, note = changes_of(out, given=("delimiter", "allow_nul"), delimiter="|")
    assert changes == {"null_strings": ("NULL",)}
    assert note == f"{out}: CSV with null 'NULL', as its manifest says"


def test_folders_of_one_dialect_go_together(tmp_path: Path) -> None:
    first, second = (folder(tmp_path / name, delimiter=";") for name in "ab")
    assert changes_of(first, second, str(tmp_path / "more.jsonl"))[0]["delimiter"] == ";"


@pytest.mark.parametrize("odd_first", [True, False])
def test_sources_of_two_dialects_are_refused(tmp_path: Path, odd_first: bool) -> None:
    odd, usual = folder(tmp_path / "odd", delimiter=";"), folder(tmp_path / "usual")
    for other in (usual, "rows.csv"):
        sources = (odd, other) if odd_first else (other, odd)
        with pytest.raises(UsageError) as refusal:
            changes_of(*sources)
        assert str(refusal.value) == (
            f"{odd} is CSV with delimiter ';', says its manifest, and {other} is not: take "
            "them one after the other, or give the options"
        )
        # If the user gives it, it applies to all of them.
        assert changes_of(*sources, given=("delimiter",), delimiter=";")[1] == ""


def test_folders_that_a_glob_matches_count_as_if_they_were_named(tmp_path: Path) -> None:
    for name in "ab":
        folder(tmp_path / "dumps" / name, null="NULL")
    (tmp_path / "dumps" / "more.jsonl").touch()
    for pattern in ("dumps/*", "d*/[ab]", "dumps/*/"):
        changes, note = changes_of(str(tmp_path / pattern))
        assert changes == {"null_strings": ("NULL",), "allow_nul": True}
        assert note.startswith(f"{tmp_path / 'dumps' / 'a'}")
    assert changes_of(f"file://{tmp_path}/dumps/*")[0] == changes


@pytest.mark.parametrize("usual", ["dumps/b", "dumps/b.csv"])
def test_a_glob_over_two_dialects_is_refused(tmp_path: Path, usual: str) -> None:
    odd = folder(tmp_path / "dumps" / "a", null="NULL")
    other = tmp_path / usual
    if other.suffix:
        other.touch()
    else:
        folder(other)
    with pytest.raises(UsageError) as refusal:
        changes_of(str(tmp_path / "dumps/*"))
    assert str(refusal.value) == (
        f"{odd} is CSV with null 'NULL', says its manifest, and {other} is not: take them "
        "one after the other, or give the options"
    )
    assert changes_of(
        str(tmp_path / "dumps/*"), given=("null_strings",), null_strings=("NULL",)
    ) == (
        {"allow_nul": True},
        "",
    )


def test_a_folder_whose_name_looks_like_a_glob_is_a_folder(tmp_path: Path) -> None:
    assert changes_of(folder(tmp_path / "[ab]", null="NULL"))[0]["null_strings"] == ("NULL",)
    assert changes_of(f"file://{tmp_path}/[ab]")[0]["null_strings"] == ("NULL",)


def test_a_glob_that_cannot_be_listed_is_left_to_the_search_for_sources() -> None:
    assert changes_of("none-[ab]/*", "file://elsewhere/*", "nothing://b/*", "https://h/*") == (
        {},
        "",
    )


@pytest.fixture
def access_to_all() -> Iterator[None]:
    before = access()
    set_access(Access(schemes=(*SCHEMES, "memory"), private_addresses=True))
    yield
    set_access(before)


@pytest.mark.usefixtures("access_to_all")
def test_a_glob_of_a_store(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    store.store.clear()
    for name in ("a", "b.csv"):
        folder("memory://dumps/" + name, null="NULL")
    store.pipe("/dumps/more.jsonl", b"{}\n")
    assert changes_of("memory://dumps/*") == (
        {"null_strings": ("NULL",), "allow_nul": True},
        "memory://dumps/a/: CSV with null 'NULL', as its manifest says",
    )
    store.pipe("/dumps/1.csv", b"1\n")
    with pytest.raises(UsageError, match=r"memory://dumps/1\.csv is not: take them"):
        changes_of("memory://dumps/*")
    store.store.clear()


@pytest.mark.usefixtures("access_to_all")
def test_a_folder_of_a_web_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_PAUSES_S", (0.0,))
    written = Path(folder(tmp_path, null="NULL"), "_manifest.json").read_bytes()
    with running_web_server() as server:
        server.files = {
            "a/_manifest.json": written,
            "later/_manifest.json": written.replace(b'"version": 1', b'"version": 2'),
            "page/_manifest.json": b"<html>",
            "list/_manifest.json": b"[]",
        }
        changes, note = changes_of(f"{server.url}/a/")
        assert changes == {"null_strings": ("NULL",), "allow_nul": True}
        assert note == f"{server.url}/a/: CSV with null 'NULL', as its manifest says"
        for name in ("later", "page", "list", "none"):
            assert changes_of(f"{server.url}/{name}/") == ({}, "")
        server.requests.clear()
        assert changes_of(f"{server.url}/a.csv", f"{server.url}/a") == ({}, "")
        assert not server.requests, "a URL without a slash at its end is a file"
        # The load may find the rows later, and would read NULL as text.
        server.statuses["a/_manifest.json"] = [503] * 9
        with pytest.raises(SourceUnavailable):
            changes_of(f"{server.url}/a/")


def test_a_source_with_a_secret_is_shown_without_it(tmp_path: Path) -> None:
    out = folder(tmp_path / "out", delimiter=";")
    with pytest.raises(UsageError) as refusal:
        changes_of(out, "https://me:pa55@host/x.csv?sig=5ecret")
    assert "https://host/x.csv?... is not" in str(refusal.value)
