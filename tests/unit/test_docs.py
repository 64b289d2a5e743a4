"""The documentation agrees with the code: commands, options, settings, exit codes, links.

The docs are compared with the click tree and the settings model, so a new option without a
line in the docs fails here.
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
from producer.cli import cli
from producer.report.outcome import EXIT_CODES

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.md"),
    ]
)
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_SETTING_ROW = re.compile(r"^\| `([a-z0-9_.]+)` \| (.*?) \| (.+) \|$", re.MULTILINE)
_EXIT_ROW = re.compile(r"^\| (\d+) \| `(EXIT_[A-Z_]+)` \| (.+) \|$", re.MULTILINE)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """(name, command) of every command below `group`; a name such as `local up`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        here = (*path, name)
        yield " ".join(here), command
        if isinstance(command, click.Group):
            yield from commands(command, here)


COMMANDS = dict(commands(cli))
#: Sections about options that several commands have; these link to them.
SHARED = ("Options of every job", "Records", "Answers", "Values")


def shared_options(title: str) -> str:
    return CLI.split(f"\n## {title}\n")[1].split("\n## ")[0]


def options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def section(name: str) -> str:
    """The part of docs/cli.md about a top-level command."""
    for title, text in re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", CLI, re.MULTILINE | re.DOTALL):
        if name in title.replace(",", " ").split() and title.startswith("ringhaul "):
            return str(text)
    raise AssertionError(f"docs/cli.md has no section about `ringhaul {name}`")


def rows_of(command: str, text: str) -> str:
    """The rows of one command in a table of several: up to the row that names another."""
    kept, ours = [], False
    for line in text.splitlines():
        first_cell = line.split("|")[1].strip() if line.startswith("|") else ""
        if first_cell.startswith("`ringhaul "):
            ours = first_cell == f"`ringhaul {command}`"
        if ours and line.startswith("|"):
            kept.append(line)
    return "\n".join(kept)


def documented(text: str) -> set[str]:
    """Every flag in code, in prose or a table."""
    return {
        flag
        for span in _SPAN.findall(text)
        for flag in re.findall(r"(?<!\S)--?[A-Za-z][\w-]*", span)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_and_option_is_documented(name: str) -> None:
    top = name.split()[0]
    text = section(top)
    assert f"ringhaul {name}" in CLI
    # A table of several commands must name each option in the rows of its command.
    text = rows_of(name, text) or text
    for title in SHARED:
        if f"(#{title.lower().replace(' ', '-')})" in text:
            text += shared_options(title)
    flags = {flag for option in options(COMMANDS[name]) for flag in option.opts}
    flags |= {flag for option in options(COMMANDS[name]) for flag in option.secondary_opts}
    assert flags <= documented(text), f"missing in docs/cli.md: {sorted(flags - documented(text))}"


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_and_option_has_a_help_text(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert [option.opts for option in options(command) if not option.help] == []


def test_no_option_is_documented_that_does_not_exist() -> None:
    known = {"--help", "-h", "--version"}
    for command in COMMANDS.values():
        for option in options(command):
            known |= {*option.opts, *option.secondary_opts}
    code = _FENCE.sub("", CLI)
    assert documented(code) - known == {"-A"}  # in `python -m celery -A tasks worker`


@pytest.mark.parametrize("name", COMMANDS)
def test_defaults_in_the_docs_are_those_of_the_code(name: str) -> None:
    text = section(name.split()[0]) + "".join(map(shared_options, SHARED))
    for option in options(COMMANDS[name]):
        if not option.show_default:
            continue
        rows = [line for line in text.splitlines() if f"`{option.opts[-1]}" in line]
        shown = f"{option.default:,}" if isinstance(option.default, int) else str(option.default)
        said = [row for row in rows if shown in row or f"`{option.default}`" in row]
        assert said or option.name == "progress", f"{name} {option.opts[-1]}: default {shown}"


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    for target in _LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name}: {target}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub creates them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text()), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
        found.add(plain.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_fences_are_valid(page: Path) -> None:
    # Other lines may be incomplete: a quoted text may span several.
    for line in shell_lines(page.read_text()):
        for arguments in ringhaul_calls(line) if "ringhaul" in line else ():
            parse(arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_text_exist(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    for span in _SPAN.findall(text):
        for match in re.findall(r"(?:^|[\s(\"$])ringhaul ([a-z]+(?: (?:up|down|env|show))?)", span):
            assert match in COMMANDS or match.split()[0] in COMMANDS, f"{page.name}: {span}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_settings_and_variables_in_text_exist(page: Path) -> None:
    text = page.read_text()
    sections = {key.partition(".")[0] for key in setting_keys() if "." in key}
    variables = {env_name(key) for key in setting_keys()} | {"RINGHAUL_CONFIG"}
    for variable in re.findall(r"\bRINGHAUL_[A-Z0-9_]+\b", text):
        # RINGHAUL_SECTION_NAME is a placeholder; a name that ends in _ is a prefix.
        assert variable in variables | {"RINGHAUL_SECTION_NAME"} or variable.endswith("_"), variable
    for span in _SPAN.findall(text):
        if span.endswith(".toml"):
            continue  # a file: schedule.toml
        if match := re.fullmatch(rf"((?:{'|'.join(sections)})\.[a-z_]+)", span):
            is_module = (ROOT / match[1].replace(".", "/")).with_suffix(".py").exists()
            assert match[1] in setting_keys() or is_module, f"{page.name}: {span}"


def test_targets_of_make_in_text_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for span in [*_SPAN.findall(page.read_text()), *shell_lines(page.read_text())]:
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
        ends = [i for i, word in enumerate(rest) if word in (";", "|", "&&", "||", ">", "&")]
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
    with pytest.raises(AssertionError):
        section("no-such-command")
