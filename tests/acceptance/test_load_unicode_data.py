"""A real file from outside the project: the Unicode character database, record by record."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table

INSTALLED = Path("/usr/share/unicode/UnicodeData.txt")

#: The fields of UnicodeData.txt, in order (Unicode Standard Annex 44).
FIELDS = (
    *("code", "name", "category", "combining", "bidi", "decomposition", "decimal", "digit"),
    *("numeric", "mirrored", "old_name", "comment", "upper", "lower", "title"),
)


@pytest.fixture(scope="module")
def unicode_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`UnicodeData.txt`: the installed one, or else from Debian's package `unicode-data`."""
    if INSTALLED.exists():
        return INSTALLED
    folder = tmp_path_factory.mktemp("unicode")
    if _apt("download", "unicode-data", folder=folder).returncode:
        if _apt("update", "-q", folder=folder).returncode:  # the mirror did not answer
            _apt("update", "-q", folder=folder).check_returncode()
        _apt("download", "unicode-data", folder=folder).check_returncode()
    (package,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "x"], check=True, capture_output=True)
    return folder / "x" / INSTALLED.relative_to("/")


def _apt(*words: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    patience = ["-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=2"]
    return subprocess.run(["timeout", "60", "apt-get", *patience, *words], cwd=folder)


@pytest.mark.parametrize("strategy", ["pipeline", "token-batch"])
def test_unicode_data_is_loaded_record_by_record(
    embedded: Ringhaul,
    cassandra_session: Session,
    keyspace: str,
    unicode_data: Path,
    strategy: str,
) -> None:
    # Given the file: semicolons, no header, many empty fields
    shutil.copy(unicode_data, embedded.cwd)
    expected = [
        (int(fields[0], 16), *(text or None for text in fields))
        for fields in (line.split(";") for line in unicode_data.read_text().splitlines())
    ]
    assert len(expected) > 30_000
    assert {len(row) for row in expected} == {1 + len(FIELDS)}
    # and a table with a text column for each field
    columns = ", ".join(f"{name} text" for name in FIELDS)
    table = create_table(cassandra_session, keyspace, f"{columns}, PRIMARY KEY (code)")

    # When it is loaded
    done = embedded.run(
        *("load", "UnicodeData.txt", "-t", table, "--json", "-d", ";", "--no-header"),
        *("--columns", ",".join(FIELDS), "--strategy", strategy, "--unit-size", "64KiB"),
    )

    # Then every record is in the table, an empty field as null
    summary = assert_report(done, rows=len(expected))
    assert summary["units"] > 10
    assert summary["bytes"] == unicode_data.stat().st_size
    assert_table(cassandra_session, table, ", ".join(FIELDS), [row[1:] for row in expected])
