"""Only the pinned jars get into the cache, whole, and once."""

import hashlib
import re
from pathlib import Path

import pytest

from producer.local import jars
from producer.local.errors import ExtraMissing, LocalStackError
from producer.local.jar_list import JarList, jar_list
from producer.local.jars import cassandra_jars, jar_name

SMALL = {"org.example:one:1.0": b"first jar", "org.example:two:1.0:linux": b"second jar"}


@pytest.fixture
def two_jars(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list of two jars whose downloads are local; returns the coordinates requested for."""
    requested: list[str] = []

    def download(coordinate: str, folder: Path) -> Path:
        requested.append(coordinate)
        folder.mkdir(parents=True)
        (folder / "it.jar").write_bytes(SMALL[coordinate])
        return folder / "it.jar"

    digests = {name: hashlib.sha256(data).hexdigest() for name, data in SMALL.items()}
    monkeypatch.setattr(jars, "jar_list", lambda: JarList("5", digests))
    monkeypatch.setattr(jars, "_download", download)
    return requested


def test_without_its_extra_the_extra_is_named_and_not_the_network(
    tmp_path: Path, two_jars: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = cassandra_jars(tmp_path)
    # Given an installation without jgo: what is in the cache still serves
    monkeypatch.setattr(jars, "find_spec", lambda name: None)
    assert cassandra_jars(tmp_path) == paths
    paths[0].unlink()
    with pytest.raises(ExtraMissing, match=r'pip install "ringhaul\[local\]"') as raised:
        cassandra_jars(tmp_path)
    assert "network" not in str(raised.value)


def test_the_list_is_sound() -> None:
    version, digests = jar_list()
    assert len(digests) == 100
    assert f"org.apache.cassandra:cassandra-all:{version}" in digests
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests.values())
    assert len({jar_name(coordinate) for coordinate in digests}) == len(digests)
    assert sum("jamm" in jar_name(coordinate) for coordinate in digests) == 1


def test_jars_are_fetched_once(tmp_path: Path, two_jars: list[str]) -> None:
    steps: list[tuple[int, int]] = []
    paths = cassandra_jars(tmp_path, lambda done, total: steps.append((done, total)))
    assert [path.read_bytes() for path in paths] == list(SMALL.values())
    assert steps == [(1, 2), (2, 2)]
    assert cassandra_jars(tmp_path) == paths
    assert sorted(two_jars) == sorted(SMALL)


def test_only_what_is_missing_is_fetched(tmp_path: Path, two_jars: list[str]) -> None:
    paths = cassandra_jars(tmp_path)
    two_jars.clear()
    paths[1].unlink()
    cassandra_jars(tmp_path)
    assert two_jars == [list(SMALL)[1]]


def test_another_file_than_the_pinned_one_is_refused(
    tmp_path: Path, two_jars: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinate = next(iter(SMALL))
    wrong = JarList("5", dict.fromkeys(SMALL, "0" * 64))
    monkeypatch.setattr(jars, "jar_list", lambda: wrong)
    with pytest.raises(LocalStackError, match=r"org\.example:.* was fetched, but its SHA-256 is"):
        cassandra_jars(tmp_path)
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert jar_name(coordinate) not in left
    assert "it.jar" not in left


def test_a_registry_that_does_not_answer_is_named_with_what_to_do(
    tmp_path: Path, two_jars: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def fail(coordinate: str, folder: Path) -> Path:
        tries.append(coordinate)
        raise RuntimeError("connection refused")

    monkeypatch.setattr(jars, "_download", fail)
    with pytest.raises(LocalStackError, match=r"cannot fetch org\.example:.*: connection refused"):
        cassandra_jars(tmp_path)
    assert max(tries.count(coordinate) for coordinate in SMALL) == jars.TRIES_MAX
