"""`[format.NAME]` of the settings file: what it sets, what wins over it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import rich_click as click

from config.errors import ConfigError
from config.settings import load_settings
from producer.commands.click_options import AS_STEP
from producer.commands.format_profile import apply_profile
from producer.commands.registry import find_command
from producer.request.fingerprint import fingerprint_of
from ringhaul.errors import UsageError
from tests.options import parse_options

FEED = """
[cluster]
port = 9042

[format.feed]
delimiter = "|"
header = false
null = ["NULL", "-"]
null-quoted = true
timestamp-format = "%d.%m.%Y"
decimal_sep = ","
columns = "id,note"
skip-rows = 2

[format.written]
quote-all = true
compression = "gzip"
line-end = "any"
json-layout = "documents"

[format.mysql]
dialect = "mysql"
quote = "'"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ringhaul.toml"
    path.write_text(FEED)
    return path


def context_of(command: str, *arguments: str) -> click.Context:
    found = find_command(command)
    assert found is not None
    return found.make_context(command, [*arguments], obj=AS_STEP)


def load(*arguments: str) -> Any:
    return parse_options("load", "a.csv", "-t", "k.t", *arguments)


def test_a_profile_sets_what_was_not_given() -> None:
    options = load("--format-profile", "feed")
    assert (options.delimiter, options.header, options.null_strings) == ("|", False, ("NULL", "-"))
    assert (options.null_quoted, options.timestamp_formats) == (True, ("%d.%m.%Y",))
    assert (options.decimal_sep, options.columns, options.skip_rows) == (",", "id,note", 2)
    assert {"delimiter", "header", "null_strings"} <= options.given, "as if they were given"


def test_the_command_line_wins() -> None:
    options = load("--format-profile", "feed", "--delimiter", ";", "--header", "--null", "")
    assert (options.delimiter, options.header, options.null_strings) == (";", True, ("",))
    assert options.columns == "id,note"


def test_a_profile_may_name_a_dialect_and_change_it() -> None:
    options = load("--format-profile", "mysql")
    assert (options.dialect, options.escape, options.quote) == ("mysql", "\\", "'")
    # A dialect on the command line takes precedence for all options that it sets.
    excel = load("--format-profile", "mysql", "--dialect", "excel")
    assert (excel.dialect, excel.quote) == ("excel", '"')


def test_lookup_and_exec_take_profiles_for_their_input() -> None:
    lookup = ("lookup", "-t", "k.t", "--keys", "k.csv")
    options = parse_options(*lookup, "--values-format-profile", "feed", "-d", ";")
    assert (options.values.delimiter, options.values.header) == ("|", False)
    assert options.delimiter == ";", "of the answers"


def unload(*arguments: str) -> Any:
    return parse_options("unload", "-t", "k.t", "-o", "out/", *arguments)


def test_an_unload_writes_by_the_profile_of_a_load() -> None:
    options = unload("--format-profile", "feed", "--delimiter", ";")
    assert (options.delimiter, options.header) == (";", False)
    assert (options.null, options.timestamp_formats) == ("NULL", ("%d.%m.%Y",))
    assert (options.decimal_sep, options.columns) == (",", None)


def test_an_unload_says_what_of_a_profile_is_not_for_it() -> None:
    context = context_of("unload", "-t", "k.t", "-o", "out/", "--format-profile", "feed")
    said = apply_profile(context) or ""
    assert said.endswith("(not for unload: null-quoted, columns, skip-rows)")
    context = context_of("load", "a.csv", "-t", "k.t", "--format-profile", "written")
    assert (apply_profile(context) or "").endswith("(not for load: quote-all, compression)")
    context = context_of("unload", "-t", "k.t", "-o", "out/", "--format-profile", "written")
    assert (apply_profile(context) or "").endswith("(not for unload: line-end, json-layout)")


def test_what_an_unload_alone_has_may_stand_in_a_profile() -> None:
    options = unload("--format-profile", "written")
    assert (options.quote_all, options.compression, options.line_end) == (True, "gzip", None)


def test_a_dialect_on_the_command_line_of_an_unload_wins_over_a_profile() -> None:
    options = unload("--format-profile", "feed", "--dialect", "mysql")
    assert (options.dialect, options.delimiter, options.null) == ("mysql", None, None)
    assert options.decimal_sep == ","
    assert unload("--format-profile", "mysql").quote == "'"


@pytest.mark.parametrize("command", ["load", "verify"])
def test_what_is_said_names_each_option_and_the_file(command: str, file: Path) -> None:
    context = context_of(command, "a.csv", "-t", "k.t", "--format-profile", "mysql")
    line = f"[format.mysql] of {file}: --dialect 'mysql' --quote \"'\""
    assert apply_profile(context) == line


def test_a_job_is_that_of_the_resolved_options(file: Path) -> None:
    def fingerprint(*arguments: str) -> str:
        context = context_of("load", "a.csv", "-t", "k.t", *arguments)
        apply_profile(context)
        return fingerprint_of(context)

    by_profile = fingerprint("--format-profile", "mysql")
    assert by_profile == fingerprint("--dialect", "mysql", "--quote", "'")
    file.write_text(FEED.replace('quote = "\'"', "quote = '`'"))
    assert by_profile != fingerprint("--format-profile", "mysql")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[format.feed]\ndelimeter = ";"', r"line 2: \[format.feed\] has delimeter, which is no"),
        ('[format.feed]\ndelimeter = ";"', "did you mean delimiter?"),
        ('[format.feed]\ntable = "k.t"', "has table, which is not an option for records"),
        ('[format.feed]\nformat-profile = "x"', "has format-profile, which is not an option"),
        ("[format.feed]\nheader = 'no'", r"header = 'no': expected true or false"),
        ("[format.feed]\ndelimiter = true", "delimiter = True: expected a text or a number"),
        ("[format.feed]\nquote = ['a']", r"quote = \['a'\]: expected a text or a number"),
        ("[format.feed]\nnull = [[]]", "expected a text or a number or a list"),
        ("[format.feed]\nskip-rows = -1", r"skip-rows = -1: .*not in the range x>=0"),
        ("[format.feed]\ntrim = 'all'", "trim = 'all': 'all' is not one of"),
        ("[format.fed]\n", r"no \[format.feed\] in .*; it has: fed; did you mean fed?"),
        ("", "it has: none"),
    ],
)
def test_what_cannot_be_used_is_refused(file: Path, text: str, why: str) -> None:
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        load("--format-profile", "feed")


@pytest.mark.parametrize("text", ["format = 'csv'", "[format]\ndelimiter = ';'"])
def test_a_section_without_a_name_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"expected \[format.NAME\]"):
        load("--format-profile", "feed")


def test_other_commands_read_the_settings_beside_formats(file: Path) -> None:
    assert load_settings().settings.cluster.port == 9042
    file.write_text("[formats.feed]\n")
    with pytest.raises(ConfigError, match=r"formats; did you mean format\?"):
        load_settings()


def test_without_a_file_the_message_says_so(file: Path) -> None:
    file.unlink()
    with pytest.raises(UsageError, match=r"ringhaul\.toml, which was not found; it has: none"):
        load("--format-profile", "feed")
