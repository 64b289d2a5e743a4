"""What users of cqlsh and Bulk Loader type by habit is refused with what to do instead."""

from __future__ import annotations

import pytest
import rich_click as click

from producer.cli import cli
from producer.commands.registry import find_command
from producer.translate.habits import refuse_bulk_loader_options
from producer.translate.setting_names import SHORTCUTS
from tests.cases import each

LONG = sorted(name for name in SHORTCUTS if len(name) > 1)


def run(*words: str) -> None:
    cli.main(list(words), prog_name="ringhaul", standalone_mode=False)


def check(name: str, *words: str) -> None:
    command = find_command(name)
    assert command is not None
    refuse_bulk_loader_options(name, command, words)


@each("name", ["load", "unload", "count"])
@each("option", LONG)
def test_an_option_of_bulk_loader_names_the_translator(name: str, option: str) -> None:
    for word in (f"-{option}", f"-{option}=x"):
        with pytest.raises(click.UsageError) as refused:
            run(name, "a.csv", "-t", "k.t", word, "x")
        assert refused.value.message == (
            f"-{option} is an option of Bulk Loader. "
            f"`ringhaul translate dsbulk {name} ...` prints the same command for ringhaul"
        )


def test_a_host_after_the_option_for_help_is_not_a_success() -> None:
    with pytest.raises(click.UsageError, match=r"-h shows .* give --contact-points 10\.0\.0\.1"):
        run("load", "a.csv", "-t", "k.t", "-h", "10.0.0.1")


@pytest.mark.parametrize(
    "words",
    [
        ("a.csv", "-t", "k.t", "-h"),
        ("-h", "--table", "k.t"),
        ("--null", "-url", "a.csv"),  # a value
        ("--null", "-h", "a.csv"),
        ("--", "-url"),
        ("a.csv", "-tk.t", "-kshop", "-c2"),
        ("a.csv", "--header", "--ttl", "3"),
        ("-", "-t", "k.t"),
    ],
)
def test_ringhauls_own_words_pass(words: tuple[str, ...]) -> None:
    check("load", *words)


def test_commands_that_bulk_loader_does_not_have_take_their_words() -> None:
    check("query", "-url", "-h", "x")


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("COPY", 'for a COPY of cqlsh run `ringhaul translate "COPY ..."`'),
        ("cqlsh", 'for a COPY of cqlsh run `ringhaul translate "COPY ..."`'),
        ("dsbulk", "for a command of Bulk Loader run `ringhaul translate dsbulk ...`"),
        ("sstableloader", "`ringhaul load --via streaming` sends files to the nodes as SSTables"),
    ],
)
def test_another_tool_as_a_command_gets_advice(word: str, advice: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        run(word, "x")
    assert refused.value.message == f"No such command {word!r}; {advice}"


def test_a_note_does_not_cut_an_option_in_two(capsys: pytest.CaptureFixture[str]) -> None:
    run("translate", "cqlsh -u me -p secret -e 'COPY s.t FROM STDIN'")
    assert "--password-file FILE" in " ".join(capsys.readouterr().err.split())
