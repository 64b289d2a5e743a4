"""Text from outside: shown without effect on the terminal and without loss."""

import io
import json
import logging
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.logs import set_up_logging
from config.sections import LoggingSettings
from config.settings import load_settings
from producer.cli import cli
from producer.commands.local import _shown
from producer.errors import print_error, run_command
from producer.outputs import plain_streams
from producer.outputs.stdout import json_text
from producer.report.result_table import _bytes, _drawn
from ringhaul.cql.types import parse_type
from ringhaul.errors import UsageError
from ringhaul.plain_text import as_line, as_lines, in_json, lines_of
from tests.acceptance.command import Ringhaul
from tests.cases import each

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


@each(("text", "shown"), HOSTILE.items(), ids=ascii)
def test_hostile_text_is_shown_as_escapes(text: str, shown: str) -> None:
    assert as_line(text) == as_lines(text) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_unchanged(text: str) -> None:
    assert as_line(text) == as_lines(text) == text


def test_line_ends_stay_only_between_our_own_lines() -> None:
    assert as_lines("a\n\tb") == "a\n\tb"
    assert as_line("a\n\tb") == "a\\n\\tb"


@given(st.text(st.characters(codec=None)))
def test_shown_text_has_no_control_characters(text: str) -> None:
    shown = as_line(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in shown)
    assert as_line(shown) == shown


def test_streams_escape_text_and_rich_bypasses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out, err = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    plain_streams.show_plain_text()
    print("\x1b[2Jout")
    print("\x1b[2Jerr", file=sys.stderr)
    assert (out.getvalue(), err.getvalue()) == ("\\x1b[2Jout\n", "\\x1b[2Jerr\n")
    assert sys.stderr.rich_proxied_file is err  # type: ignore[attr-defined]
    plain_streams.show_as_written()
    assert (sys.stdout, sys.stderr) == (out, err)


def test_a_pipe_gets_messages_escaped_and_data_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pager behind the pipe may show everything on a terminal."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="utf-8"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    plain_streams.show_plain_text()
    print("\x1b[2Jtable\u202e", flush=True)
    sys.stdout.buffer.write(b"\x1b[2Jdata\n")
    sys.stdout.flush()
    assert raw.getvalue() == b"\\x1b[2Jtable\\u202e\n\x1b[2Jdata\n"


@given(st.text(st.characters(codec=None)))
def test_json_is_exact_and_safe_for_a_terminal(text: str) -> None:
    for shown in (
        json_text({text: [text]}),
        in_json(json.dumps({text: [text]}, ensure_ascii=False)),
    ):
        assert json.loads(shown) == {text: [text]}
        assert as_line(shown) == shown
    assert json_text([text]).isascii()


def test_json_rows_on_a_terminal_are_exact_and_plain() -> None:
    table = pa.table({"a\x9b": ["\x1b\x7f\x9b\u202e\U000e0041 naïve 漢"]})
    data = _bytes(table, [parse_type("text")], "json", shown=True).decode()
    assert as_lines(data) == data and "naïve 漢" in data
    exact = _bytes(table, [parse_type("text")], "json", shown=False).decode()
    assert json.loads(data) == json.loads(exact) == {"a\x9b": table[0][0].as_py()}
    assert "\x9b" in exact


def test_the_environment_is_exact_on_a_terminal_and_on_a_pipe(tmp_path: Path) -> None:
    value = "/s'\x1b[31m\\ \x9b\n\u202e$(x)\udcff"
    for word in (_shown(value), shlex.quote(value)):
        done = subprocess.run(
            [b"bash", b"-c", b"export V=" + os.fsencode(word) + b'; printf %s "$V"'],
            capture_output=True,
            check=True,
        )
        assert os.fsdecode(done.stdout) == value
    assert as_line(_shown(value)) == _shown(value)


def test_a_table_keeps_its_lines() -> None:
    table = pa.table({"a\x1b": ["x\ny", "\x1b]0;PWNED\x07", "\u202e"]})
    drawn = _drawn(table, [parse_type("text")], 10)
    assert drawn.splitlines()[2:] == [" x\\ny", " \\x1b]0;PWNED\\x07", " \\u202e"]
    assert "\x1b" not in drawn


def test_json_logs_hold_escapes_and_the_exact_message() -> None:
    said = "".join([*HOSTILE, "naïve 漢 \U0001f600 \udc9b"])
    stream = io.StringIO()
    with _logging_to(stream, "json"):
        logging.getLogger("t").warning("%s", said, extra={"table": said})
    assert stream.getvalue().rstrip("\n").isascii()
    assert as_line(stream.getvalue()[:-1]) == stream.getvalue()[:-1]
    line = json.loads(stream.getvalue())
    assert line["message"] == line["table"] == said


