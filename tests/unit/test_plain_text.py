"""Text from outside that is shown: nothing in it acts on the terminal, nothing of it is lost."""

import io
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.logs import set_up_logging
from config.sections import LoggingSettings
from producer.outputs import plain_streams
from producer.report.result_table import _drawn
from ringhaul.cql.types import parse_type
from ringhaul.plain_text import as_line, as_lines
from tests.acceptance.command import Ringhaul

HOSTILE = {
    "\x1b]0;PWNED\x07": "\\x1b]0;PWNED\\x07",
    "\x1b[31mred": "\\x1b[31mred",
    "a\x9b2Jb": "a\\x9b2Jb",
    "a\rb": "a\\rb",
    "\x7f\x08": "\\x7f\\x08",
    "\u202egpj.exe": "\\u202egpj.exe",
    "a\u2066b\u2069": "a\\u2066b\\u2069",
    "a\u2028b": "a\\u2028b",
    "a\u200bb\ufeff": "a\\u200bb\\ufeff",
    "\udc9b": "\\udc9b",
    "\U000e0041": "\\U000e0041",
}
HARMLESS = ["", "plain", "naïve — 漢字 \u3000 \xa0", "\U0001f468\u200d\U0001f469", "[red]x[/red]"]


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items(), ids=ascii)
def test_hostile_text_is_shown_as_escapes(text: str, shown: str) -> None:
    assert as_line(text) == as_lines(text) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text: str) -> None:
    assert as_line(text) == as_lines(text) == text


def test_line_ends_stay_only_where_lines_are_ours() -> None:
    assert as_lines("a\n\tb") == "a\n\tb"
    assert as_line("a\n\tb") == "a\\n\\tb"


@given(st.text(st.characters(codec=None)))
def test_what_is_shown_has_no_control_character(text: str) -> None:
    shown = as_line(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in shown)
    assert as_line(shown) == shown


def test_streams_show_it_and_rich_does_not_go_through_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out, err, pipe = Terminal(), io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    plain_streams.show_plain_text()
    print("\x1b[2Jout")
    print("\x1b[2Jerr", file=sys.stderr)
    assert (out.getvalue(), err.getvalue()) == ("\\x1b[2Jout\n", "\\x1b[2Jerr\n")
    assert sys.stderr.rich_proxied_file is err  # type: ignore[attr-defined]
    plain_streams.show_as_written()
    assert (sys.stdout, sys.stderr) == (out, err)
    monkeypatch.setattr(sys, "stdout", pipe)
    plain_streams.show_plain_text()
    assert sys.stdout is pipe, "data for programs stays as it is"


def test_a_table_keeps_its_lines() -> None:
    table = pa.table({"a\x1b": ["x\ny", "\x1b]0;PWNED\x07", "\u202e"]})
    drawn = _drawn(table, [parse_type("text")], 10)
    assert drawn.splitlines()[2:] == [" x\\ny", " \\x1b]0;PWNED\\x07", " \\u202e"]
    assert "\x1b" not in drawn


def test_lines_of_a_log_are_plain() -> None:
    import logging

    stream = io.StringIO()
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        settings = LoggingSettings.model_validate({"format": "console"})
        set_up_logging(settings, stream, plain=as_lines)
        logging.getLogger("t").warning("no file %s", "\x1b[31mred.csv")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    assert "no file \\x1b[31mred.csv" in stream.getvalue()
    assert "\x1b[31mred" not in stream.getvalue()


@pytest.mark.parametrize(
    "words",
    [
        ["load", "\x1b[31mred.csv", "-t", "k.t", "--dry-run"],
        ["\x1b[31mload"],
        ["status", "\x1b[31mjob"],
        ["load", "a.csv", "--\x1b[31moption"],
        ["load", "a.csv", "-t", "k.t", "--config", "\x1b]0;PWNED\x07"],
        ["config", "show", "--config", "\x1b[31m.toml"],
    ],
    ids=ascii,
)
def test_no_message_of_a_command_holds_an_escape(words: list[str], tmp_path: Path) -> None:
    done = Ringhaul({"RINGHAUL_STATE_DIR": str(tmp_path / "state")}, tmp_path).run(*words)
    assert done.code != 0
    assert not any(ord(c) < 32 and c != "\n" for c in done.out + done.err), (done.out, done.err)
    assert "\\x1b" in done.err
