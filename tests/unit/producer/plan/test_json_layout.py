"""Files of JSON that begin with an array are read as documents."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from producer.request.load import LoadDraft
from ringhaul.formats.dialect import CsvDialect
from ringhaul.sources.find import find_sources
from tests.heads import with_layout


def layout(folder: Path, **dialect: str) -> tuple[str, str | None]:
    request = LoadDraft(keyspace="k", table="t", dialect=CsvDialect(**dialect))
    found, note = with_layout(request, find_sources([str(folder)], request.dialect))
    return found.dialect.json_layout, note


@pytest.mark.parametrize(
    "text", ['[{"id": 1}]', '\ufeff\n [\n\t{"id": 1},', "[", "[ ]", " [" + " " * 5000 + "{}]"]
)
def test_an_array_is_read_as_documents(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    note = f"{path} begins with [, as a JSON array does: read by --json-layout documents"
    assert layout(tmp_path) == ("documents", note)
    path.write_text(text.removeprefix("\ufeff"), "utf-16")
    assert layout(tmp_path, encoding="utf-16") == ("documents", note)
    path.unlink()
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.jsonl").write_text('{"id": 2}\n')
    found, said = layout(tmp_path)
    assert (found, said) == (
        "documents",
        f"{path}.gz begins with [, as a JSON array does: read by --json-layout documents, and so "
        "are the other files of JSON",
    )


@pytest.mark.parametrize("text", ['{"id": [1]}\n', "[1, 2]\n", '["a"]\n', "", "x", "# [\n[{"])
def test_other_files_are_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "b.csv").write_text("[{")
    assert layout(tmp_path) == ("lines", None)
    assert layout(tmp_path, json_layout="commented") == ("commented", None)
