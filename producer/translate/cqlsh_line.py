"""A command line of cqlsh that runs COPY, as commands of ringhaul. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from producer.translate.bulk_loader_line import split_line
from producer.translate.copy_options import translate_copy
from producer.translate.copy_statement import read_copy, split_statements
from producer.translate.translation import Draft, NotTranslatable, Translation

Handler = Callable[[str, Draft], None]

#: Short option -> long.
_SHORT = {
    "-e": "--execute",
    "-f": "--file",
    "-k": "--keyspace",
    "-u": "--username",
    "-p": "--password",
    "-b": "--secure-connect-bundle",
    "-C": "--color",
    "-t": "--tty",
    "-v": "--version",
}
_SWITCHES = frozenset(
    [
        "--ssl",
        "--color",
        "--no-color",
        "--debug",
        "--tty",
        "--no-compact",
        "--version",
        "--coverage",
        "--disable-history",
        "--no-file-io",
        "--insecure-password-without-warning",
    ]
)
#: What a shell does with the words behind: redirections, pipes, lists.
_SHELL = re.compile(r"\d*[<>|&;]")
#: Commands of cqlsh that change no rows, by their first word.
_NEUTRAL = frozenset({"PAGING", "TRACING", "EXPAND", "SERIAL", "ELAPSED", "SHOW"})


def translate_cqlsh(text: str) -> list[Translation]:
    """Return a command for each COPY in a command line of cqlsh. Raises `NotTranslatable`."""
    words = split_line(text)[1:]
    options, places = _read(words)
    _connection(options, places)  # an unknown option first
    text = options.get("--execute", "")
    found = _statements(text, lambda: _connection(options, places))
    if not found and "--file" in options:
        file = options["--file"]
        raise NotTranslatable(f"cqlsh: give the statements of {file}: translate - < {file}")
    if not found:
        raise NotTranslatable('cqlsh: -e "COPY ..." is missing; or give the COPY statement itself')
    return found


def translate_statements(text: str) -> list[Translation]:
    """Return a command for each COPY in a script. Raises `NotTranslatable`."""
    return _statements(text, Draft)


def _statements(text: str, new_draft: Callable[[], Draft]) -> list[Translation]:
    """Return a command for each COPY in a text, each with a new draft.

    `USE keyspace` and `CONSISTENCY level` apply to what follows, as in cqlsh.
    """
    keyspace, level = "", ""
    found: list[Translation] = []
    for statement in filter(None, split_statements(text)):
        words = statement.split()
        match words[0].upper():
            case "USE" if len(words) == 2:
                quoted = words[1].startswith('"')
                keyspace = words[1].strip('"') if quoted else words[1].lower()
            case "CONSISTENCY" if len(words) == 2:
                level = words[1].upper()
            case "COPY":
                draft = new_draft()
                if keyspace:
                    draft.add("--keyspace", keyspace)
                if level:
                    draft.add("--consistency", level)
                found.append(translate_copy(read_copy(statement), draft))
            case word if word not in _NEUTRAL:
                raise NotTranslatable(
                    f"{words[0]}: only COPY, USE and CONSISTENCY, and commands of dsbulk, are "
                    "translated"
                )
    return found


def _read(words: list[str]) -> tuple[dict[str, str], list[str]]:
    options: dict[str, str] = {}
    places: list[str] = []
    rest = iter(words)
    for word in rest:
        if _SHELL.match(word):
            raise NotTranslatable(
                f"cqlsh: {word} is for the shell: give the command up to there, and put the rest "
                "behind what it becomes"
            )
        if not word.startswith("-"):
            places.append(word)
            continue
        name, equals, value = word.partition("=")
        if word[:2] in _SHORT and len(word) > 2:  # -ujoe
            name, equals, value = word[:2], "=", word[2:].removeprefix("=")
        name = _long(_SHORT.get(name, name))
        if not equals and name not in _SWITCHES:
            value = next(rest, "")
        options[name] = value
    if len(places) > 2:
        raise NotTranslatable(f"cqlsh: {places[2]!r} follows host and port")
    return options, places


def _long(name: str) -> str:
    """Return the option that a name begins, if it is the only one."""
    found = [option for option in _OPTIONS if option.startswith(name)]
    return found[0] if len(found) == 1 and name not in _OPTIONS and len(name) > 2 else name


def _connection(options: Mapping[str, str], places: list[str]) -> Draft:
    draft = Draft()
    for name, value in options.items():
        draft.option = name
        handler = _OPTIONS.get(name)
        if handler is None:
            raise NotTranslatable(f"cqlsh has no option {name}")
        handler(value, draft)
    if places:
        draft.add("--contact-points", places[0])
    if len(places) > 1:
        draft.add("--port", places[1])
    return draft


def _add(name: str) -> Handler:
    return lambda value, draft: draft.add(name, value)


def _password(_: str, draft: Draft) -> None:
    draft.add("--password")
    draft.note("a password is not an argument: -p asks for it, --password-file FILE reads it")


def _cqlshrc(value: str, draft: Draft) -> None:
    draft.add("--cqlshrc", value)
    draft.note("its options of COPY yield to those of this command, such as --no-header")


def _note(text: str) -> Handler:
    return lambda _, draft: draft.note(text)


def _lose(text: str) -> Handler:
    return lambda _, draft: draft.lose(text)


_SHOWN = _note("it decides how cqlsh displays results")
_OPTIONS: Mapping[str, Handler] = {
    "--execute": lambda _, __: None,
    "--file": _lose("give the statements of the file"),
    "--keyspace": _add("--keyspace"),
    "--username": _add("--user"),
    "--password": _password,
    "--credentials": _lose("--password-file FILE reads a password"),
    "--secure-connect-bundle": _add("--secure-connect-bundle"),
    "--consistency-level": _add("--consistency"),
    "--ssl": _note("settings: cluster.tls and cluster.tls_ca, such as RINGHAUL_CLUSTER_TLS=true"),
    "--cqlshrc": _cqlshrc,
    "--request-timeout": _note("a setting of the workers: cluster.request_timeout_s"),
    "--connect-timeout": _note("a setting of the workers: cluster.connect_timeout_s"),
    "--protocol-version": _note("not needed: ringhaul finds it out"),
    "--cqlversion": _note("not needed: ringhaul finds it out"),
    "--encoding": _SHOWN,
    "--color": _SHOWN,
    "--no-color": _SHOWN,
    "--debug": _SHOWN,
    "--tty": _SHOWN,
    "--browser": _SHOWN,
    "--coverage": _SHOWN,
    "--version": _SHOWN,
    "--disable-history": lambda _, __: None,
    "--insecure-password-without-warning": lambda _, __: None,
    "--no-file-io": lambda _, __: None,
    "--no-compact": lambda _, __: None,
    "--serial-consistency-level": _note("it is for conditions, and COPY has no conditions"),
}
