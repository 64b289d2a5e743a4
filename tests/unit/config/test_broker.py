import re
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from config.broker import broker_tls, broker_url
from config.secrets import mask, mask_value, read_secret
from config.settings import ConfigError, Settings, load_settings
from tests.cases import each
from tests.certificates import Authority, protect
from tests.quickest import quickest


def with_broker(**flags: object) -> Settings:
    return load_settings({f"broker.{key}": value for key, value in flags.items()}).settings


def test_the_password_comes_from_its_file(clean: Path) -> None:
    (clean / "password").write_text("p@ss/word\nsecond line\n")
    broker = with_broker(url="redis://worker@host:6380/2", password_file="password").broker
    assert broker_url(broker) == "redis://worker:p%40ss%2Fword@host:6380/2"
    broker = with_broker(url="redis://[::1]:6380", password_file="password").broker
    assert broker_url(broker) == "redis://:p%40ss%2Fword@[::1]:6380"


def test_redis_py_reads_back_the_password_that_was_filled_in(clean: Path) -> None:
    redis = pytest.importorskip("redis")
    (clean / "password").write_text("p@ss/w:rd %\N{SNOWMAN}")
    broker = with_broker(url="redis://worker@host", password_file="password").broker
    client = redis.Redis.from_url(broker_url(broker))
    arguments = client.connection_pool.connection_kwargs
    assert arguments["password"] == "p@ss/w:rd %\N{SNOWMAN}"
    assert arguments["username"] == "worker"


def test_no_broker_says_how_to_get_one() -> None:
    with pytest.raises(ConfigError, match=r"RINGHAUL_BROKER_URL.*ringhaul local up"):
        broker_url(Settings().broker)


def test_two_passwords_are_one_too_many(clean: Path) -> None:
    (clean / "password").write_text("a")
    with pytest.raises(ConfigError, match="names another one"):
        broker_url(with_broker(url="redis://:b@host", password_file="password").broker)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*: No such file"),
        (b"", "is empty"),
        (b"\nx", "is empty"),
        (b"\xff", "is not UTF-8"),
        (b"x" * 5000, "holds more than 4096 bytes"),
    ],
)
def test_a_secret_that_cannot_be_used(clean: Path, content: bytes | None, message: str) -> None:
    if content is not None:
        (clean / "secret").write_bytes(content)
    with pytest.raises(ConfigError, match=f"^a.key: .*{message}"):
        read_secret(clean / "secret", "a.key")


