"""Secrets are read from files and never shown.

No secret is ever a flag: command lines are visible to every user of a host. A password is a
file's first line, and a URL that carries one is shown with `***` in its place, as are the values
of its query: a signature or a token in there opens what the URL names.
"""

import re
from pathlib import Path

from config.errors import ConfigError

#: A secret is a password or a token; a larger file is surely not the one that was meant.
SECRET_BYTES_MAX = 4096

#: The password of `scheme://user:password@host`. It ends at the *last* `@` before a space, since
#: one that was not percent-encoded may hold `@`, `/` or a quote: rather too much than too little.
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)(\S+)(@)", re.IGNORECASE)
#: The query of `scheme://host/path?query`, up to a space; a fragment is taken for a part of it.
#: What was left out before stays, and a `?` in the name of an object or of a file is a pattern's.
_URL_QUERY = re.compile(
    r"(\b(?!(?:s3|gs|file)://)[a-z][a-z0-9+.-]*://[^\s?]*\?)(?!\.\.\.)(\S+)", re.IGNORECASE
)
#: Ends a sentence or a quotation in which a URL stands.
_BEHIND_URL = "\"'`,;:.)]}>"
_FIELD = re.compile(r"([^&#=]*=)?[^&#]+")


def mask(text: str) -> str:
    """The text with the password, and each value of the query, of every URL in it as `***`."""
    if "://" not in text:
        return text
    return _URL_QUERY.sub(_query_masked, _URL_PASSWORD.sub(r"\1***\3", text))


def _query_masked(match: re.Match[str]) -> str:
    """The names of the fields stay; a field without a name may be the secret itself."""
    query = match[2].rstrip(_BEHIND_URL)
    return match[1] + _FIELD.sub(r"\1***", query) + match[2][len(query) :]


def read_secret(path: Path, key: str) -> str:
    """The first line of the file that setting `key` names, without its line end.

    Raises `ConfigError` when the file cannot be read, is empty or holds over 4096 bytes.
    """
    try:
        with path.open("rb") as file:
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {path}: {error.strerror}") from error
    if len(content) > SECRET_BYTES_MAX:
        raise ConfigError(
            f"{key}: {path} holds more than {SECRET_BYTES_MAX} bytes, expected one line"
        )
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not UTF-8 text") from error
    if not lines or not lines[0]:
        raise ConfigError(f"{key}: {path} is empty, expected the secret on its first line")
    return lines[0]
