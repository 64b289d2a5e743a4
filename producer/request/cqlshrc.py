"""`--cqlshrc FILE`: the connection and the options of COPY that a user of cqlsh has written down.

Sections and names come from cqlsh's own sample, `conf/cqlshrc.sample` of Cassandra.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from pathlib import Path

import rich_click as click
from click.core import ParameterSource

from config.known_secrets import remember
from producer.options.cqlshrc import Cqlshrc
from producer.request.values import given_options
from producer.translate.copy_options import apply_options
from producer.translate.translation import Draft, NotTranslatable
from ringhaul.errors import UsageError

#: Largest size of the file: more than any real cqlshrc has.
BYTES_MAX = 1 << 20
#: Section, name -> setting.
_SETTINGS = {
    ("connection", "hostname"): "cluster.contact_points",
    ("connection", "port"): "cluster.port",
    ("connection", "timeout"): "cluster.connect_timeout_s",
    ("connection", "request_timeout"): "cluster.request_timeout_s",
    ("connection", "ssl"): "cluster.tls",
    ("ssl", "certfile"): "cluster.tls_ca",
    ("ssl", "userkey"): "cluster.tls_key",
    ("ssl", "usercert"): "cluster.tls_cert",
    ("authentication", "username"): "cluster.user",
}
_PATHS = frozenset({"cluster.tls_ca", "cluster.tls_key", "cluster.tls_cert"})
_WRONG = "is neither a section, such as [authentication], nor name = value in one"
#: Sections of a file of credentials, and of older cqlshrc files.
_PASSWORDS = ("plaintextauthprovider", "plain_text_auth", "authentication")


def read_cqlshrc(path: Path) -> Cqlshrc:
    """Read a file. Raises `UsageError` that names it, and its section."""
    parser = _parse(path)
    settings: dict[str, str] = {}
    for (section, name), key in _SETTINGS.items():
        text = _get(parser, section, name)
        if text:
            settings[key] = str(Path(text).expanduser()) if key in _PATHS else text
    if settings.get("cluster.tls", "").lower() not in ("true", "yes", "on", "1"):
        # cqlsh also ignores the section [ssl] unless [connection] says ssl = true.
        settings = {key: value for key, value in settings.items() if ".tls" not in key}
    else:
        settings["cluster.tls"] = "true"
    user, password = _credentials(parser, path)
    if user:
        settings["cluster.user"] = user
    return Cqlshrc(
        path,
        settings,
        password,
        _get(parser, "authentication", "keyspace"),
        {
            section.lower(): {name.upper(): value for name, value in parser.items(section)}
            for section in parser.sections()
            if section.lower().split(":")[0] in ("copy", "copy-from", "copy-to")
        },
    )


def _credentials(parser: configparser.RawConfigParser, path: Path) -> tuple[str | None, str | None]:
    """Return user and password: from the file of credentials, else from the file itself."""
    place = _get(parser, "authentication", "credentials")
    if place:
        parser = _parse(_beside(place, path))
    for section in parser.sections():
        if section.lower() in _PASSWORDS and (password := _get(parser, section, "password")):
            remember(password)
            return _get(parser, section, "username"), password
    return None, None


def _beside(place: str, path: Path) -> Path:
    return path.parent / Path(place).expanduser()


def _parse(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(allow_no_value=True, strict=False)
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        if len(data) > BYTES_MAX:
            raise UsageError(f"--cqlshrc {path}: it has more than {BYTES_MAX:,} bytes")
        parser.read_string(data.decode(), str(path))
    except OSError as error:
        raise UsageError(f"--cqlshrc {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"--cqlshrc {path}: not UTF-8 at byte {error.start:,}") from None
    except configparser.ParsingError as error:
        # Not the text of the error, which quotes the line: it may be a password.
        raise UsageError(f"--cqlshrc {path}: line {_line_of(error)} {_WRONG}") from None
    return parser


def _line_of(error: configparser.ParsingError) -> int:
    if isinstance(error, configparser.MissingSectionHeaderError):
        return error.lineno
    return error.errors[0][0]


def _get(parser: configparser.RawConfigParser, section: str, name: str) -> str | None:
    text = parser.get(section, name, fallback=None)
    return text.strip().strip("'\"") or None if text is not None else None


def apply_cqlshrc(context: click.Context) -> tuple[str, ...]:
    """Read the cqlshrc of a parsed command, and complete its options by it; given ones win. Return
    warnings about options that have no counterpart.

    Raises `UsageError` as `read_cqlshrc` does, and for an option that COPY does not have, or whose
    value is invalid.
    """
    path: Path | None = context.params.get("cqlshrc")
    if path is None:
        return ()
    rc = context.params["cqlshrc"] = read_cqlshrc(path)
    table = str(context.params.get("table") or "")
    if rc.keyspace and "." not in table and context.params.get("keyspace", "") is None:
        _set(context, "keyspace", rc.keyspace)
    # COPY's files are CSV.
    text = context.params.get("file_format", "csv") in ("csv", "auto", None)
    if context.command.name not in ("load", "unload") or not text:
        return ()
    if "." not in table:
        table = f"{context.params.get('keyspace') or ''}.{table}"
    draft = _draft_of(rc, table, reads=context.command.name == "load")
    given = given_options(context)
    for name, value in _parsed(context.command, draft, rc.path):
        if name not in given:
            _set(context, name, value)
    return tuple(
        f"--cqlshrc {rc.path}: {note.option} has no counterpart: {note.text}"
        for note in draft.notes
        if note.lost
    )


def _draft_of(rc: Cqlshrc, table: str, *, reads: bool) -> Draft:
    draft = Draft()
    try:
        apply_options(rc.options_of(table, reads=reads).items(), draft, reads=reads)
    except NotTranslatable as error:
        raise UsageError(f"--cqlshrc {rc.path}: {error}") from None
    return draft


def _parsed(command: click.Command, draft: Draft, path: Path) -> Iterator[tuple[str, object]]:
    """Yield the options in a draft, by their names in a command, and their values."""
    needed = ["-"] if command.name == "load" else ["--output", "-"]
    words = [*needed, "--table", "k.t", *draft.finish().words[1:]]
    try:
        parsed = command.make_context(command.name, words)
    except click.ClickException as error:
        raise UsageError(f"--cqlshrc {path}: {error.format_message()}") from None
    for name in sorted(given_options(parsed) - {"sources", "output", "table"}):
        yield name, parsed.params[name]


def _set(context: click.Context, name: str, value: object) -> None:
    context.params[name] = value
    context.set_parameter_source(name, ParameterSource.DEFAULT_MAP)
