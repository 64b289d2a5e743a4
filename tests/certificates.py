"""Certificate authorities for tests and the certificates they sign: PEM, valid for a day."""

from __future__ import annotations

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """A certificate authority with its own key."""

    def __init__(self, name: str) -> None:
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(self._name, self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        self.certificate = _pem(certificate.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, address: str | None = None) -> tuple[str, str]:
        """(key, certificate) for `name`; `address`: the IP address of a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(_name(name), self._name, key)
        if address is not None:
            host = x509.IPAddress(ipaddress.ip_address(address))
            names = x509.SubjectAlternativeName([host])
            certificate = certificate.add_extension(names, critical=False)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return private.decode(), _pem(certificate.sign(self._key, hashes.SHA256()))


def protect(key: str, form: PrivateFormat = PrivateFormat.PKCS8) -> str:
    """Return a private key with a password."""
    private = load_pem_private_key(key.encode(), None)
    return private.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret")).decode()


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
