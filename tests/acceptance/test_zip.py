"""Members of zip archives as sources: every record arrives, and bad archives are refused."""

from __future__ import annotations

import json
import struct
import zipfile

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.unit.formats.test_zip import pack, patched

HEADER = b"id,name\n"


def lines(numbers: range) -> bytes:
    return HEADER + b"".join(b"%d,name %d\n" % (n, n) for n in numbers)


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")


def test_members_are_loaded_verified_and_looked_up(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, table: str
) -> None:
    # Given an archive with a packed and a stored member, one with a bad record, and other files
    path = fleet.cwd / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/a.csv", lines(range(1000)) + b"x,bad\n")
        archive.writestr("in/b.csv", lines(range(1000, 5000)), zipfile.ZIP_STORED)
        archive.writestr("README.md", b"\0 not a table")
    # When the members of one kind are loaded
    load = ("load", "all.zip!in/*.csv", "-t", table, "--json")
    done = fleet.run(*load, "--unit-size", "8K")
    # Then the table has all of them, the stored one by units
    summary = assert_report(done, rows=5000, rejected=1)
    assert summary["units"] > 6
    rows = [(n, f"name {n}") for n in range(5000)]
    assert_table(cassandra_session, table, "id, name", rows)
    # And the reject has the member's name and line, and is exported to the folder of the command
    (reject,) = map(json.loads, fleet.run("errors", summary["job"], "--json").out.splitlines())
    assert (reject["file"], reject["line"]) == (f"{path}!in/a.csv", 1002)
    fleet.run("errors", summary["job"], "--export", "again.csv")
    assert (fleet.cwd / "again.csv").read_bytes() == HEADER + b"x,bad\n"
    refused = fleet.run("errors", summary["job"], "--export", "all.zip")
    assert refused.code == 2 and "the job was loaded from this file" in refused.err
    # And the same archive is planned, verified and looked up
    assert fleet.run("load", "all.zip!in/b.csv", "-t", table, "--dry-run").code == 0
    assert fleet.run("verify", "all.zip!in/b.csv", "-t", table).code == 0
    found = fleet.run("lookup", "-t", table, "--keys", "all.zip!in/b.csv", "--values-skip-columns",
                      "name", "-q")  # fmt: skip
    assert len(found.out.splitlines()) == 4001


def test_bad_archives(fleet: Ringhaul, table: str) -> None:
    path = fleet.cwd / "a.zip"
    good = {"a.csv": lines(range(9)) * 200}

    def refused(source: str, code: int, message: str) -> None:
        done = fleet.run("load", source, "-t", table)
        assert done.code == code and message in done.err, done

    pack(path, good)
    refused("a.zip!b.csv", 2, "has no member 'b.csv'; did you mean")
    pack(path, {"../up.csv": lines(range(9))})
    refused("a.zip", 2, "'../up.csv' leads out of the archive")
    patched(pack(path, good), b"a.csv", 8, b"\1\0")
    refused("a.zip", 2, "is encrypted, which is not supported: unpack it first")
    pack(path, good, zipfile.ZIP_LZMA)
    refused("a.zip", 2, "is packed by lzma (14), which is not supported")
    patched(pack(path, good), b"a.csv", 24, struct.pack("<I", 2**31))
    refused("a.zip", 4, "as in a zip bomb: it is not read")
    path.write_bytes(pack(path, good).read_bytes()[:-30])
    refused("a.zip", 4, "cannot be read as a zip archive")
    # What only reading shows fails the job, and loads nothing wrong
    data = bytearray(pack(path, good).read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    refused("a.zip", 4, "a.zip!a.csv: cannot be read from the archive")
