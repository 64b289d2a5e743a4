"""Values that are expensive to parse are rejected quickly, and the other records are loaded."""

from __future__ import annotations

import time
from pathlib import Path

from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.unit.formats.parquet_bombs import MIB, ids, shared, write

#: Includes some seconds for the start of the command and its worker.
SECONDS_MAX = 60
#: Of the job alone, and of the process that did it, which starts with some 120 MB.
JOB_SECONDS_MAX = 5
RSS_BYTES_MAX = 300 * 10**6
#: Other processes may take the time of a run, but hardly of all.
TRIES = 3


def assert_cheap(embedded: Ringhaul, *load: object, code: int, rows: int) -> None:
    """Load with one worker process that does nothing else; assert its time and memory."""
    for _ in range(TRIES):
        done = embedded.run("load", *load, "-c", 1, "--json")
        assert done.code == code, done.err
        summary = done.summary
        assert summary["rows"] == rows
        assert 0 < summary["worker_rss_bytes_max"] < RSS_BYTES_MAX
        if summary["elapsed_s"] < JOB_SECONDS_MAX:
            return
    assert summary["elapsed_s"] < JOB_SECONDS_MAX


def test_one_bad_number_of_40_000_digits(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.d (id int PRIMARY KEY, d decimal)")
    records = [f"{number},1.5" for number in range(2000)]
    records[1000] = "1000," + "9" * 40_000 + "x"
    file = tmp_path / "r.csv"
    file.write_text("\n".join(["id,d", *records]) + "\n")
    assert_cheap(embedded, file, "-t", f"{keyspace}.d", code=1, rows=1999)
    rows = {
        (row.id, str(row.d)) for row in cassandra_session.execute(f"SELECT * FROM {keyspace}.d")
    }
    assert rows == {(number, "1.5") for number in range(2000) if number != 1000}


def test_a_literal_of_15_mb(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.l (id int PRIMARY KEY, l list<text>)")
    file = tmp_path / "l.csv"
    file.write_text(f"id,l\n1,\"['{'a' * 15_500_000}']\"\n2,\"['b']\"\n")
    assert_cheap(embedded, file, "-t", f"{keyspace}.l", code=0, rows=2)
    found = cassandra_session.execute(f"SELECT l FROM {keyspace}.l WHERE id = 1").one()
    assert list(map(len, found.l)) == [15_500_000]


def test_a_parquet_file_whose_rows_share_a_long_text(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    """The whole of `test_an_85_kb_file_of_20_gb_is_read_in_small_blocks` would fill the disk."""
    cassandra_session.execute(f"CREATE TABLE {keyspace}.b (id int PRIMARY KEY, t text)")
    path = write(tmp_path / "b.parquet", {"id": ids(20_000), "t": shared(20_000)})
    assert_cheap(embedded, path, "-t", f"{keyspace}.b", "--max-rows", 40, code=0, rows=40)
    found = cassandra_session.execute(f"SELECT t FROM {keyspace}.b WHERE id = 39").one()
    assert found.t == "x" * MIB


def test_a_duplicate_name_among_150_000(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.j (id int PRIMARY KEY)")
    names = [f'"k{number}":1' for number in range(150_000)]
    bad = '{"id":2,' + ",".join([*names, names[-1]]) + "}"
    file = tmp_path / "d.jsonl"
    file.write_text(f'{{"id":1}}\n{bad}\n{{"id":3}}\n')
    began = time.monotonic()
    done = embedded.run("load", file, "-t", f"{keyspace}.j", "--allow-extra-fields", "--json")
    assert time.monotonic() - began < SECONDS_MAX
    assert done.code == 1, done.err
    assert {row.id for row in cassandra_session.execute(f"SELECT id FROM {keyspace}.j")} == {1, 3}


def test_a_long_literal_and_a_long_varint_come_back(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(
        f"CREATE TABLE {keyspace}.l (id int PRIMARY KEY, l list<text>, v varint)"
    )
    digits = "7" * 300_000
    file = tmp_path / "l.csv"
    file.write_text(f"id,l,v\n1,\"['{'a' * 8_000_000}']\",{digits}\n")
    done = embedded.run("load", file, "-t", f"{keyspace}.l", "--json")
    assert done.code == 0, done.err
    out = tmp_path / "out"
    done = embedded.run("unload", "-t", f"{keyspace}.l", "-o", out, "--json")
    assert done.code == 0, done.err
    (part,) = out.glob("part-*")
    text = part.read_text()
    assert digits in text
    assert "a" * 8_000_000 in text
