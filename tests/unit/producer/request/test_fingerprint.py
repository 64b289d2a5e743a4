"""The fingerprint of a request, kept with its job: which differences of two commands count."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import rich_click as click

from producer.cli import cli
from producer.request.fingerprint import differences, fingerprint_of
from producer.startup import STEP_VARIABLE

COUNT = ("count", "-t", "k.t")
LOAD = ("load", "a.csv", "-t", "k.t")
UNLOAD = ("unload", "-t", "k.t", "-o", "o1")
LOOKUP = ("lookup", "-t", "k.t", "--keys", "a.csv")
SELECT = ("exec", "SELECT a FROM k.t WHERE id = ?")
WEB = "https://h.example/a.csv"

DIFFERENT: list[tuple[Sequence[str], Sequence[str], str]] = [
    ((*COUNT, "--where", "a=0"), (*COUNT, "--where", "id=1"), "--where 'a=0', here 'id=1'"),
    (COUNT, (*COUNT, "--by", "host"), "--by not given, here 'host'"),
    (("query", "SELECT 1"), ("query", "SELECT 2"), "SELECT 'SELECT 1', here 'SELECT 2'"),
    (LOAD, ("load", "b.csv", *LOAD[2:]), "SOURCE '{}/a.csv', here '{}/b.csv'"),
    (LOAD, ("load", "-", *LOAD[2:]), "SOURCE '{}/a.csv', here '-'"),
    ((*LOAD, "--urlfile", "l"), LOAD, "--urlfile '{}/l', here not given"),
    (LOAD, (*LOAD, "--primary-key", "a"), "--primary-key not given, here 'a'"),
    (LOAD, (*LOAD, "--no-header"), "--header not given, here 'no'"),
    (LOAD, (*LOAD, "--quote", ""), "--quote not given, here ''"),
    (LOAD, ("load", "a.csv", "-k", "k", "-t", "u"), "--table 'k.t', here 'k.u'"),
    ((*SELECT, "--params", "p"), (*SELECT, "--params", "q"), "--params '{}/p', here '{}/q'"),
    ((*SELECT, "--range", "id:1..3"), (*SELECT, "--range", "id:4..9"), "--range 'id:1..3', here"),
    (LOOKUP, (*LOOKUP, "--columns", "a"), "--columns not given, here 'a'"),
    (LOOKUP, (*LOOKUP, "--keys", "b.csv"), "--keys '{}/a.csv', here '{}/b.csv'"),
    (UNLOAD, (*UNLOAD, "-o", "o2"), "-o '{}/o1', here '{}/o2'"),
    (UNLOAD, (*UNLOAD, "--no-header"), "--header not given, here 'no'"),
    ((*LOAD, f"{WEB}?day=1"), (*LOAD, f"{WEB}?day=2"), f"{WEB}?...("),
    ((*LOAD, *(f"{n}.csv" for n in range(99))), (*LOAD, *(f"{n}.csv" for n in range(98))), " char"),
]
SAME: list[tuple[Sequence[str], Sequence[str]]] = [
    (LOAD, ("load", "./a.csv", "-k", "k", "-t", "t", "--format", "auto", "--header")),
    (
        LOAD,
        (*LOAD, "--rate", "9", "--consistency", "ONE", "--max-errors", "9", "--json", "-c", "2"),
    ),
    (LOAD, (*LOAD, "--detach", "--unit-size", "1M", "--broker", "redis://h/0", "--port", "1")),
    ((*LOAD, "--job-id", "a", "-q"), (*LOAD, "--job-id", "b", "--summary", "s.json")),
    # Each command prints the result in its own way.
    (COUNT, (*COUNT, "--format", "json", "--by", "total")),
    (("query", "SELECT 1"), ("query", "SELECT 1", "-o", "r.csv")),
]


def fingerprint(words: Sequence[str]) -> str:
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    return fingerprint_of(command.make_context(words[0], [*words[1:]]))


@pytest.mark.parametrize(("was", "now", "message"), DIFFERENT)
def test_a_difference_names_the_option_and_both_values(
    was: Sequence[str],
    now: Sequence[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (difference,) = differences(fingerprint(was), fingerprint(now))
    assert message.format(tmp_path, tmp_path) in difference


def test_all_differences_are_listed() -> None:
    now = fingerprint((*UNLOAD, "--columns", "id", "--where", "id=3", "-o", "o2"))
    names = [text.partition(" ")[0] for text in differences(fingerprint(UNLOAD), now)]
    assert sorted(names) == ["--columns", "--where", "-o"]


@pytest.mark.parametrize(("was", "now"), SAME)
def test_options_about_how_the_work_is_done_may_differ(
    was: Sequence[str], now: Sequence[str]
) -> None:
    assert differences(fingerprint(was), fingerprint(now)) == []


def test_a_step_has_one_fingerprint_in_the_folder_of_another_beat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = fingerprint(LOAD)
    monkeypatch.setenv(STEP_VARIABLE, "nightly")
    step = fingerprint(LOAD)
    monkeypatch.chdir(tmp_path)
    assert fingerprint(LOAD) == step != here


def test_a_fingerprint_is_short_and_has_no_secret() -> None:
    kept = json.loads(fingerprint(("load", "https://u:hush@h/a.csv?key=hush", "-t", "k.t")))
    assert kept.keys() == {"SOURCE", "--table"}
    assert kept["SOURCE"].startswith("https://h/a.csv?...(")
    assert "hush" not in kept["SOURCE"]
    long = json.loads(fingerprint(("query", "SELECT " + "a, " * 9999)))["SELECT"]
    assert len(long) < 300
    assert "(30,004 characters, " in long


def test_a_list_of_files_is_identified_by_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("load", "--urlfile", "today.txt", "-t", "k.t")
    Path("today.txt").write_text("a.csv\n")
    before = fingerprint(command)
    assert differences(before, fingerprint(command)) == []
    Path("today.txt").write_text("b.csv\n")
    (difference,) = differences(before, fingerprint(command))
    assert difference.startswith(f"--urlfile '{tmp_path}/today.txt(")
