"""Keep the tables of options in docs/reference in step with the commands.

A table whose first column is `option` lists options of the command of its section, or of the
commands that a shared page is about. How an option is given, and its default, come from the
command; what it means is written by hand, and starts as the command's own help. Run
`python -m manual.reference` after a change of options; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import rich_click as click

from producer.cli import cli

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
HEADER = "| option | default | meaning |"
#: Pages about options that several commands share, and whose they are.
SHARED = {
    "records.md": ("load", "verify", "tune"),
    "values.md": ("lookup", "exec"),
    "answers.md": ("lookup", "exec"),
    "job-options.md": ("load", "verify", "unload", "count", "query", "lookup", "exec", "resume"),
}
_HEADING = re.compile(r"^#+ (?:ringhaul ([a-z ]+)$)?")
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
#: A default that the help text gives, as in "Consistency level for reads [LOCAL_QUORUM].".
#: A default that is a value, not words.
_VALUE = re.compile(r"[A-Z_]+|-.*|[^\w\s]+|\d+[GM]|[\w,]*,[\w,]*")
_IN_HELP = re.compile(r" *\[(?:default: )?([^\]]+)\](?=[.;:]|$)")


def commands(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Yield (name, command) of every command below a group; a name such as `local up`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        here = (*path, name)
        yield " ".join(here), command
        if isinstance(command, click.Group):
            yield from commands(command, here)


COMMANDS = dict(commands())


def options(command: click.Command) -> list[click.Option]:
    """Return the options of a command, without `--help`."""
    return [param for param in command.params if isinstance(param, click.Option)]


def page_of(command: str) -> Path:
    """Return the page about a command; commands of a group share that of the group."""
    return REFERENCE / "commands" / f"{command.split()[0]}.md"


def usage(option: click.Option) -> str:
    """Write how an option is given, in Markdown: `-k`, `--keyspace NAME`."""
    flags = [*sorted(option.opts, key=len), *option.secondary_opts]
    if not option.is_flag:
        if isinstance(option.type, click.Choice):
            first, *others = map(str, option.type.choices)
        else:
            first, *others = _metavar(option).split("|")
        flags = [*flags[:-1], f"{flags[-1]} {first}".rstrip(), *others]
    return ", ".join(f"`{flag}`" for flag in flags).replace("|", "\\|")


def _metavar(option: click.Option) -> str:
    if option.metavar is not None:
        return option.metavar
    name = option.type.name.split()[0]
    return "N" if name == "integer" else name.upper()


def default(option: click.Option) -> str:
    """Write an option's default, in Markdown; empty if the command does not give one."""
    if option.required:
        return "required"
    in_help = _IN_HELP.search(option.help or "")
    if in_help:
        return f"`{in_help[1]}`" if _VALUE.fullmatch(in_help[1]) else in_help[1]
    if option.is_flag or isinstance(option.default, bool):
        return ""
    if isinstance(option.default, int):
        return f"{option.default:,}"
    if isinstance(option.default, str):
        return f"`{option.default}`" if option.default else "none"
    return ""


def meaning(option: click.Option) -> str:
    """Write what an option means, until someone explains it: its help text."""
    text = _IN_HELP.sub("", option.help or "")
    return text.replace("|", "\\|")


def updated(text: str, of_page: Sequence[str]) -> str:
    """Return a page with its tables of options brought up to date.

    `of_page`: the commands whose options stand above the first heading that names a command.
    """
    lines, here, in_table = [], tuple(of_page), False
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            here = (heading[1],) if heading[1] else here
        in_table = line == HEADER or (in_table and line.startswith("|"))
        row = _row(line, here) if in_table and line.startswith("| `") else line
        if row is not None:
            lines.append(row)
    return "\n".join(lines) + "\n"


def _row(line: str, names: Sequence[str]) -> str | None:
    """Return a row as it should be; None if no command has its option.

    A row about several options has its first cell as it was written. A default is kept if the
    command gives none.
    """
    said, kept, text = re.split(r"(?<!\\)\|", line.strip("|"), maxsplit=2)
    flags = set(_FLAG.findall(said))
    found = [
        o for name in names for o in options(COMMANDS[name]) if flags & {*o.opts, *o.secondary_opts}
    ]
    if not found:
        return None
    option = found[0]
    if len({o.name for o in found}) > 1:
        return f"|{said}| |{text}|"
    given = default(option) or kept.strip()
    return f"| {usage(option)} | {given} |{text}|".replace("|  |", "| |")


def listed(text: str, of_page: Sequence[str]) -> set[tuple[str, str]]:
    """Return (command, flag) for everything that a page's tables of options list."""
    found, here, in_table = set(), tuple(of_page), False
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            here = (heading[1],) if heading[1] else here
        in_table = line == HEADER or (in_table and line.startswith("|"))
        if in_table and line.startswith("| `"):
            flags = _FLAG.findall(re.split(r"(?<!\\)\|", line)[1])
            found |= {(name, flag) for name in here for flag in flags}
    return found


def missing(name: str) -> list[click.Option]:
    """Return the options of a command that neither its page nor a shared page it links to lists."""
    page = page_of(name)
    text = page.read_text()
    found = listed(text, (name.split()[0],))
    for shared, of in SHARED.items():
        if f"(../{shared}" in text and name in of:
            found |= listed((REFERENCE / shared).read_text(), of)
    return [o for o in options(COMMANDS[name]) if (name, o.opts[-1]) not in found]


def with_missing(name: str) -> str:
    """Return the page of a command, with the options that it lacks at the end of its last table."""
    text = page_of(name).read_text()
    rows = [f"| {usage(o)} | {default(o)} | {meaning(o)} |" for o in missing(name)]
    if not rows:
        return text
    heading = re.search(rf"^#+ ringhaul {name}$", text, re.MULTILINE)
    assert heading is not None, f"{page_of(name).name} has no heading 'ringhaul {name}'"
    after = re.search(r"^#+ ringhaul ", text[heading.end() :], re.MULTILINE)
    end = heading.end() + after.start() if after else len(text)
    section = text[heading.start() : end]
    last = section.rfind(HEADER)
    if last < 0:
        section = f"{section.rstrip()}\n\n{HEADER}\n|---|---|---|\n" + "\n".join(rows) + "\n\n"
    else:
        table = re.match(r"(?:\|.*\n)+", section[last:])
        assert table is not None
        at = last + table.end()
        section = section[:at] + "\n".join(rows) + "\n" + section[at:]
    return (text[: heading.start()] + section + text[end:]).rstrip() + "\n"


def main() -> None:
    """Bring all pages up to date."""
    for page, of in [
        *((REFERENCE / shared, of) for shared, of in SHARED.items()),
        *((page_of(name), (name,)) for name in COMMANDS if " " not in name),
    ]:
        page.write_text(updated(page.read_text(), of))
    for name in COMMANDS:
        page_of(name).write_text(with_missing(name))


if __name__ == "__main__":
    main()
