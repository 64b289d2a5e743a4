"""How workers reach Sidecars, from their own settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.errors import ConfigError
from config.secrets import mask
from config.settings import Settings, load_settings
from ringhaul.errors import UsageError
from ringhaul.streaming.owners import Node
from tasks.child.process import Child
from tasks.child.stream_target import sidecar_sessions
from tasks.connect import sidecar_access
from tests.certificates import Authority
from tests.loads import load_job, table_schema

SetUp = Callable[..., Settings]
TOKEN = "eyJhbGciOi.dGVzdA.c2lnbmVk"


@pytest.fixture
def settings(tmp_path: Path) -> SetUp:
    """A function that makes settings of Sidecars."""

    def made(**values: Any) -> Settings:
        given = {f"sidecar.{name}": value for name, value in values.items()}
        return load_settings(
            {"state_dir": tmp_path, "broker.url": "redis://h:1/0", **given}
        ).settings

    return made


def test_sidecars_are_beside_their_nodes_unless_settings_say_otherwise(settings: SetUp) -> None:
    plain = sidecar_access(settings())
    assert (plain.host, plain.port, plain.tls, plain.token) == ("{node}", 9043, None, "")
    other = sidecar_access(
        settings(host="{node}.sidecar.example", port=19043, request_timeout_s=7, import_timeout_s=9)
    )
    assert (other.host, other.port) == ("{node}.sidecar.example", 19043)
    assert (other.request_timeout_s, other.import_timeout_s) == (7.0, 9.0)


def test_a_token_is_read_again_for_each_sstable(settings: SetUp, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    child = Child(settings(tls=True, token_file=file))
    new_session = sidecar_sessions(child, load_job(table_schema({"id": "int"}, ["id"])))
    node = Node(address="10.0.0.1", port=7000)
    assert new_session(node)._sidecar.token == TOKEN
    assert mask(f"a log with {TOKEN}") == "a log with ***"

    file.write_text("renewed-token\n")
    assert new_session(node)._sidecar.token == "renewed-token"

    file.unlink()
    with pytest.raises(UsageError, match=r"sidecar\.token_file: cannot read"):
        new_session(node)


@pytest.mark.parametrize("text", ["Bearer abcd", "ab\x7fcd", "schlüssel"])
def test_what_is_no_token_is_refused(settings: SetUp, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(f"{text}\n")
    with pytest.raises(ConfigError, match="is no bearer token") as refused:
        sidecar_access(settings(tls=True, token_file=tmp_path / "token"))
    assert text not in str(refused.value)


def test_certificates_are_checked_as_the_settings_say(settings: SetUp, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(Authority("known").certificate)
    strict = sidecar_access(settings(tls=True, tls_ca=tmp_path / "ca.pem")).tls
    lax = sidecar_access(settings(tls=True, tls_verify_hostname=False)).tls
    assert strict is not None and lax is not None
    assert (strict.check_hostname, lax.check_hostname) == (True, False)
    with pytest.raises(UsageError, match=r"sidecar\.tls_ca: no such file"):
        sidecar_access(settings(tls=True, tls_ca=tmp_path / "gone"))
