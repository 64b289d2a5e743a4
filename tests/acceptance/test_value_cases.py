"""Each table of cases is loaded as files, unloaded and verified: every row and every field."""

from __future__ import annotations

import base64
import json

import pytest
from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, create_table, read_rows
from tests.value_cases import PAIR, TABLES, Bad, Case


@pytest.mark.parametrize("name", TABLES)
def test_cases_are_loaded_refused_unloaded_and_verified(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, name: str
) -> None:
    # Given a file for each type of the cases, and a table with the rows that they stand for
    session, cases = cassandra_session, TABLES[name]
    session.execute(f"CREATE TYPE {keyspace}.pair ({', '.join(map(' '.join, PAIR))})")
    numbered: list[tuple[int, Case | Bad]] = [*enumerate((*cases.cases, *cases.bad))]
    kinds = list(dict.fromkeys(one.kind for _, one in numbered))
    columns = [f"c{place}" for place in range(len(kinds))]
    types = [kind.replace("<pair>", f"<{keyspace}.pair>") for kind in kinds]
    definition = ", ".join(map(" ".join, zip(columns, types, strict=True)))
    loaded = create_table(session, keyspace, f"n int PRIMARY KEY, {definition}", "loaded")
    expected = create_table(session, keyspace, f"n int PRIMARY KEY, {definition}", "expected")
    for kind, column in zip(kinds, columns, strict=True):
        lines = [f"n{cases.delimiter}{column}", *cases.noise]
        lines += [f"{n}{cases.delimiter}{one.field}" for n, one in numbered if one.kind == kind]
        path = fleet.cwd / "in" / f"{column}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes("\n".join(lines).encode(cases.encoding))
        insert = session.prepare(f"INSERT INTO {expected} (n, {column}) VALUES (?, ?)")
        for n, one in numbered:
            if isinstance(one, Case) and one.kind == kind:
                session.execute(insert, (n, one.value))

    # When they are loaded with the options
    options = (*cases.both, *cases.reading)
    done = fleet.run("load", "in", "-t", loaded, *options, "--unit-size", "64", "--json")

    # Then every row is the expected one, and every other record is a reject with its reason
    assert_report(done, rows=len(cases.cases), rejected=len(cases.bad), code=1)
    names = ", ".join(["n", *columns])
    assert sorted(map(repr, read_rows(session, loaded, names))) == sorted(
        map(repr, read_rows(session, expected, names))
    )
    errors = fleet.run("errors", done.summary["job"], "--json", "--limit", "1000")
    reasons = {}
    for reject in map(json.loads, errors.out.splitlines()):
        data = base64.b64decode(reject["data"])
        text = data.decode("utf-8" if cases.encoding == "utf-16" else cases.encoding)
        reasons[int(text.split(cases.delimiter)[0])] = reject["reason"]
    wanted = {n: one.reason for n, one in numbered if isinstance(one, Bad)}
    assert reasons.keys() == wanted.keys()
    assert [reasons[n] for n in wanted if wanted[n] not in reasons[n]] == []

    # When the table is unloaded with the options, then every field is the expected one
    order = ("--columns", ",".join(["n", *columns]))
    written = (*cases.both, *cases.writing, *order)
    assert fleet.run("unload", "-t", loaded, "-o", "out.csv", *written).code == 0
    given = [*cases.both, *cases.writing]
    null = given[given.index("--null") + 1] if "--null" in given else ""
    edge = '"' if "--quote-all" in given else ""
    line_end = "\r\n" if "crlf" in given else "\n"
    head = cases.delimiter.join(f"{edge}{one}{edge}" for one in ("n", *columns))
    fields = {
        n: cases.delimiter.join(
            [f"{edge}{n}{edge}", *(one.unloaded if one.kind == kind else null for kind in kinds)]
        )
        for n, one in numbered
        if isinstance(one, Case)
    }
    text = (fleet.cwd / "out.csv").read_bytes().decode(cases.encoding)
    first, *rest, end = text.split(line_end)
    assert (first, end) == (head, "")
    assert sorted(rest) == sorted(fields.values())

    # And they read the same again
    options = (*cases.both, *(cases.writing if name == "fills" else cases.reading))
    assert fleet.run("verify", "out.csv", "-t", loaded, *options).code == 0
