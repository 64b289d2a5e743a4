"""Values that are expensive to parse are rejected quickly, and the other records are loaded."""

from __future__ import annotations

import time
from pathlib import Path

from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul

#: Includes some seconds for the start of the command and its worker.
SECONDS_MAX = 60


def test_one_bad_number_of_40_000_digits(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    cassandra_session.execute(f"CREATE TABLE {keyspace}.d (id int PRIMARY KEY, d decimal)")
    records = [f"{number},1.5" for number in range(2000)]
    records[1000] = "1000," + "9" * 40_000 + "x"
    file = tmp_path / "r.csv"
    file.write_text("\n".join(["id,d", *records]) + "\n")
    began = time.monotonic()
    done = embedded.run("load", file, "-t", f"{keyspace}.d", "--json")
    assert time.monotonic() - began < SECONDS_MAX
    assert done.code == 1, done.err
    rows = {
        (row.id, str(row.d)) for row in cassandra_session.execute(f"SELECT * FROM {keyspace}.d")
    }
    assert rows == {(number, "1.5") for number in range(2000) if number != 1000}


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