@contextmanager
def _logging_to(stream: io.StringIO, form: str) -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        set_up_logging(LoggingSettings.model_validate({"format": form}), stream, plain=as_line)
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def test_lines_of_a_log_are_plain() -> None:
    stream = io.StringIO()
    with _logging_to(stream, "console"):
        logging.getLogger("t").warning("no file %s", "\x1b[31mred.csv", extra={"x": "a\nERROR b"})
        logging.getLogger("t").warning("no file %s", "a\n2026-01-01 [error] forged")
        try:
            raise ValueError("\x1b[31mred")
        except ValueError:
            logging.getLogger("t").exception("lost")
    assert "no file \\x1b[31mred.csv" in stream.getvalue()
    assert "\x1b[31mred" not in stream.getvalue()
    first, second, third, *trace = stream.getvalue().splitlines()
    assert "ERROR b" in first and "a\\n2026-01-01 [error] forged" in second
    assert "lost" in third and trace[0].startswith("Traceback")
    assert trace[-1] == "ValueError: \\x1b[31mred"


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


#: Could be taken for our own message if it began a line.
FORGED = "x\nerror: forged\r\n\u2028warning: forged"


@pytest.mark.parametrize(
    "words",
    [
        [FORGED],
        ["load", FORGED, "-t", "k.t", "--dry-run"],
        ["load", "a.csv", "-t", FORGED],
        ["load", "a.csv", "-t", "k.t", "--consistency", FORGED],
        ["load", "a.csv", "-t", "k.t", "--strategy", FORGED],
        ["load", "a.csv", "-t", "k.t", "-d", FORGED],
        ["load", "a.csv", "-t", "k.t", "--max-errors", FORGED],
        ["load", "a.csv", "-t", "k.t", "--encoding", FORGED],
        ["load", "a.csv", "-t", "k.t", f"--{FORGED}"],
        ["load", "a.csv", "-t", "k.t", "--broker", FORGED],
        ["load", "a.csv", "-t", "k.t", "--contact-points", FORGED],
        ["unload", "-t", "k.t", "-o", f"/nowhere/{FORGED}", "--where", FORGED],
        ["query", FORGED],
        ["status", FORGED],
        ["errors", FORGED],
        ["config", "show", "--config", FORGED],
        ["schedule", "run", FORGED],
    ],
    ids=lambda words: " ".join(words)[:40].encode("ascii", "backslashreplace").decode(),
)
def test_no_text_from_outside_begins_a_line(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = {"RINGHAUL_STATE_DIR": str(tmp_path / "state"), "RINGHAUL_CLUSTER_PORT": "1"}
    others = {name: value for name, value in os.environ.items() if not name.startswith("RINGHAUL_")}
    monkeypatch.setattr(os, "environ", others | ours)  # commands leave their flags in it
    (tmp_path / "a.csv").write_text("id\n1\n")
    monkeypatch.setattr("sys.stdout", sys.stdout)
    monkeypatch.setattr("sys.stderr", sys.stderr)
    plain_streams.show_plain_text()
    code = run_command(lambda: cli.main(words, prog_name="ringhaul", standalone_mode=False))
    output = capfd.readouterr()
    assert code != 0
    lines = (output.out + output.err).splitlines()
    assert output.err and "Traceback" not in output.err
    assert not [line for line in lines if line.strip().startswith(("error: forged", "warning: f"))]


@given(st.text(st.characters(codec=None)))
def test_a_message_with_text_from_outside_is_one_line(text: str) -> None:
    err = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", err)
        print_error(
            f"{text}: cannot be read", UsageError
        )  # as in a process whose streams are not wrapped
        plain_streams.show_plain_text()
        print_error(f"{text}: cannot be read", UsageError)
        print(f"warning: {text}", file=sys.stderr)
        print(lines_of([f"one {text}", lines_of([text, "three"])]), file=sys.stderr)
        plain_streams.show_as_written()
    shown = err.getvalue()
    assert len(shown.splitlines()) == shown.count("\n")
    # A line end at the end of a printed text leaves one blank line.
    assert len([line for line in shown.splitlines() if line]) <= 6


def test_each_wrong_setting_is_reported_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "x\nerror: forged")
    monkeypatch.setenv("RINGHAUL_CLUSTER_CONSISTENCY", "y")
    assert run_command(load_settings) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert (
        "x\\nerror: forged" in first + second and "RINGHAUL_CLUSTER_CONSISTENCY" in first + second
    )


@pytest.mark.parametrize("words", [["--help"], ["status", "--help"], ["local", "up", "-h"], []])
def test_help_on_a_terminal_has_colours(words: list[str], tmp_path: Path) -> None:
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("ringhaul")), *words],
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "RINGHAUL_STATE_DIR": str(tmp_path)},
        )
        os.close(slave)
        shown = b""
        while some := _read(master):
            shown += some
        process.wait(30)
    finally:
        os.close(master)
    assert b"\x1b[" in shown and b"Usage:" in shown
    assert b"\\x1b" not in shown


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other end is closed
        return b""


def test_a_command_on_a_pipe_gets_bytes_of_data(tmp_path: Path) -> None:
    done = Ringhaul({"RINGHAUL_STATE_DIR": str(tmp_path)}, tmp_path).run(
        "local", "status", "--json"
    )
    assert json.loads(done.out) == {"up": False, "servers": []}
