"""Sidecars behind TLS: certificates of both sides, and the token."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ringhaul.imports.exchange import NoHttp, words
from ringhaul.imports.sidecar import (
    SidecarNotReached,
    SidecarRefused,
    SidecarUnusable,
)
from tests.certificates import Authority
from tests.sidecar import Fault, running_sidecar, server_tls
from tests.unit.imports.rig import TOKEN, Rig, check


@dataclass(frozen=True)
class Pems:
    """PEM files: of an authority, of a server and a client that it knows, and of a stranger."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def client(self, ca: str, cert: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.path(ca))
        if cert is not None:
            context.load_cert_chain(self.path(cert), self.path(f"{cert}_key"))
        return context


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Pems:
    folder = tmp_path_factory.mktemp("pem")
    known, unknown = Authority("known"), Authority("unknown")
    files = {"ca": known.certificate, "stranger_ca": unknown.certificate}
    files["server_key"], files["server"] = known.issue("a sidecar", "127.0.0.1")
    files["elsewhere_key"], files["elsewhere"] = known.issue("a sidecar", "127.0.0.9")
    files["client_key"], files["client"] = known.issue("a client")
    files["stranger_key"], files["stranger"] = unknown.issue("a stranger")
    for name, text in files.items():
        (folder / f"{name}.pem").write_text(text)
    return Pems(folder)


@pytest.fixture
def secured(rig: Rig, pems: Pems) -> Iterator[Callable[..., Rig]]:
    """A function that returns the rig behind a server with a certificate, which wants clients' and
    a token."""
    with ExitStack() as servers:

        def secure(cert: str = "server") -> Rig:
            tls = server_tls(
                Path(pems.path(cert)), Path(pems.path(f"{cert}_key")), Path(pems.path("ca"))
            )
            server = replace(rig.server, port=0, token=TOKEN)
            return replace(rig, server=servers.enter_context(running_sidecar(server, tls)))

        yield secure


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_rows_go_over_tls_with_a_certificate_and_a_token(
    secured: Callable[..., Rig], pems: Pems, version: ssl.TLSVersion
) -> None:
    rig = secured()
    tls = pems.client("ca", "client")
    tls.minimum_version = tls.maximum_version = version
    rig.server.faults["upload"] += [Fault(), Fault(status=429, retry_after="0")]
    rig.send(tls=tls, token=TOKEN)
    check(rig)
    # An answer before the end of a file, here too
    rig.server.always["upload"] = Fault(status=507)
    with pytest.raises(SidecarRefused, match="507"):
        rig.send(tls=tls, token=TOKEN)


@pytest.mark.parametrize(
    ("server", "ca", "cert", "why"),
    [
        ("server", "stranger_ca", "client", "certificate"),
        ("elsewhere", "ca", "client", "IP address mismatch"),
        ("server", "ca", None, "certificate required"),
        ("server", "ca", "stranger", "unknown ca"),
    ],
)
def test_certificates_that_do_not_fit_are_refused(
    secured: Callable[..., Rig], pems: Pems, server: str, ca: str, cert: str | None, why: str
) -> None:
    rig = secured(server)
    with pytest.raises(SidecarUnusable) as refused:
        rig.session(tls=pems.client(ca, cert), token=TOKEN).probe()
    assert why in str(refused.value)
    assert "check sidecar.tls, tls_ca, tls_cert and tls_key" in str(refused.value)
    assert rig.server.log == []


def test_the_two_sides_disagree_on_tls(rig: Rig, secured: Callable[..., Rig], pems: Pems) -> None:
    with pytest.raises(SidecarUnusable, match=r"TLS failed \(wrong version number\)"):
        rig.session(tls=pems.client("ca")).probe()
    with pytest.raises(SidecarNotReached, match=r"does it want TLS \(sidecar\.tls\)\?"):
        secured().session().probe()


def test_a_token_is_sent_and_never_shown(secured: Callable[..., Rig], pems: Pems) -> None:
    rig = secured()
    tls = pems.client("ca", "client")
    for token in ("", "another"):
        with pytest.raises(
            SidecarRefused, match=r"401 Unauthorized; set sidecar\.token_file"
        ) as no:
            rig.session(tls=tls, token=token).probe()
        assert "another" not in str(no.value)
    assert TOKEN not in repr(rig.access(token=TOKEN))
    rig.session(tls=tls, token=TOKEN).probe()


def test_what_is_wrong_with_a_connection_is_said_in_words() -> None:
    assert words(TimeoutError()) == "no answer"
    assert words(NoHttp("its answer is not HTTP")) == "its answer is not HTTP"
    assert words(ConnectionRefusedError(111, "Connection refused")) == "Connection refused"
