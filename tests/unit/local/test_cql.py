"""cqlsh gets the stack's address, and passwords only by a file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from producer.local import cql
from producer.local.cql import cqlsh_argv, run_cqlsh
from producer.local.errors import ExtraMissing
from producer.local.stack import Endpoints


def endpoints(folder: Path, *, auth: bool) -> Endpoints:
    password = folder / "cassandra_password"
    password.write_text("s3cret\n")
    return Endpoints(
        contact_points=["127.0.1.1", "127.0.1.2"],
        port=9043,
        local_dc="datacenter1",
        host_ids=["a", "b"],
        broker_url="redis://127.0.0.1:1/0",
        broker_password_file=folder / "broker_password",
        user="cassandra" if auth else None,
        password_file=password if auth else None,
    )


def test_the_address_comes_last_and_the_configuration_is_our_own(tmp_path: Path) -> None:
    argv = cqlsh_argv(endpoints(tmp_path, auth=False), tmp_path, ["--execute", "SELECT 1"])
    assert argv[-4:] == ["--execute", "SELECT 1", "127.0.1.1", "9043"]
    assert argv[argv.index("--cqlshrc") + 1] == str(tmp_path / "cqlshrc")
    assert (tmp_path / "cqlshrc").exists()
    assert "--credentials" not in argv


def test_a_password_is_in_a_private_file_only(tmp_path: Path) -> None:
    argv = cqlsh_argv(endpoints(tmp_path, auth=True), tmp_path, [])
    credentials = Path(argv[argv.index("--credentials") + 1])
    assert credentials.read_text() == (
        "[plain_text_auth]\nusername = cassandra\npassword = s3cret\n"
    )
    assert stat.S_IMODE(credentials.stat().st_mode) == 0o600
    assert not any("s3cret" in word for word in argv)


def test_without_its_extra_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cql, "find_spec", lambda name: None)
    with pytest.raises(ExtraMissing, match=r'cqlsh is not installed.*pip install "ringhaul\[local'):
        run_cqlsh(endpoints(tmp_path, auth=False), tmp_path, [])
