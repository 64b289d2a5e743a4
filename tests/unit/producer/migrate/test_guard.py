"""A translated command that ringhaul would refuse is not complete, and the note says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from producer.migrate.command import translate_command
from producer.migrate.guard import checked
from producer.translate.command import translate
from producer.translate.translation import Kind, Translation
from ringhaul.errors import UsageError
from tests.cases import each


def one(text: str) -> Translation:
    (found,) = translate(text)
    return checked(found)


@each(
    ("text", "why"),
    [
        ("load -t t -url x.csv", "no keyspace: give --keyspace"),
        ("load -k s -url x.csv", "Missing option '-t' / '--table'"),
        ("unload -k s -url out", "give --table, or --query with a SELECT"),
        ("load -k s -t t -url x.csv -delim ''", "delimiter"),
        ("load -k s -t t -url x.csv -cl SOON", "SOON"),
        ("load -k s -t t -url x.csv -maxErrors many", "many"),
        ("load -k s -t t -url x.csv -port x", "x"),
        ("load -k s -t t -url x.csv --codec.date 'nonsense{'", "--date-format"),
        ("load -k s -t t -url x.csv --codec.epoch soon", "--epoch"),
        ("load -k s -t t -url x.csv -m 'a='", "expected FIELD=COLUMN"),
        ("unload -query 'SELECT FROM' -url out", "SELECT"),
        ("unload -query 'SELECT a FROM s.t WHERE b = ?' -url out", "--query: "),
        ("load -query 'TRUNCATE s.t' -url x.csv", "exec cannot run TRUNCATE"),
        ("load -k s -t t -c json -url x.json -header false --connector.json.nope 1", None),
    ],
)
def test_what_would_be_refused(text: str, why: str | None) -> None:
    if why is None:
        with pytest.raises(ValueError, match="it has no setting"):
            translate(f"dsbulk {text}")
        return
    found = one(f"dsbulk {text}")
    last = found.notes[-1]
    assert (last.kind, last.option) == (Kind.REFUSED, "ringhaul") and why in last.text, found
    assert not found.complete and not found.exact


def test_a_note_that_asks_for_the_keyspace_is_enough() -> None:
    found = one("COPY t FROM 'x.csv'")
    assert [note.kind for note in found.notes if note.lost] == [Kind.LOST]


def test_a_cqlshrc_that_is_here_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = "cqlsh --cqlshrc rc -e \"COPY s.t FROM 'x.csv'\""
    assert one(line).complete
    (tmp_path / "rc").write_text("[copy-from]\nnonsense = 1\n")
    assert "COPY FROM has no option NONSENSE" in one(line).notes[-1].text


def run(*words: str) -> int:
    code: int = translate_command.main(list(words), "ringhaul translate", standalone_mode=False)
    return code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COPY s.t (a) FROM 'x.csv' WITH HEADER = true", 0),
        ("COPY s.t FROM 'x.csv'", 0),
        ("dsbulk load -k s -t t -url x.csv -maxErrors 5", 0),
        # Rows may differ: the header may have another order, and a count another unit
        ("COPY s.t FROM 'x.csv' WITH HEADER = true", 1),
        ("dsbulk load -k s -t t -url x.csv -m 'a=a, w=__timestamp'", 1),
        ("COPY s.t TO 'x.csv'", 1),
        # There is no counterpart
        ("COPY s.t TO 'x.csv' WITH FLOATPRECISION = 3", 1),
        (r"dsbulk load -k s -t t -url x.csv -newline '\r\n'", 1),
        # It would be refused
        ("dsbulk load -t t -url x.csv", 1),
    ],
)
def test_the_exit_code_says_whether_rows_are_the_same(
    text: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(text, "--json") == code
    document = json.loads(capsys.readouterr().out)
    assert document["exact"] is (code == 0)
    assert document["exact"] == all(note["kind"] == "note" for note in document["notes"])
    run(text)
    err = capsys.readouterr().err
    marks = (" may differ: ", " no counterpart: ", " refused: ")
    assert any(mark in err for mark in marks) is (code == 1)


def test_a_file_of_settings_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.conf").write_text("dsbulk.schema { keyspace = s, table = t }")
    assert run("dsbulk", "count", "-f", "x.conf") == 0
    assert capsys.readouterr().out == "ringhaul count --table s.t\n"
    for data, why in (
        (b"\xff", "not UTF-8 at byte 0"),
        (b"#" * (1 << 18) + b"#", "it has more than 262,144 bytes"),
    ):
        (tmp_path / "x.conf").write_bytes(data)
        with pytest.raises(UsageError, match=why):
            run("dsbulk", "count", "-f", "x.conf")
    with pytest.raises(UsageError, match=r"-f none\.conf: No such file"):
        run("dsbulk", "count", "-f", "none.conf")
