"""Files that cqlsh's COPY TO wrote (6.2, of a table on Cassandra 5.0) load unchanged."""

from __future__ import annotations

import datetime
import decimal
import uuid

from cassandra.cluster import Session

from producer.translate.command import translate
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table

SCHEMA = (
    "id int PRIMARY KEY, l list<text>, st set<decimal>, m map<text, timestamp>, "
    "mi map<int, frozen<list<blob>>>, tp tuple<int, text, uuid>, u frozen<addr>, "
    "v vector<float, 3>, ip set<inet>, ok boolean"
)
#: Merged from several of its files; COPY TO cannot write a tuple that contains a null.
FILE = r"""id,l,st,m,mi,tp,u,v,ip,ok
1,"['it''s', 'a,b', 'q\"uote', ' {x}']","{1.50, 2}",{'k: 1': '2024-01-01 12:00:00.123+0000'},"""
FILE += r""""{7: [0x00ff, 0x]}","(1, 'x', 123e4567-e89b-12d3-a456-426614174000)","""
FILE += r""""{street: 'a, ''b''', zip: 5}","[1.5, -2, 3e+10]","{'10.0.0.1', '::1'}",True
2,,,,,,"{street: , zip: 5}",,,False
"""


def test_a_file_of_copy_to(embedded: Ringhaul, cassandra_session: Session, keyspace: str) -> None:
    cassandra_session.execute(f"CREATE TYPE {keyspace}.addr (street text, zip int)")
    table = create_table(cassandra_session, keyspace, SCHEMA)
    (embedded.cwd / "copied.csv").write_text(FILE)
    done = embedded.run("load", "copied.csv", "-t", table, "--escape", "\\", "-q")
    assert (done.code, done.err) == (0, "")

    found = {row.id: row for row in cassandra_session.execute(f"SELECT * FROM {table}")}
    assert found.keys() == {1, 2}
    one, two = found[1], found[2]
    assert one.l == ["it's", "a,b", 'q"uote', " {x}"]
    assert list(one.st) == [decimal.Decimal("1.50"), decimal.Decimal(2)]
    assert dict(one.m) == {"k: 1": datetime.datetime(2024, 1, 1, 12, 0, 0, 123000)}
    assert dict(one.mi) == {7: [b"\0\xff", b""]}
    assert one.tp == (1, "x", uuid.UUID("123e4567-e89b-12d3-a456-426614174000"))
    assert (one.u.street, one.u.zip, one.ok) == ("a, 'b'", 5, True)
    assert list(one.v) == [1.5, -2.0, 30000001024.0]
    assert list(one.ip) == ["10.0.0.1", "::1"]
    assert (two.u.street, two.u.zip, two.ok) == (None, 5, False)
    assert (two.l, two.st, two.m, two.mi, two.tp, two.v, two.ip) == (None,) * 7


def test_translated_statements_read_what_they_wrote(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    """A backslash is COPY's escape character in both directions."""
    schema = "id int PRIMARY KEY, note text, ok boolean, at timestamp, l list<text>"
    table = create_table(cassandra_session, keyspace, schema)
    cassandra_session.execute(
        f"INSERT INTO {table} (id, note, ok, at, l) VALUES "
        r"""(1, 'C:\dir\ "x", \', true, '1960-01-31 10:00:00.120Z', ['q"', 'b\', 'it''s'])"""
    )
    before = list(cassandra_session.execute(f"SELECT * FROM {table}"))
    for statement in (f"COPY {table} TO 'rows'", f"COPY {table} FROM 'rows'"):
        if "FROM" in statement:
            cassandra_session.execute(f"TRUNCATE {table}")
        (command,) = translate(statement)
        done = embedded.run(*command.words, "-q")
        assert (done.code, done.err) == (0, "")
    written = (embedded.cwd / "rows").read_text()
    # The way in which COPY FROM reads moments and quotes
    assert r'1,1960-01-31 10:00:00.120+0000,"[\"q' in written and ",True" in written
    assert list(cassandra_session.execute(f"SELECT * FROM {table}")) == before
