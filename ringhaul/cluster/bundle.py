"""The secure connect bundle of Astra DB and similar services: one zip file to connect with.

It holds `config.json` (where the metadata service is), `ca.crt`, `cert` and `key`. The driver's own
option for it unpacks the file, and so the private key, beside the bundle; it also reads members of
any size. So the bundle is read here, in memory, and the driver gets its contents.
"""

from __future__ import annotations

import io
import json
import os
import ssl
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringhaul.errors import UsageError

SETTING = "cluster.secure_connect_bundle"
#: Bound of a bundle's size; real bundles have some 12 KB.
_FILE_BYTES_MAX = 4 << 20
_MEMBER_BYTES_MAX = 256 << 10
_CONFIG, _CA, _CERT, _KEY = "config.json", "ca.crt", "cert", "key"
_AGAIN = "download it again from the console of the service"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What is in a bundle. Holds secrets: only `path`, `host` and `port` may be shown."""

    path: str
    host: str  #: host of the metadata service
    port: int
    ca: str = field(repr=False)
    cert: str = field(repr=False)
    key: str = field(repr=False)
    #: Empty in most bundles: the settings have them.
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        return f"{self.host}:{self.port}"


def read_bundle(path: str) -> Bundle:
    """Read a bundle. Raises `UsageError`, which names the file, the member and what to do."""
    members = _Members(path)
    config = members.config()
    host, port = config.get("host"), config.get("port")
    if not isinstance(host, str) or not host:
        raise _unusable(path, f"{_CONFIG} has no text `host`")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise _unusable(path, f"{_CONFIG} has no `port` from 1 to 65535")
    bundle = Bundle(
        path=path,
        host=host,
        port=port,
        ca=members.text(_CA),
        cert=members.text(_CERT),
        key=members.text(_KEY),
        **_credentials(path, config),
    )
    bundle_context(bundle)  # whether the certificates can be used
    return bundle


def bundle_context(bundle: Bundle) -> ssl.SSLContext:
    """Return the TLS context for the metadata service and the nodes. Raises `UsageError`.

    A server is trusted if the bundle's own authority issued its certificate, whatever its name: the
    name sent to the proxy is a node's host id, and no certificate is made out to that.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=bundle.ca)
    except (ssl.SSLError, ValueError) as error:
        raise _unusable(bundle.path, f"{_CA} is not a certificate in PEM ({error})") from None
    with _file(bundle.cert) as cert, _file(bundle.key) as key:
        try:
            # Without a password OpenSSL would prompt for an encrypted key's password.
            context.load_cert_chain(cert, key, password="")
        except (ssl.SSLError, ValueError) as error:
            reason = f"{_CERT} and {_KEY} do not make a client certificate ({error})"
            raise _unusable(bundle.path, reason) from None
    return context


@contextmanager
def _file(text: str) -> Iterator[str]:
    """Yield the path of a file with this text, for this process: OpenSSL takes a private key from a
    file only. It is in memory, so nothing is left of it, even if this process is killed."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile("w", prefix="ringhaul-") as file:  # mode 0600
            file.write(text)
            file.flush()
            yield file.name
        return
    number = os.memfd_create("ringhaul-bundle")
    with os.fdopen(number, "wb", buffering=0) as memory:
        memory.write(text.encode())
        yield f"/proc/self/fd/{number}"


class _Members:
    """The members of the zip file, read once."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            if not Path(path).is_file():  # a pipe would block
                raise UsageError(f"{SETTING}: no such file {path}")
            with open(path, "rb") as file:
                data = file.read(_FILE_BYTES_MAX + 1)
        except OSError as error:
            raise UsageError(f"{SETTING}: cannot read {path}: {error.strerror}") from None
        if len(data) > _FILE_BYTES_MAX:
            raise _unusable(path, f"it has more than {_FILE_BYTES_MAX:,} bytes")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise _unusable(path, f"it is not a zip file ({error})") from None

    def text(self, name: str) -> str:
        """Return a member, with a bounded read: the size that the zip directory states may lie."""
        try:
            info = self._zip.getinfo(name)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # Python reads these without a bound.
                reason = f"{name} cannot be unpacked (neither stored nor deflated)"
                raise _unusable(self._path, reason)
            with self._zip.open(info) as member:
                data = member.read(_MEMBER_BYTES_MAX + 1)
        except KeyError:
            raise _unusable(self._path, f"{name} is missing") from None
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise _unusable(self._path, f"{name} is damaged ({error})") from None
        except (NotImplementedError, RuntimeError) as error:  # another compression, or encrypted
            raise _unusable(self._path, f"{name} cannot be unpacked ({error})") from None
        if len(data) > _MEMBER_BYTES_MAX:
            raise _unusable(self._path, f"{name} has more than {_MEMBER_BYTES_MAX:,} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise _unusable(self._path, f"{name} is not text at byte {error.start:,}") from None

    def config(self) -> Mapping[str, Any]:
        try:
            found = json.loads(self.text(_CONFIG))
        except (ValueError, RecursionError):  # its text may hold a password
            raise _unusable(self._path, f"{_CONFIG} is not JSON") from None
        if not isinstance(found, dict):
            raise _unusable(self._path, f"{_CONFIG} is not a JSON object")
        return found


def _credentials(path: str, config: Mapping[str, Any]) -> dict[str, str]:
    user, password = config.get("username") or "", config.get("password") or ""
    if not isinstance(user, str) or not isinstance(password, str):
        raise _unusable(path, f"`username` and `password` in {_CONFIG} are not texts")
    return {"user": user, "password": password} if user and password else {}


def _unusable(path: str, reason: str) -> UsageError:
    return UsageError(
        f"{SETTING}: {path} is not a secure connect bundle: {reason}. If it should be one, {_AGAIN}"
    )
