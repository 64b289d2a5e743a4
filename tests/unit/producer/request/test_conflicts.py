"""Options that would have no effect are refused before any service is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import rich_click as click

from producer.cli import cli
from producer.options.job import Following
from producer.request.conflicts import PAIRS, refuse_workers_of_others
from producer.request.output import refuse_output_options
from producer.request.settings import settle
from ringhaul.errors import UsageError

LOAD = ("load", "in.csv", "-t", "k.t")
UNLOAD = ("unload", "-t", "k.t", "-o", "out")
BROKER = ("--broker", "redis://127.0.0.1:1/0")
ROWS = ("unload", "-t", "k.t", *BROKER)
LOOKUP = ("lookup", "-t", "k.t", "--keys", "in.csv", *BROKER)
REFUSED: list[tuple[Sequence[str], str]] = [
    ((*LOAD, "--summary", "s.json", "--detach"), "--summary is written at the end"),
    ((*LOAD, "--summary", "s.json", "--dry-run"), "--summary needs a job, and"),
    ((*LOAD, "--detach", "--dry-run"), "--detach needs a job, and"),
    ((*UNLOAD, "--on-interrupt", "cancel", "--dry-run"), "--on-interrupt needs a job, and"),
    ((*UNLOAD, "--progress", "none", "--dry-run"), "--progress needs a job, and"),
    ((*UNLOAD, "--summary", "s.json", "--detach"), "--summary is written at the end"),
    ((*UNLOAD, "--summary", "s.json", "--dry-run"), "--summary needs a job, and"),
    ((*UNLOAD, "--priority", "low", "--dry-run"), "--priority needs a job, and"),
    ((*UNLOAD, "--rate", "5", "--dry-run"), "--rate limits a job that runs"),
    ((*LOAD, "--on-interrupt", "cancel", "--detach"), "--on-interrupt needs a command that follow"),
    ((*UNLOAD, "--progress", "none", "--detach"), "--progress needs a command that follows"),
    ((*ROWS, "-o", "-", "--detach"), "^--detach: this command writes standard output"),
    ((*ROWS, "-o", "-", "--on-interrupt", "detach"), "^--on-interrupt detach: this command writes"),
    ((*LOOKUP, "--on-interrupt", "detach"), "^--on-interrupt detach: this command writes"),
    (("status", "ld-1", "--limit", "3"), "--limit applies to the list of jobs"),
    (("status", "--events"), "--events shows one job: name it"),
    (("status", "ld-1", "--events", "-f"), "leave out -f, or --events"),
    (("errors", "ld-1", "--export", "bad.csv", "--json"), "give one of them"),
    (("errors", "ld-1", "--export", "bad.csv", "--limit", "3"), "--limit applies to what is shown"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED)
def test_conflicting_options_are_refused(
    words: Sequence[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole commands, with a broker that is not contacted and files that do not exist."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=message):
        cli.main([*words], prog_name="ringhaul", standalone_mode=False)
    assert list(tmp_path.iterdir()) == []


def test_both_options_of_each_pair_belong_to_one_command() -> None:
    context = click.Context(cli)
    commands = [cli.get_command(context, name) for name in cli.list_commands(context)]
    names = [{param.name for param in command.params} for command in commands if command]
    for pair in PAIRS:
        assert any(set(pair) <= known for known in names), pair


def test_output_options_of_statements_without_answers_are_refused() -> None:
    refuse_output_options({"params", "statement", "rate", "values_header"}, "this INSERT")
    with pytest.raises(UsageError) as refusal:
        refuse_output_options({"header", "max_rows_per_file", "params"}, "this INSERT")
    assert str(refusal.value) == (
        "--max-rows-per-file, --header: this INSERT has no answers: leave such options out"
    )


def test_options_of_embedded_workers_are_refused_with_standing_workers() -> None:
    given = Following(workers=2, on_interrupt=None)
    refuse_workers_of_others(settle({}, config_file=None), given)
    elsewhere = settle({"broker.url": "redis://host/0"}, None)
    refuse_workers_of_others(elsewhere, replace(given, workers=None))
    with pytest.raises(UsageError, match="that `ringhaul worker -c` started"):
        refuse_workers_of_others(elsewhere, given)
    refuse_workers_of_others(settle({"broker.url": "none"}, None), given)
