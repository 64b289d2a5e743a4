"""Secrets are read from files and never shown.

No secret is ever a flag: command lines are visible to every user of a host. A password is a
file's first line, and a URL that carries one is shown with `***` in its place, as are the values
of its query: a signature or a token in there opens what the URL names. Secrets that this process
has read are hidden whatever stands around them (`config.known_secrets`).
"""

import re
from pathlib import Path

from config.errors import ConfigError
from config.known_secrets import hide, remember

#: A secret is a password or a token; a larger file is surely not the one that was meant.
SECRET_BYTES_MAX = 4096

_WORDS = re.compile(r"(\s+)")
#: A URL's scheme at the end of what stands before `://`.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}\Z", re.IGNORECASE)
#: What stands before a password, and not before a port: `user:`, with no digits and end behind it.
_BEFORE_PASSWORD = re.compile(r"[^/?#:@\[\]]*:(?!\d+(?:[/?#,;.)'\"\]}]|\Z))")
#: Schemes in whose URLs a `?` belongs to a name or a pattern.
_WITHOUT_QUERY = {"s3", "s3a", "gs", "file"}
#: Schemes whose only word before the `@` is a token, and not the name of a user.
_WITH_TOKEN = {"http", "https"}
#: Ends a sentence or a quotation in which a URL stands.
_BEHIND_URL = "\"'`,;:.)]}>"
_FIELD = re.compile(r"([^&#=]*=)?[^&#]+")


def mask(text: str) -> str:
    """Return the text with the password, and each value of the query, of every URL in it as `***`,
    and each secret that this process knows.

    A password ends at the last `@` before a blank, since one that was not percent-encoded may hold
    `@`, `/` or a quote: rather too much is masked than too little. One with blanks in it ends at
    the next `@` of its line. Linear in the length of the text.
    """
    text = hide(text)
    if "://" not in text:
        return text
    words = _WORDS.split(text)
    masked: list[str] = []
    at = 0
    while at < len(words):
        whole = 1
        if "://" in words[at] and _is_cut(words[at]):
            whole = _words_of_password(words, at)
        masked.append(_masked("".join(words[at : at + whole])))
        at += whole
    return "".join(masked)


def mask_value(value: str) -> str:
    """The same for a text that is one URL and nothing else, blanks in its password or not."""
    return _masked(value)


def _is_cut(word: str) -> bool:
    """Say whether a password begins in the word and does not end in it."""
    rest = word.partition("://")[2]
    return "@" not in rest and (rest.startswith(":") or bool(_BEFORE_PASSWORD.match(rest)))


def _words_of_password(words: list[str], at: int) -> int:
    """Return how many of the words, and of the blanks between them, a URL with blanks takes."""
    for place in range(at + 1, len(words)):
        if "\n" in words[place] or "://" in words[place]:
            break
        if "@" in words[place]:
            return place - at + 1
    return 1


def _masked(word: str) -> str:
    """Mask what stands behind the first `://`: a URL may hold others, and its end is not known."""
    before, mark, rest = word.partition("://")
    scheme = _SCHEME.search(before[-31:])
    if scheme is None:
        return word
    # Within quotes and brackets the scheme is what is left of the word.
    name = scheme[0].lower()
    identity, at, place = rest.rpartition("@")
    if at:
        user, colon, _ = identity.partition(":")
        hidden = name in _WITH_TOKEN and "/" not in user and "?" not in user
        rest = f"{user}:***@{place}" if colon else f"***@{place}" if hidden else rest
    if name not in _WITHOUT_QUERY:
        path, question, query = rest.partition("?")
        if query and not query.startswith("..."):
            rest = f"{path}{question}{_query_masked(query)}"
    return f"{before}{mark}{rest}"


def _query_masked(text: str) -> str:
    """The names of the fields stay; a field without a name may be the secret itself."""
    query = text.rstrip(_BEHIND_URL)
    return _FIELD.sub(r"\1***", query) + text[len(query) :]


def read_secret(path: Path, key: str) -> str:
    """The first line of the file that setting `key` names, without its line end. Nothing that is
    masked shows it from now on.

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
    remember(lines[0])
    return lines[0]
