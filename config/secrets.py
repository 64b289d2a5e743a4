"""Read secrets from files, and mask them in texts.

A secret is never a flag: command lines are visible to every user of a host. A password is the first
line of a file. In a URL, `***` replaces the password and the values of the query, since a signature
or a token there gives access to what the URL names. Secrets that this process has read are hidden
in any context (`config.known_secrets`).
"""

import re
from pathlib import Path

from config.errors import ConfigError
from config.known_secrets import hide, remember

#: A secret is a password or a token; a larger file is surely the wrong one.
SECRET_BYTES_MAX = 4096

_WORDS = re.compile(r"(\s+)")
#: A URL's scheme, at the end of the text before `://`.
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}\Z", re.IGNORECASE)
#: The `user:` before a password. It is not a host before a port: no digits and an end follow it.
_BEFORE_PASSWORD = re.compile(r"[^/?#:@\[\]]*:(?!\d+(?:[/?#,;.)'\"\]}]|\Z))")
#: Schemes in whose URLs a `?` is part of a name or a pattern.
_WITHOUT_QUERY = {"s3", "s3a", "gs", "file"}
#: Schemes in which a single word before the `@` is a token and not a user name.
_WITH_TOKEN = {"http", "https"}
#: Characters after a URL that end the sentence or quotation around it.
_BEHIND_URL = "\"'`,;:.)]}>"
_FIELD = re.compile(r"([^&#=]*=)?[^&#]+")


def mask(text: str) -> str:
    """Return the text with `***` in place of each secret that this process knows and, in each URL,
    of the password and the values of the query.

    A password ends at the last `@` before a blank, since it may hold `@`, `/` or a quote if it was
    not percent-encoded: too much is masked rather than too little. A password with blanks ends at
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
    """Mask a text that is a single URL, whose password may have blanks."""
    return _masked(value)


def _is_cut(word: str) -> bool:
    """Return whether a password starts in the word but does not end in it."""
    rest = word.partition("://")[2]
    return "@" not in rest and (rest.startswith(":") or bool(_BEFORE_PASSWORD.match(rest)))


def _words_of_password(words: list[str], at: int) -> int:
    """Return how many items of `words` (words and blanks) a URL with blanks spans."""
    for place in range(at + 1, len(words)):
        if "\n" in words[place] or "://" in words[place]:
            break
        if "@" in words[place]:
            return place - at + 1
    return 1


def _masked(word: str) -> str:
    """Mask from the first `://` to the end: a URL may contain others, and its end is unknown."""
    before, mark, rest = word.partition("://")
    scheme = _SCHEME.search(before[-31:])
    if scheme is None:
        return word
    # In quotes or brackets, the scheme is only the end of the text before `://`.
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
    """Mask the values of a query, but not its names; a field without a name may be a secret."""
    query = text.rstrip(_BEHIND_URL)
    return _FIELD.sub(r"\1***", query) + text[len(query) :]


def read_secret(path: Path, key: str) -> str:
    """Return the first line, without its line end, of the file that setting `key` names, and mask
    it in all texts from now on.

    Raises `ConfigError` if the file cannot be read, is empty or has more than 4096 bytes.
    """
    secret = _lines(path, key, "one line")[0]
    remember(secret)
    return secret


def read_log_ins(path: Path, key: str) -> list[str]:
    """Return the lines `user:password` of the file that setting `key` names, and mask the passwords
    in all texts from now on.

    Raises `ConfigError` as `read_secret` does, and for a line that is not of this form. Only ASCII
    is accepted, as Flower compares nothing else.
    """
    log_ins = [line for line in _lines(path, key, "lines user:password") if line.strip()]
    for number, line in enumerate(log_ins, 1):
        user, _, password = line.partition(":")
        if not (user and password and line.isascii()):
            raise ConfigError(f"{key}: line {number} of {path} is not user:password in ASCII")
        remember(password)
    return log_ins


def _lines(path: Path, key: str, expected: str) -> list[str]:
    try:
        with path.open("rb") as file:
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{key}: cannot read {path}: {error.strerror}") from error
    if len(content) > SECRET_BYTES_MAX:
        raise ConfigError(
            f"{key}: {path} holds more than {SECRET_BYTES_MAX} bytes, expected {expected}"
        )
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{key}: {path} is not UTF-8 text") from error
    if not lines or not lines[0]:
        raise ConfigError(f"{key}: {path} is empty, expected the secret on its first line")
    return lines
