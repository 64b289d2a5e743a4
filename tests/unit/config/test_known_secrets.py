"""A secret that was read is masked in all output, in each of its spellings."""

from __future__ import annotations

import io
import json
import logging
import string
import traceback
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config import known_secrets
from config.known_secrets import HIDDEN, SECRET_CHARS_MIN, hide, remember, remember_url
from config.logs import set_up_logging
from config.secrets import mask, read_secret
from config.sections import LoggingSettings
from config.settings import ConfigError, load_settings
from tests.quickest import quickest

#: No asterisk: a password with asterisks could be mistaken for the `***` of a mask.
ALPHABET = string.printable.replace("*", "") + "é漢\N{SNOWMAN}\U0001f600\x9b\u2028"
PASSWORDS = st.text(st.sampled_from(ALPHABET + "@:/%# \n\\" * 4), min_size=SECRET_CHARS_MIN).filter(
    lambda password: not password.isspace() and password not in known_secrets._NO_SECRETS
)
PLAIN = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x0b": "\\x0b", "\x0c": "\\x0c"})


def spellings(password: str) -> set[str]:
    return {
        password,
        quote(password),
        quote(password, safe=""),
        quote(quote(password, safe=""), safe=""),
        quote(password, safe="").replace("%3A", "%3a").replace("%2F", "%2f"),
        quote_plus(password),
        password.translate(PLAIN),
        repr(password)[1:-1],
        ascii(password)[1:-1],
        repr(repr(password))[2:-2],
        repr(password.encode())[2:-1],
        json.dumps(password)[1:-1],
        json.dumps(password, ensure_ascii=False)[1:-1],
    }


@given(PASSWORDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_spelling_of_a_password_is_shown(password: str) -> None:
    known_secrets._known.clear()
    remember(password)
    # A short word is hidden only as a whole word.
    beside = " " if len(password) <= 8 and password.isascii() and password.isalnum() else "x"
    for spelled in spellings(password):
        for text in (
            spelled,
            f"lost redis://u:{spelled}@h:1/0, then redis://:{spelled}@i and ops@example.org",
            f"AUTH failed for '{spelled}'\nsee <{spelled}>",
            f"{beside}{spelled}{beside}{spelled}{beside}",
        ):
            assert spelled not in mask(text)
            assert password not in mask(text)


@given(PASSWORDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_no_password_of_a_broker_is_shown(password: str) -> None:
    """In log lines and tracebacks, as soon as its URL is read, even if the URL is refused."""
    with pytest.MonkeyPatch.context() as patch:
        for spelled in {password, quote(password), quote(password, safe="")}:
            known_secrets._known.clear()
            patch.setenv("RINGHAUL_BROKER_URL", f"redis://u:{spelled}@host:1/0")
            output = ""
            try:
                load_settings()
            except ConfigError as error:
                output = str(error)
            stream = io.StringIO()
            root = logging.getLogger()
            before, level = root.handlers[:], root.level
            try:
                set_up_logging(LoggingSettings.model_validate({"format": "console"}), stream)
                try:
                    raise OSError(f"{password} of redis://u:{spelled}@host:1/0")
                except OSError:
                    logging.exception("no %s", password, extra={"deep": {password: [spelled]}})
                    output += mask(traceback.format_exc())
            finally:
                root.handlers[:] = before
                root.setLevel(level)
            output += stream.getvalue()
            assert "OSError" in output
            assert password not in output
            assert spelled not in output


def test_a_password_of_a_file_is_known_when_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\nnot this\n")
    assert mask("hunter2 not this") == "hunter2 not this"
    read_secret(tmp_path / "password", "key")
    assert mask("hunter2 not this") == "*** not this"


def test_the_longer_of_two_secrets_is_hidden() -> None:
    remember("hunter")
    remember("hunter2000")
    assert hide("hunter2000 and hunter") == "*** and ***"


def test_short_and_well_known_texts_are_not_secrets() -> None:
    for text in ("", "abc", "    ", "cassandra"):
        remember(text)
    assert hide("abc      cassandra") == "abc      cassandra"


@pytest.mark.parametrize(
    ("url", "text", "shown"),
    [
        ("redis://:se cr@et@h", "'se cr@et'", "'***'"),
        ("redis://u:a%40bc@h", "a@bc a%40bc", "*** ***"),
        ("redis://u:12 34@h", "lost 12 34", "lost ***"),
        ("redis:/:S3cret@h", "redis:/:S3cret@h", "redis:***@h"),
        ("redis://u:se\ncret@h", "secret se\ncret", "*** ***"),
        ("redis://host:6379/0", "6379", "6379"),
        ("redis://user@host:6379/0", "user", "user"),
    ],
)
def test_the_password_of_a_url(url: str, text: str, shown: str) -> None:
    remember_url(url)
    assert hide(text) == shown


def test_the_number_of_kept_secrets_is_bounded() -> None:
    for number in range(1000):
        remember(f"secret {number}")
    assert len(known_secrets._known) == known_secrets._SECRETS_MAX
    assert hide("secret 999") == "***"


@pytest.mark.parametrize("unit", ["a", " ", "\\", "%25", "%", "a ", "\\\\x"])
def test_looking_for_secrets_takes_linear_time(unit: str) -> None:
    for secret in (
        "aaaaaaaaaaaaaaab",
        "a      b",
        " " * 20 + "x",
        "\\" * 20 + "x",
        "%25" * 8 + "x",
    ):
        remember(secret)
    took_s, _ = quickest(lambda: hide(unit * 200_000), enough_s=5)
    assert took_s < 5


def test_a_short_word_is_hidden_as_a_whole_word() -> None:
    known_secrets.remember("test")
    assert known_secrets.hide("redis://:test@host, 'test' in test.") == (
        f"redis://:{HIDDEN}@host, '{HIDDEN}' in {HIDDEN}."
    )
    assert known_secrets.hide("/tmp/pytest-of-root/tests") == "/tmp/pytest-of-root/tests"
