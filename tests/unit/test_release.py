"""What a release is made of: archives of equal bytes, and the list of third-party software."""

from __future__ import annotations

import io
import platform
import sys
import tarfile
from pathlib import Path

import pytest

from release.__main__ import clean_environment
from release.archive import repack
from release.third_party import FILE, needed_packages, page

EPOCH = 1_700_000_000


def archive(path: Path, *, mtime: float, mode: int, owner: str, names: list[str]) -> Path:
    """Write an archive as a build might."""
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.mode, member.uname, member.uid = mtime, mode, owner, len(owner)
            content = name.encode() * 100
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_archives_of_the_same_files_have_the_same_bytes(tmp_path: Path) -> None:
    one = archive(tmp_path / "1.tgz", mtime=5.25, mode=0o664, owner="ann", names=["b", "a/c"])
    other = archive(tmp_path / "2.tgz", mtime=9.5, mode=0o600, owner="bo", names=["a/c", "b"])
    assert one.read_bytes() != other.read_bytes()
    for path in (one, other):
        repack(path, EPOCH)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as tar:
        assert tar.getnames() == ["a/c", "b"]
        assert {(m.mtime, m.mode, m.uname) for m in tar.getmembers()} == {(EPOCH, 0o644, "")}
        content = tar.extractfile("b")
        assert content is not None and content.read() == b"b" * 100


def test_a_program_stays_one(tmp_path: Path) -> None:
    path = archive(tmp_path / "1.tgz", mtime=5, mode=0o775, owner="ann", names=["run.sh"])
    repack(path, EPOCH)
    with tarfile.open(path) as tar:
        assert tar.getmember("run.sh").mode == 0o755


def test_no_variable_leads_a_check_to_the_checkout() -> None:
    found = clean_environment({"PYTHONPATH": "x", "RINGHAUL_A": "b", "PIP_INDEX": "c", "PATH": "d"})
    assert found == {"PATH": "d"}


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11) or platform.machine() != "x86_64",
    reason="other platforms need some other packages",
)
def test_the_list_of_third_party_software_is_up_to_date() -> None:
    assert FILE.read_text() == page(), "run: python -m release.third_party"


def test_every_package_states_its_licence() -> None:
    found = {package.name: package for package in needed_packages()}
    assert {"celery", "cassandra-driver", "flower", "redis", "pyarrow", "cqlsh"} <= found.keys()
    assert not [one for one in found.values() if one.licence == "not stated" or not one.version]