def test_tls_verifies_the_server(clean: Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (clean / name).touch()
    assert broker_tls(with_broker(url="redis://h").broker) is None
    broker = with_broker(url="rediss://h", tls_ca="ca.pem", tls_cert="cert.pem", tls_key="key.pem")
    assert broker_tls(broker.broker) == {
        "ssl_cert_reqs": ssl.CERT_REQUIRED,
        "ssl_check_hostname": True,
        "ssl_ca_certs": str(clean / "ca.pem"),
        "ssl_certfile": str(clean / "cert.pem"),
        "ssl_keyfile": str(clean / "key.pem"),
    }


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_key_with_a_password_is_refused(clean: Path, form: PrivateFormat) -> None:
    key, certificate = Authority("authority").issue("client")
    (clean / "cert.pem").write_text(certificate)
    (clean / "key.pem").write_text(protect(key, form))
    settings = with_broker(url="rediss://h", tls_cert="cert.pem", tls_key="key.pem")
    with pytest.raises(
        ConfigError, match=r"^broker.tls_key: .*key\.pem is protected by a password"
    ):
        broker_tls(settings.broker)
    (clean / "key.pem").write_text(key)
    assert broker_tls(settings.broker) is not None


def test_a_missing_tls_file_is_reported(clean: Path) -> None:
    with pytest.raises(ConfigError, match=r"broker.tls_ca: no such file: .*/ca\.pem"):
        broker_tls(with_broker(url="rediss://h", tls_ca="ca.pem").broker)


@each(
    ("text", "masked"),
    [
        ("redis://u:pw@h:1/0", "redis://u:***@h:1/0"),
        ("redis://:pw@h", "redis://:***@h"),
        ("rediss://u:p@w/'\"x@h", "rediss://u:***@h"),
        ("lost redis://u:pw@h, and amqp://v:qw@i.", "lost redis://u:***@h, and amqp://v:***@i."),
        ("redis://h:6379/0 is up", "redis://h:6379/0 is up"),
        ("ops@example.org", "ops@example.org"),
        ("https://u:p@h/a?password=s3?c", "https://u:***@h/a?password=***"),
        (
            "https://h/a?sv=1&sig=a%2Bb==&t#f=g is gone",
            "https://h/a?sv=***&sig=***&***#f=*** is gone",
        ),
        (
            "'https://h?token=a', (HTTP://h/?b=c), ...",
            "'https://h?token=***', (HTTP://h/?b=***), ...",
        ),
        ("s3://b/a?b.csv: is it there? Yes=no", "s3://b/a?b.csv: is it there? Yes=no"),
        ("http://h/a.csv?...: is gone", "http://h/a.csv?...: is gone"),
        ("http://h/a?b" + "." * 99_999, "http://h/a?***" + "." * 99_999),
        ('{"url": "https://h?a=b"}', '{"url": "https://h?a=***"}'),
        ("https://h/?", "https://h/?"),
        ("redis://:se cret@127.0.0.1:1/0", "redis://:***@127.0.0.1:1/0"),
        ("at redis://u:a b c@h:1, tries", "at redis://u:***@h:1, tries"),
        ("redis://h:6379 and ops@example.org", "redis://h:6379 and ops@example.org"),
        ("redis://h:6379/0, ops@example.org", "redis://h:6379/0, ops@example.org"),
        ("redis://u:p\nops@example.org", "redis://u:p\nops@example.org"),
        ("redis://u:a://b@h", "redis://u:***@h"),
        ("redis://u:a#b?c/d@h/0", "redis://u:***@h/0"),
        ("rediss://u:p%40w@[::1]:6380/1", "rediss://u:***@[::1]:6380/1"),
        ("redis://[::1]:6379/0 a@b", "redis://[::1]:6379/0 a@b"),
        ("redis://worker@h:1/0", "redis://worker@h:1/0"),
        ("unix://:pw@/run/redis.sock?db=1", "unix://:***@/run/redis.sock?db=***"),
        ("sentinel://:a@h:1;sentinel://:b@i:2", "sentinel://:***@i:2"),
        ("https://ghp_token@h/a.csv", "https://***@h/a.csv"),
        (
            "https://h/k?X-Amz-Credential=A&X-Amz-Signature=b",
            "https://h/k?X-Amz-Credential=***&X-Amz-Signature=***",
        ),
        ("s3://u:p@b/k", "s3://u:***@b/k"),
        ("HTTPS://U:P@H", "HTTPS://U:***@H"),
    ],
)
def test_mask(text: str, masked: str) -> None:
    assert mask(text) == masked


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), min_size=1))
def test_no_password_of_a_setting_is_shown(password: str) -> None:
    """A URL as a value, with any password; and a URL within a sentence, on one line."""
    masked = "redis://u:***@h:1/0"
    assert mask_value(f"redis://u:{password}@h:1/0") == masked
    if not re.search(r"\s|://", password):
        assert mask(f"lost redis://u:{password}@h:1/0 again") == f"lost {masked} again"


def test_the_setting_itself_is_shown_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    for password in ("se cret", "se@cret", "se/cret", "a b@c d"):
        spelled = quote(password, safe="")
        monkeypatch.setenv("RINGHAUL_BROKER_URL", f"redis://:{spelled}@127.0.0.1:1/0")
        shown = {row.key: row.value for row in load_settings().describe()}
        assert shown["broker.url"] == "redis://:***@127.0.0.1:1/0"
    monkeypatch.setenv("RINGHAUL_BROKER_URL", "redis://:se cret@127.0.0.1:1/0")
    shown = {row.key: row.value for row in load_settings().describe()}
    assert shown["broker.url"] == "redis://:***@127.0.0.1:1/0"


@pytest.mark.parametrize("unit", ["a.", "a://", "redis://u:p ", "x?", "a:b@", "://"])
def test_masking_takes_linear_time(unit: str) -> None:
    took_s, _ = quickest(lambda: mask(unit * 200_000 + "://"), enough_s=5)
    assert took_s < 5
