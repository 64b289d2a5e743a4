"""Connection parameters of the broker: URL with password, TLS options, socket timeouts.

Redis carries Celery's messages and holds the ledger. Celery's clients get these timeouts, so that
none waits for ever on a connection whose other end is gone; the ledger has its own.
"""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from config.errors import ConfigError
from config.secrets import read_secret
from config.sections import BrokerSettings

#: Longer than any blocking command of ours (Celery's BRPOP waits 1 s), shorter than a lease.
SOCKET_TIMEOUT_S = 15
SOCKET_CONNECT_TIMEOUT_S = 5
#: A connection idle for longer is pinged before it is used: firewalls drop idle ones silently.
HEALTH_CHECK_INTERVAL_S = 25
#: Stands in the first lines of a PEM file whose key has a password, whichever its format.
_PROTECTED = b"ENCRYPTED"
_HEAD_BYTES = 4096


def broker_url(broker: BrokerSettings) -> str:
    """Return the URL with the password from `broker.password_file`. Never log it: `secrets.mask`.

    Raises `ConfigError` if no broker is configured or its password file cannot be read.
    """
    if not broker.url:
        raise ConfigError(
            "no broker is configured: set broker.url (RINGHAUL_BROKER_URL=redis://host:6379/0),"
            " or start a local one with `ringhaul local up`"
        )
    if broker.password_file is None:
        return broker.url
    parts = urlsplit(broker.url)
    if parts.password:
        raise ConfigError("broker.url holds a password, and broker.password_file names another one")
    password = quote(read_secret(broker.password_file, "broker.password_file"), safe="")
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:{password}@{address}"))


def broker_tls(broker: BrokerSettings) -> dict[str, Any] | None:
    """Return redis-py's TLS options; None without TLS. The certificate is always verified."""
    if not broker.url.startswith("rediss://"):
        return None
    options: dict[str, Any] = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
    files = {
        "ssl_ca_certs": broker.tls_ca,
        "ssl_certfile": broker.tls_cert,
        "ssl_keyfile": broker.tls_key,
    }
    for (option, path), name in zip(files.items(), ("tls_ca", "tls_cert", "tls_key"), strict=True):
        if path is None:
            continue
        if not path.is_file():
            raise ConfigError(f"broker.{name}: no such file: {path}")
        options[option] = str(path)
    if broker.tls_key is not None:
        _check_unprotected(broker.tls_key)
    return options


def _check_unprotected(key: Path) -> None:
    """Raise if a private key has a password.

    OpenSSL would ask for it at the terminal, which workers do not have.
    """
    try:
        with key.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ConfigError(f"broker.tls_key: cannot read {key}: {error.strerror}") from None
    if _PROTECTED in head:
        raise ConfigError(
            f"broker.tls_key: {key} is protected by a password: use a key without one, in a file "
            "that only its user can read (`openssl pkey -in KEY -out NEW`)"
        )
