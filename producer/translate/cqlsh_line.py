"""A command line of cqlsh that runs COPY, as commands of ringhaul. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from producer.translate.bulk_loader import split_line
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
}
_SWITCHES = frozenset(
    ["--ssl", "--color", "--no-color", "--debug", "--tty", "--no-compact", "--version"]
)


def translate_cqlsh(text: str) -> list[Translation]:
    """Return a command for each COPY in a command line of cqlsh. Raises `NotTranslatable`."""
    words = split_line(text)[1:]
    options, places = _read(words)
    _connection(options, places)  # an unknown option first
    statements = [one for one in split_statements(options.get("--execute", "")) if one]
    if not statements:
        raise NotTranslatable('cqlsh: -e "COPY ..." is missing; or give the COPY statement itself')
    return [translate_copy(read_copy(one), _connection(options, places)) for one in statements]


def translate_statements(text: str) -> list[Translation]:
    """Return a command for each COPY in a script. Raises `NotTranslatable`.

    `USE keyspace` and `CONSISTENCY level` apply to what follows, as in cqlsh.
    """
    keyspace, level = "", ""
    found: list[Translation] = []
    for statement in filter(None, split_statements(text)):
        words = statement.split()
        match words[0].upper():
            case "USE" if len(words) == 2:
                keyspace = words[1].strip('"')
            case "CONSISTENCY" if len(words) == 2:
                level = words[1].upper()
            case "COPY":
                draft = Draft()
                if keyspace:
                    draft.add("--keyspace", keyspace)
                if level:
                    draft.add("--consistency", level)
                found.append(translate_copy(read_copy(statement), draft))
            case _:
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
        if not word.startswith("-"):
            places.append(word)
            continue
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if not equals and name not in _SWITCHES:
            value = next(rest, "")
        options[name] = value
    return options, places


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
    "--cqlshrc": _add("--cqlshrc"),
    "--request-timeout": _note("a setting of the workers: cluster.request_timeout_s"),
    "--connect-timeout": _note("a setting of the workers: cluster.connect_timeout_s"),
    "--protocol-version": _note("not needed: ringhaul finds it out"),
    "--cqlversion": _note("not needed: ringhaul finds it out"),
    "--encoding": _SHOWN,
    "--color": _SHOWN,
    "--no-color": _SHOWN,
    "--debug": _SHOWN,
    "--tty": _SHOWN,
}
