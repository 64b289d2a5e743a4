"""Files that list sources: their content, its order, and how errors name a line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from producer.inputs import urlfile
from producer.inputs.urlfile import find_placed, read_urlfile
from ringhaul.errors import SourceMissing, UsageError
from ringhaul.formats.dialect import CsvDialect


def listed(folder: Path, data: str | bytes, *sources: str) -> dict[str, str]:
    """The sources that a list names, with the numbers of their lines."""
    path = folder / "list.txt"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    found = read_urlfile(str(path), sources)
    return {name: place.removeprefix(f"{path}, ") for name, place in found.items()}


@pytest.mark.parametrize(
    "text, names",
    [
        ("a.csv\nb/*.csv\n", {"a.csv": "line 1", "b/*.csv": "line 2"}),
        ("\ufeffa.csv", {"a.csv": "line 1"}),
        ("# all\r\n\r\n  a b.csv\t\r\n  # more\r\n", {"a b.csv": "line 3"}),
        ("b.csv\ra.csv\rb.csv", {"b.csv": "line 1", "a.csv": "line 2"}),
        ("./#1.csv\ns3://b/k#1\nä\u2028.csv", {"./#1.csv": "line 1", "s3://b/k#1": "line 2",
                                               "ä\u2028.csv": "line 3"}),
    ],
)  # fmt: skip
def test_each_line_is_a_source_in_its_order(
    tmp_path: Path, text: str, names: dict[str, str]
) -> None:
    found = listed(tmp_path, text)
    assert found == names and list(found) == list(names)


def test_sources_of_the_command_line_come_first(tmp_path: Path) -> None:
    assert list(listed(tmp_path, "a.csv\nb.csv\n", "b.csv")) == ["a.csv"]
    assert listed(tmp_path, "b.csv\n", "b.csv") == {}


@pytest.mark.parametrize(
    "data, message",
    [
        ("", "list.txt names no source"),
        ("\n # none\n", "list.txt names no source"),
        ("a.csv\n-\n", "list.txt, line 2: - (standard input) is not allowed in a list"),
        (b"a\xff", "list.txt is not UTF-8 text (byte 1)"),
        (b"PAR1\0", "list.txt is not UTF-8 text (byte 4)"),
        ("a.csv\n" * 10, "list.txt has more than 0 MiB"),
    ],
)
def test_an_invalid_list_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str | bytes, message: str
) -> None:
    monkeypatch.setattr(urlfile, "LIST_BYTES_MAX", 50)
    with pytest.raises(UsageError) as refusal:
        listed(tmp_path, data)
    assert message in str(refusal.value)


def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--urlfile .*none.txt: No such file"):
        read_urlfile(str(tmp_path / "none.txt"), ())
    with pytest.raises(UsageError, match="Is a directory"):
        read_urlfile(str(tmp_path), ())
    with pytest.raises(UsageError) as refusal:
        read_urlfile("https://me:secret@host/list.txt?sig=secret", ())
    assert "a list must be a file on this host" in str(refusal.value)
    assert "secret" not in str(refusal.value)


def test_a_list_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\na.csv\n")))
    assert read_urlfile("-", ("b.csv",)) == {"a.csv": "standard input, line 2"}
    for path in ("-", "list.txt"):
        with pytest.raises(UsageError, match="cannot be given together with other sources"):
            read_urlfile(path, ("-",))
    monkeypatch.setattr("sys.stdin", None)  # as Python sets it after `<&-`
    with pytest.raises(UsageError, match="standard input is closed"):
        read_urlfile("-", ())


def test_a_line_that_matches_nothing_is_reported_without_secrets(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    secret = "https://me:pa55@host/x.csv?X-Amz-Signature=5ecret"
    args = [str(tmp_path / name) for name in ("a.csv", "*.csv", "b.csv")]
    places = {args[2]: "list.txt, line 7", secret: "list.txt, line 8"}
    found = find_placed(args[:2], places, CsvDialect(), "auto")
    assert [file.path for file in found] == [args[0]]
    with pytest.raises(SourceMissing) as missing:
        find_placed(args, places, CsvDialect(), "auto")
    assert str(missing.value).startswith(f"list.txt, line 7: {args[2]}: no such file")
    with pytest.raises(UsageError) as refusal:
        find_placed([secret], places, CsvDialect(), "auto")
    assert str(refusal.value).startswith("list.txt, line 8: https://host/x.csv?...: the URL holds")
    assert "5ecret" not in str(refusal.value) and "pa55" not in str(refusal.value)
