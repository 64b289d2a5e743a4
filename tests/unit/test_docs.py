"""The documentation agrees with the code: commands, options, settings, exit codes, links.

The docs are compared with the click tree and the settings model, so a new option without a
line in the docs fails here: `python -m manual.reference` writes it.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import rich_click as click

import ringhaul.errors
from config.names import env_name
from config.sections import setting_keys
from manual.reference import COMMANDS as COMMANDS
from manual.reference import REFERENCE, SHARED, listed, missing, page_of, updated
from manual.reference import options as options
from manual.site import ROOT as ROOT
from manual.site import pages
from producer.cli import cli
from producer.figures.outcome import EXIT_CODES
from tests.cases import each
from tests.manual_pages import anchors_of, name_of, prose_of, text_of

#: Pages of the reference whose examples belong together, in the order in which tests run them.
_IN_ORDER = (
    *("load", "verify", "unload", "count", "query", "peek", "lookup", "exec"),
    *("../records", "../values", "../answers", "../job-options"),
)
#: Pages that are about more than options.
_NAMES = ("copy-from", "formats", "settings", "spelling", "versions")
_OTHERS = [REFERENCE / f"{name}.md" for name in _NAMES]
_PAGES = [REFERENCE / "commands" / f"{name}.md" for name in _IN_ORDER]
_PAGES = [page.resolve() for page in _PAGES]
_PAGES += sorted({*REFERENCE.rglob("*.md")} - {*_PAGES, *_OTHERS})
#: All other pages of the reference.
CLI = "\n".join(map(text_of, _PAGES))
SETTINGS = text_of(REFERENCE / "settings.md")
#: Each page with tables of options, and whose they are.
REFERENCE_TABLES = {
    **{REFERENCE / name: of for name, of in SHARED.items()},
    **{page_of(name): (name,) for name in COMMANDS if " " not in name},
}
PAGES = pages()
#: A command of another program, such as a bench.
_OF_PYTHON = re.compile(r"`python -m (?!ringhaul)[^`]*`")
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"(?:^|[\s(\"$])ringhaul ([a-z]+(?: (?:up|down|env|show))?)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SETTING_ROW = re.compile(r"^\| `([a-z0-9_.]+)` \| (.*?) \| (.+) \|$", re.MULTILINE)
_EXIT_ROW = re.compile(r"^\| (\d+) \| `(EXIT_[A-Z_]+)` \| (.+) \|$", re.MULTILINE)


def shared_options(title: str) -> str:
    """The page of the reference with this title."""
    return CLI.split(f"# {title}\n")[1].split("\n# ")[0]


def documented(text: str) -> set[str]:
    """Every flag in code, in prose or a table."""
    return {
        flag
        for span in _SPAN.findall(text)
        for flag in re.findall(r"(?<!\S)--?[A-Za-z][\w-]*", span)
    }


@each("name", COMMANDS)
def test_each_command_and_option_is_documented(name: str) -> None:
    page = page_of(name)
    assert re.search(rf"^#+ ringhaul {name}$", text_of(page), re.MULTILINE)
    lacking = [option.opts[-1] for option in missing(name)]
    assert not lacking, f"{page.name} lacks {lacking}: run `python -m manual.reference`"


@each("page", REFERENCE_TABLES, ids=lambda page: page.name)
def test_tables_of_options_are_those_of_the_commands(page: Path) -> None:
    text = text_of(page)
    changed = {*text.splitlines()} ^ {*updated(text, REFERENCE_TABLES[page]).splitlines()}
    assert not changed, "run `python -m manual.reference`, and look at what it changed"


def test_a_table_follows_a_changed_option() -> None:
    # Given a table with an option that was renamed, and one whose default changed
    table = (
        "# ringhaul top\n| option | default | meaning |\n|---|---|---|\n"
        "| `--gone N` | 7 | Was here. |\n"
        "| `--config FILE` | `x` | By hand. |\n| `--once` | | So. |\n"
    )
    # Then the first goes, the second is kept, as the command says nothing, and so are their texts
    assert updated(table, ["load"]).splitlines()[3:] == [
        "| `--config FILE` | `x` | By hand. |",
        "| `--once` | | So. |",
    ]
    assert "| `-n`, `--rows N` | 5 | So. |" in updated(
        table.replace("--once", "-n").replace("ringhaul top", "ringhaul peek"), ["load"]
    )
    assert listed(table, ["load"]) == {("top", "--gone"), ("top", "--config"), ("top", "--once")}


@each("name", COMMANDS)
def test_each_command_and_option_has_a_help_text(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert [option.opts for option in options(command) if not option.help] == []


def test_no_option_is_documented_that_does_not_exist() -> None:
    known = {"--help", "--help-all", "-h", "--version"}
    for command in COMMANDS.values():
        for option in options(command):
            known |= {*option.opts, *option.secondary_opts}
    code = _OF_PYTHON.sub("", _FENCE.sub("", CLI))
    assert documented(code) - known == {"-A"}  # of celery


def test_the_settings_table_lists_exactly_the_settings() -> None:
    listed = [match[1] for match in _SETTING_ROW.finditer(SETTINGS)]
    assert sorted(listed) == sorted(setting_keys())
    assert len(set(listed)) == len(listed)


def test_the_settings_table_has_the_defaults() -> None:
    fields = setting_keys()
    for key, default, meaning in _SETTING_ROW.findall(SETTINGS):
        if key in ("state_dir", "cache_dir"):
            assert key.removesuffix("_dir") in default and "XDG" in meaning
            continue
        value = fields[key].get_default(call_default_factory=True)
        assert default.strip("`") == as_documented(value), key


def as_documented(value: object) -> str:
    """A default as the table writes it."""
    if value in (None, "", ()):
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= 2**20:
        return f"{value // 2**20} MiB"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_the_exit_code_table_lists_exactly_the_exit_codes() -> None:
    codes = {
        name: value for name, value in vars(ringhaul.errors).items() if name.startswith("EXIT_")
    }
    table = {name: int(code) for code, name, _ in _EXIT_ROW.findall(CLI)}
    assert table == codes
    assert set(EXIT_CODES.values()) <= set(table.values())


@each("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = prose_of(page)
    wrong = []
    for target in _LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors_of(file)):
            wrong.append(target)
    assert not wrong


@each("page", PAGES, ids=name_of)
def test_commands_in_fences_are_valid(page: Path) -> None:
    # Other lines may be incomplete: a quoted text may span several.
    wrong = []
    for line in shell_lines(text_of(page)):
        for arguments in ringhaul_calls(line) if "ringhaul" in line else ():
            try:
                parse(arguments)
            except (click.UsageError, AssertionError) as error:
                wrong.append(f"{line}: {error}")
    assert not wrong


@each("page", PAGES, ids=name_of)
def test_commands_in_text_exist(page: Path) -> None:
    text = prose_of(page)
    wrong = [
        span
        for span in _SPAN.findall(text)
        for match in _COMMAND.findall(span)
        if match not in COMMANDS and match.split()[0] not in COMMANDS
    ]
    assert not wrong


@each("page", PAGES, ids=name_of)
def test_settings_and_variables_in_text_exist(page: Path) -> None:
    text = text_of(page)
    sections = {key.partition(".")[0] for key in setting_keys() if "." in key}
    variables = {env_name(key) for key in setting_keys()} | {"RINGHAUL_CONFIG"}
    # RINGHAUL_SECTION_NAME is a placeholder; a name that ends in _ is a prefix.
    found = re.findall(r"\bRINGHAUL_[A-Z0-9_]+\b", text)
    known = variables | {"RINGHAUL_SECTION_NAME"}
    wrong = [name for name in found if name not in known and not name.endswith("_")]
    for span in _SPAN.findall(text):
        if span.endswith(".toml"):
            continue  # a file: schedule.toml
        if match := re.fullmatch(rf"((?:{'|'.join(sections)})\.[a-z_]+)", span):
            is_module = (ROOT / match[1].replace(".", "/")).with_suffix(".py").exists()
            if match[1] not in setting_keys() and not is_module:
                wrong.append(span)
    assert not wrong


def test_targets_of_make_in_text_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for span in [*_SPAN.findall(text_of(page)), *shell_lines(text_of(page))]:
            if match := re.match(r"make ([a-z-]+)", span):
                assert match[1] in targets, f"{page.name}: {span}"


def shell_lines(text: str) -> Iterator[str]:
    """The shell lines in the fences of a page, joined at a backslash."""
    for language, body in _FENCE.findall(text):
        joined = re.sub(r"\\\n\s*", "", body)
        for line in joined.splitlines():
            stripped = line.strip()
            if language == "console" and stripped.startswith("$ "):
                yield stripped.removeprefix("$ ")
            elif language in ("bash", "sh"):
                yield stripped


def ringhaul_calls(line: str) -> Iterator[list[str]]:
    """The arguments of each call of `ringhaul` in a shell line."""
    words = shlex.split(line, comments=True)
    words = [part for word in words for part in re.split(r"(;|\|\||&&)(?=$)", word) if part]
    starts = [i for i, word in enumerate(words) if word.endswith("ringhaul") and "=" not in word]
    for start in starts:
        before = words[start - 1] if start else ";"
        if start and before not in (";", "|", "&&", "||") and "=" not in before:
            continue  # an argument of another command
        if before.startswith("_RINGHAUL_COMPLETE="):
            continue  # prints a script for a shell
        rest = words[start + 1 :]
        ends = [i for i, word in enumerate(rest) if word in (";", "|", "&&", "||", ">", "<", "&")]
        yield rest[: ends[0]] if ends else rest


def parse(arguments: list[str]) -> None:
    """Parse as click would, without running anything. Raises `UsageError` if click refuses."""
    command: click.Command = cli
    context = click.Context(cli, info_name="ringhaul")
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        found = command.get_command(context, arguments[0])
        assert found is not None, f"there is no command {arguments[0]}"
        command, arguments = found, arguments[1:]
    if "--help" not in arguments and "--version" not in arguments:
        command.make_context(command.name, arguments)


def test_the_checks_can_fail() -> None:
    with pytest.raises(click.UsageError):
        parse(["load", "a.csv", "-t", "ks.t", "--no-such-option"])
    with pytest.raises(AssertionError):
        parse(["laod", "a.csv"])
    assert list(ringhaul_calls("zcat a.gz | ringhaul load - -t k.t; echo done")) == [
        ["load", "-", "-t", "k.t"]
    ]
    assert list(shell_lines("```console\n$ ringhaul load a \\\n    -t k.t\nout\n```\n")) == [
        "ringhaul load a -t k.t"
    ]
    assert "--only-here" not in documented(CLI)
