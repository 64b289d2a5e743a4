"""The format of input, from the options of `load` and from those of values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from producer.options.spelling import Spelling
from producer.request.input_format import dialect_of, text_of
from ringhaul.cql.text_format import TextFormat
from ringhaul.errors import UsageError
from ringhaul.formats.dialect import CsvDialect
from tasks.command_line import VALUES_PREFIX, option_name
from tests.cases import each
from tests.options import parse_options

Given = Callable[..., Spelling]


@pytest.fixture(params=["lookup", "exec"])
def given(request: pytest.FixtureRequest) -> Given:
    """Parse the options about values of a command line."""

    def parsed(*arguments: str) -> Spelling:
        if request.param == "lookup":
            options = parse_options("lookup", "-t", "t", "--keys", "-", *arguments)
        else:
            options = parse_options("exec", "SELECT", "--params", "-", *arguments)
        values: Spelling = options.values
        return values

    return parsed


def test_values_are_rfc_4180_and_utf_8_by_default(given: Given) -> None:
    options = given()
    assert (options.file_format, options.header) == ("auto", True)
    assert dialect_of(options, VALUES_PREFIX) == CsvDialect()
    assert text_of(options, VALUES_PREFIX) == TextFormat()


def test_each_option_of_values_is_read(given: Given) -> None:
    options = given(
        *("--values-delimiter", "\\t", "--values-quote", "", "--values-escape", "\\"),
        *("--values-comment", "#", "--values-null", "NULL", "--values-null", "-"),
        *("--values-encoding", "latin-1", "--values-allow-nul", "--values-epoch-unit", "s"),
        *("--values-timestamp-format", "%d.%m.%Y", "--values-timezone", "Europe/Berlin"),
        *("--delimiter", "|", "--quote", "'", "--null", "nothing"),  # options of the answers
    )
    assert dialect_of(options, VALUES_PREFIX) == CsvDialect(
        delimiter="\t",
        quote=None,
        escape="\\",
        comment="#",
        encoding="latin-1",
        null_strings=("NULL", "-"),
        allow_nul=True,
    )
    assert text_of(options, VALUES_PREFIX) == TextFormat(
        timestamp_formats=("%d.%m.%Y",),
        epoch_unit="s",
        timezone="Europe/Berlin",
    )


@each(
    ("arguments", "message"),
    [
        (["--values-delimiter", "semi"], "--values-delimiter: 'semi' is not a name"),
        (["--values-quote", ","], "--values-quote: ',' is already the delimiter"),
        (["--values-encoding", "klingon"], "--values-encoding: 'klingon' is not known"),
        (["--values-empty-word", "a,b"], "--values-empty-word: 'a,b' holds the delimiter ','"),
        (["--values-empty-word", ""], "--values-empty-word: '' is what an empty field holds"),
        (
            ["--values-empty-word", "-", "--values-null", "-"],
            "--values-empty-word: '-' is null by --values-null",
        ),
        (["--values-null", "x" * 5000], "--values-null: 'xxxxxxxxxxxxxxxxxxxx'... is longer"),
    ],
)
def test_a_refusal_names_the_option_of_values(
    given: Given, arguments: list[str], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        dialect_of(given(*arguments), VALUES_PREFIX)
    assert str(refusal.value).startswith(message)


def test_the_spelling_of_values_is_described_by_their_options(given: Given) -> None:
    with pytest.raises(UsageError, match=r'^--values-timestamp-format "%H:%M" must have one year'):
        text_of(given("--values-timestamp-format", "%H:%M"), VALUES_PREFIX)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--true-words", ""], "--true-words is empty: give at least one word"),
        (["--false-words", ","], "--false-words is empty: give at least one word"),
        (["--decimal-sep", ","], None),
        (["--decimal-sep", "e"], '--decimal-sep "e" cannot be used'),
        (["--blob", "octal"], '--blob "octal" is unknown: use one of hex, base64, any'),
    ],
)
def test_the_spelling_of_a_load_is_described_by_its_options(
    arguments: list[str], message: str | None
) -> None:
    options = parse_options("load", "x.csv", "-t", "k.t", *arguments)
    if message is None:
        assert text_of(options) == TextFormat(decimal_sep=",")
        return
    with pytest.raises(UsageError) as refusal:
        text_of(options)
    assert str(refusal.value).startswith(message)


def test_options_have_the_names_of_their_command() -> None:
    assert option_name("encoding", "") == "--encoding"
    assert option_name("encoding", VALUES_PREFIX) == "--values-encoding"
    assert option_name("no-header", "") == "--no-header"
    assert option_name("no-header", VALUES_PREFIX) == "--no-values-header"
    assert option_name("null", VALUES_PREFIX) == "--values-null"
