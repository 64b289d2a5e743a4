"""Secure connect bundles that can be used, and those that cannot."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from config.known_secrets import hide
from config.settings import load_settings
from ringhaul.cluster.bundle import bundle_context, read_bundle
from ringhaul.errors import UsageError
from tasks.cluster_settings import cluster_config
from tests.certificates import Authority
from tests.secure_bundle import members_of, zipped

AUTHORITY = Authority("a managed cluster")
MEMBERS = members_of(AUTHORITY, 29080)
OTHERS = members_of(AUTHORITY, 29080)


def encrypted(key: bytes) -> bytes:
    secret = BestAvailableEncryption(b"sesame")
    private = load_pem_private_key(key, None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)


def test_a_bundle_is_read_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(MEMBERS))
    bundle = read_bundle(str(path))
    assert (bundle.host, bundle.port, bundle.user) == ("127.0.0.1", 29080, "")
    assert bundle_context(bundle).get_ca_certs()
    assert [*tmp_path.rglob("*")] == [tmp_path / "tmp", path], "no key stays on the disk"
    shown = repr(bundle)
    assert not any(line.decode() in shown for line in MEMBERS["key"].splitlines())


def without(name: str) -> dict[str, bytes]:
    return {one: data for one, data in MEMBERS.items() if one != name}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK, but no zip", "it is not a zip file (File is not a zip file)"),
        (b"", "it is not a zip file (File is not a zip file)"),
        (bytes(5 << 20), "it has more than 4,194,304 bytes"),
        *((zipped(without(name)), f"{name} is missing") for name in [*MEMBERS][:4]),
        (zipped({}), "config.json is missing"),
        (zipped(MEMBERS | {"key": bytes(1 << 28)}), "key has more than 262,144 bytes"),
        (zipped(MEMBERS, zipfile.ZIP_LZMA), "config.json cannot be unpacked (neither stored"),
        (zipped(MEMBERS | {"cert": b"\xff"}), "cert is not text at byte 0"),
        (zipped(MEMBERS | {"ca.crt": b"no PEM"}), "ca.crt is not a certificate in PEM"),
        (zipped(MEMBERS | {"ca.crt": b""}), "ca.crt is not a certificate in PEM"),
        (zipped(MEMBERS | {"key": b"no PEM"}), "cert and key do not make a client certificate"),
        (zipped(MEMBERS | {"key": OTHERS["key"]}), "cert and key do not make a client cert"),
        # OpenSSL would ask for its password on the terminal
        (zipped(MEMBERS | {"key": encrypted(MEMBERS["key"])}), "cert and key do not make a client"),
        (zipped(MEMBERS | {"config.json": b'{"host'}), "config.json is not JSON"),
        (zipped(MEMBERS | {"config.json": b"[" * 100_000}), "config.json is not JSON"),
        (zipped(MEMBERS | {"config.json": b"[]"}), "config.json is not a JSON object"),
        (zipped(members_of(AUTHORITY, 1, host="")), "config.json has no text `host`"),
        (zipped(members_of(AUTHORITY, 1, host=5)), "config.json has no text `host`"),
        (zipped(members_of(AUTHORITY, 0)), "config.json has no `port` from 1 to 65535"),
        (zipped(members_of(AUTHORITY, True)), "config.json has no `port` from 1 to 65535"),
        (
            zipped(members_of(AUTHORITY, 1, username=[1])),
            "`username` and `password` in config.json",
        ),
    ],
)
def test_what_is_no_bundle(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    message = f"cluster.secure_connect_bundle: {path} is not a secure connect bundle: {reason}"
    with pytest.raises(UsageError, match=re.escape(message)) as refused:
        read_bundle(str(path))
    assert str(refused.value).endswith("download it again from the console of the service")


def test_a_damaged_member(tmp_path: Path) -> None:
    data = bytearray(zipped(MEMBERS, zipfile.ZIP_STORED))
    data[data.index(b'{"host"') + 1] ^= 1
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"config.json is damaged \(Bad CRC-32"):
        read_bundle(str(path))


def test_a_size_that_lies(tmp_path: Path) -> None:
    """The directory says that the member is small."""
    members = {"config.json": bytes(1 << 20)}
    data = zipped(members).replace((1 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"config.json is (damaged|not JSON)"):
        read_bundle(str(path))


@pytest.mark.parametrize("name", ["nowhere.zip", "."])
def test_a_file_that_is_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(UsageError, match=f"cluster.secure_connect_bundle: no such file {path}"):
        read_bundle(str(path))


def test_the_bundles_password_is_hidden_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle.zip"
    path.write_bytes(zipped(members_of(AUTHORITY, 1, username="joe", password="open sesame")))
    monkeypatch.setenv("RINGHAUL_CLUSTER_SECURE_CONNECT_BUNDLE", str(path))
    config = cluster_config(load_settings().settings)
    assert config.bundle is not None
    assert (config.bundle.user, config.bundle.password) == ("joe", "open sesame")
    assert hide("it was open sesame") == "it was ***"
    assert "sesame" not in repr(config) + repr(config.bundle)
    assert config.where == "127.0.0.1:1"
