"""The examples of docs/reference for load, verify, and commands about jobs, run as they
stand there.

`test_documented_reads.py` runs those of the commands that read.
"""

from __future__ import annotations

import gzip
import json
import re
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session

from manual.reference import REFERENCE
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.documented import run_line
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table
from tests.unit.test_docs import shell_lines

ORDERS = [("north", n, n * 10) for n in range(40)]
HEADER = "region,id,total\n"
#: The job that the examples name.
JOB = "ld-7f3a9c"


def examples(page: str, *words: str) -> list[str]:
    """The commands of a page that have all of these words."""
    lines = list(shell_lines((REFERENCE / f"{page}.md").read_text()))
    found = [line for line in lines if all(word in line for word in words)]
    assert found, f"{page}.md has no such example"
    return found


def csv_of(rows: list[tuple[str, int, int]], header: str = HEADER) -> str:
    return header + "".join(f"{region},{n},{total}\n" for region, n, total in rows)


@pytest.fixture
def at_work(fleet: Ringhaul) -> Path:
    (fleet.cwd / "orders.csv").write_text(csv_of(ORDERS))
    return fleet.cwd


def create_orders(session: Session, keyspace: str, table: str = "orders") -> str:
    name = f"{keyspace}.{table}"
    session.execute(
        f"CREATE TABLE {name} (region text, id int, total bigint, PRIMARY KEY (region, id))"
    )
    return name


def run(fleet: Ringhaul, keyspace: str, line: str, code: int = 0) -> Finished:
    done = run_line(fleet, keyspace, line)
    assert done.code == code, done
    return done


def test_a_table_that_does_not_exist(fleet: Ringhaul, keyspace: str, at_work: Path) -> None:
    ask, dry = examples("commands/load", "--create-table")
    # Without a terminal the command shows the statement, and creates nothing
    shown = run(fleet, keyspace, ask, code=2)
    assert "CREATE TABLE" in shown.out + shown.err
    plan = run(fleet, keyspace, dry)
    assert "PRIMARY KEY (region, id)" in plan.out + plan.err
    run(fleet, keyspace, ask.replace("--create-table", ""), code=4)


def test_load_and_verify(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    # Given the examples' files and tables
    orders = create_orders(cassandra_session, keyspace)
    cassandra_session.execute(f"CREATE TABLE {keyspace}.log (id int PRIMARY KEY, at bigint)")
    create_orders(cassandra_session, keyspace, "restored")
    plain, days, others, piped, dump = [
        line for line in examples("commands/load") if "--create-table" not in line
    ]
    (at_work / "days").mkdir()
    with gzip.open(at_work / "days" / "1.csv.gz", "wt") as file:
        file.write(csv_of([("day", 1, 1)]))
    (at_work / "extra.csv").write_text(csv_of([("extra", 2, 2)]))
    (at_work / "events.jsonl").write_text('{"id": 1, "at": 10, "note": "x"}\n')
    pq.write_table(pa.table({"id": [2], "at": [20], "note": ["y"]}), at_work / "users.parquet")
    with gzip.open(at_work / "dump.gz", "wt") as file:
        file.write(csv_of([("piped", 3, 3)], header=""))
    # When they are loaded
    for line in (plain, days, others, piped):
        run(fleet, keyspace, line)
    # Then the tables have each record
    more = [("day", 1, 1), ("extra", 2, 2), ("piped", 3, 3)]
    assert_table(cassandra_session, orders, "region, id, total", ORDERS + more)
    assert_table(cassandra_session, f"{keyspace}.log", "id, at", [(1, 10), (2, 20)])
    # And so has a table that is loaded from an unload with write times
    (unload,) = examples("formats", "ringhaul unload", "writetime")
    run(fleet, keyspace, unload.replace("SELECT id,", "SELECT region, id,"))
    run(fleet, keyspace, dump)
    assert_table(cassandra_session, f"{keyspace}.restored", "region, id, total", ORDERS + more)
    # And verifications agree, until a row differs; its reject mends the table
    same, unloaded, mend = examples("commands/verify")
    run(fleet, keyspace, same)
    (unload,) = examples("copy-from", "unload", "-o out/")
    run(fleet, keyspace, unload)
    assert run(fleet, keyspace, unloaded).summary["rows"] == len(ORDERS + more)
    cassandra_session.execute(f"UPDATE {orders} SET total = 7 WHERE region = 'north' AND id = 5")
    job = f"vf-{uuid4().hex[:6]}"
    run(fleet, keyspace, f"{same} --job-id {job}", code=1)
    run(fleet, keyspace, mend.replace("vf-04f2a1", job))
    assert_table(cassandra_session, orders, "region, id, total", ORDERS + more)


def test_a_format_profile(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    # Given the page's settings file and a file as it describes
    cassandra_session.execute(
        f"CREATE TABLE {keyspace}.orders (region text, id int, total decimal, note text, "
        "PRIMARY KEY (region, id))"
    )
    page = (REFERENCE / "records.md").read_text()
    (profile,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (at_work / "ringhaul.toml").write_text(profile)
    (at_work / "tills.txt").write_text("north;1;2,50;NULL\nsouth;2;-;x\n")
    loaded, planned = examples("records")
    assert (
        f"[format.till] of {at_work}/ringhaul.toml: --delimiter ';'"
        in run(fleet, keyspace, loaded).err
    )
    rows = [("north", 1, Decimal("2.50"), None), ("south", 2, None, "x")]
    assert_table(cassandra_session, f"{keyspace}.orders", "region, id, total, note", rows)
    plan = run(fleet, keyspace, planned, code=1)  # with tabs, no record has the fields
    assert "--delimiter" not in plan.err and "--null 'NULL' --null '-'" in plan.err


def test_a_header_behind_titles(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    table = create_orders(cassandra_session, keyspace)
    rows = [("north", n, n) for n in range(200)]
    (at_work / "a.csv").write_text("Orders\n\n" + csv_of(rows[:100]))
    (at_work / "b.csv").write_text(csv_of(rows[100:]))
    load = f"ringhaul load a.csv b.csv -t {table} --header-at auto --unit-size 64 --json"
    assert run(fleet, keyspace, load).summary["rows"] == 200
    assert_table(cassandra_session, table, "region, id, total", rows)
    refused = f"ringhaul load a.csv b.csv -t {table} --header-at 999"
    assert "has no line 999 for the header" in run(fleet, keyspace, refused, code=2).err


def test_mappings(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    definition = (
        "(region text, id int, total bigint, loaded timeuuid, placed timestamp, "
        "tags set<text>, "
        "PRIMARY KEY (region, id))"
    )
    for name in ("orders", "restored"):
        cassandra_session.execute(f"CREATE TABLE {keyspace}.{name} {definition}")
    (at_work / "wide.csv").write_text("customer,region,total\n1,north,10\n")
    (at_work / "export.txt").write_text("2,a,b,c,south\n")
    (at_work / "part.csv").write_text("id,comment,total\n3,none,30\n")
    renamed, placed, constant, restore, restore_newest = examples("mapping", "ringhaul load")
    keep, keep_newest, named, computed = examples("mapping", "ringhaul unload")
    cassandra_session.execute(
        f"UPDATE {keyspace}.orders USING TIMESTAMP 77 SET tags = {{'x'}} "
        "WHERE region = 'north' AND id = 1"
    )
    for line in (renamed, placed, constant, keep_newest, restore_newest):
        run(fleet, keyspace, line)
    newest = cassandra_session.execute(
        f"SELECT tags, maxwritetime(tags) FROM {keyspace}.restored "
        "WHERE region = 'north' AND id = 1"
    )
    assert [(set(tags), at) for tags, at in newest] == [({"x"}, 77)]
    for line in (keep, restore, named, computed):
        run(fleet, keyspace, line)
    rows = [("east", 3, 30), ("north", 1, 10), ("south", 2, None)]
    for name in ("orders", "restored"):
        assert_table(cassandra_session, f"{keyspace}.{name}", "region, id, total", rows)
        times = cassandra_session.execute(
            f"SELECT id, loaded, writetime(total) FROM {keyspace}.{name}"
        )
        found = {row[0]: (row[1] is not None, row[2]) for row in times}
        assert {n: loaded for n, (loaded, _) in found.items()} == {1: False, 2: False, 3: True}
        if name == "orders":
            written = found
        assert found == written
    heads = {part.read_text().splitlines()[0] for part in (at_work / "out").glob("*.csv")}
    assert heads == {"number,loaded,placed,tags,total,written"}
    days = [path.read_text().splitlines()[1:] for path in (at_work / "days").glob("*.csv")]
    assert sorted(row for part in days for row in part) == ["1,old,", "2,old,", "3,old,"]


def test_files_like_those_of_copy(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    orders = create_orders(cassandra_session, keyspace)
    copy, load, _, unload = examples("copy-from")
    translated = run(fleet, keyspace, copy).out
    assert translated.replace(keyspace, "shop") in (REFERENCE / "copy-from.md").read_text()
    run(fleet, keyspace, translated)
    assert_table(cassandra_session, orders, "region, id, total", ORDERS)
    run(fleet, keyspace, load)
    assert_table(cassandra_session, orders, "region, id, total", ORDERS)
    run(fleet, keyspace, unload)
    assert sorted((at_work / "orders.csv").read_text().splitlines()[1:]) == sorted(
        csv_of(ORDERS, header="").splitlines()
    )


def test_translated_commands_do_what_the_others_did(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    orders = create_orders(cassandra_session, keyspace)
    (at_work / "orders.csv").write_text("north;1;10\nsouth;2;\n")
    (at_work / "nightly.sh").write_text(
        "# as a scheduler runs it\n"
        f"dsbulk load -k {keyspace} -t orders -url more.csv -delim '|' -m 'total,region,id'\n"
    )
    (at_work / "more.csv").write_text(
        'total|region|id|extra\n30|we\\st|3|x\n40|"e\\"a\\\\st"|4|x\n'
    )
    copy, load, script, with_schema = examples("commands/translate")
    for line in (copy, script):
        run(fleet, keyspace, run(fleet, keyspace, line).out)
    rows = [("north", 1, 10), ("south", 2, None), ("we\\st", 3, 30), ('e"a\\st', 4, 40)]
    assert_table(cassandra_session, orders, "region, id, total", rows)
    limited = run(fleet, keyspace, load).out
    assert limited.endswith(
        f"--table {keyspace}.orders --escape '\\' --escape-style quoted --blob any "
        "--accept all --thousands-sep , --max-errors 10\n"
    )
    settled = run(fleet, keyspace, with_schema)
    assert settled.out.endswith(" --where 'token(region) > 0'\n")
    assert "counterpart" not in settled.err

    # The way back, and what has no counterpart
    copy_to = f"COPY {keyspace}.orders (id, total) TO STDOUT WITH FLOATPRECISION = 3"
    done = fleet.run("translate", copy_to, "--json")
    (document,) = map(json.loads, done.out.splitlines())
    assert (done.code, document["complete"]) == (1, False)
    assert [note["option"] for note in document["notes"] if note["lost"]] == ["FLOATPRECISION"]
    unloaded = fleet.run(*document["command"][1:])
    assert sorted(unloaded.out.splitlines()) == ["1,10", "2,", "3,30", "4,40"]

    # And text that is not a command
    wrong = fleet.run("translate", "COPY x FROM")
    assert (wrong.code, wrong.out) == (2, "")
    assert "a file in quotes or STDIN is missing" in wrong.err


def test_jobs_that_ended(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    # Given a job with a reject
    create_orders(cassandra_session, keyspace)
    job = f"ld-{uuid4().hex[:6]}"
    (at_work / "orders.csv").write_text(csv_of(ORDERS) + "north,x,1\n")
    (load, *_) = examples("commands/load")
    run(fleet, keyspace, f"{load} --job-id {job}", code=1)
    (at_work / "reports").mkdir()
    programs = "mail() { cat > mailed.html; }; jq() { cat; }; "

    def show(line: str, code: int = 0) -> Finished:
        return run(fleet, keyspace, programs + line.replace(JOB, job), code)

    # Then each command about jobs reports it
    listing, follow, events = examples("commands/status")
    assert job in show(listing).out
    show(follow, code=1)
    assert "created" in show(events, code=1).out
    shown, export = examples("commands/errors")
    assert "column id" in show(shown).out
    show(export)
    assert (at_work / "rejects.csv").read_text() == HEADER + "north,x,1\n"
    for line in examples("commands/report"):
        show(line.replace("mail ...", "mail"))
    for name in ("report.html", f"reports/{job}.html", "mailed.html"):
        assert "<html" in (at_work / name).read_text()
    once, as_json = examples("commands/top")
    assert "WORKERS" in show(once).out.upper() or "HOST" in show(once).out.upper()
    assert json.loads(show(as_json).out)["hosts"]
    for line in examples("commands/config"):
        assert "broker.url" in show(line).out


def test_jobs_that_run(
    fleet: Ringhaul, hold: Hold, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    # Given a job whose units wait
    hold.from_unit(0)
    orders = create_orders(cassandra_session, keyspace)
    job = f"ld-{uuid4().hex[:6]}"
    (load, *_) = examples("commands/load")
    run(fleet, keyspace, f"{load} --job-id {job} --detach", code=7)
    # Then it can be paused, limited and cancelled
    (pause,) = examples("commands/pause")
    (cancel,) = examples("commands/cancel")
    limit, hours, shown, off = [
        line.replace(JOB, job) for line in examples("commands/throttle", "ringhaul")
    ]
    run(fleet, keyspace, pause.replace(JOB, job))
    run(fleet, keyspace, limit)
    run(fleet, keyspace, hours)
    assert run(fleet, keyspace, shown).out == f"{job}: 20 MB/s, 08:00-18:00 Europe/Berlin\n"
    run(fleet, keyspace, off)
    run(fleet, keyspace, cancel.replace(JOB, job))
    # And a resumed one ends as if nothing had happened
    run(fleet, keyspace, off, code=2)
    hold.release()
    assert fleet.run("resume", job).code == 0
    assert_table(cassandra_session, orders, "region, id, total", ORDERS)


def test_how_values_are_spelled(
    fleet: Ringhaul, keyspace: str, at_work: Path, cassandra_session: Session
) -> None:
    columns = "id int PRIMARY KEY, day date, at time, seen timestamp, paid boolean"
    cassandra_session.execute(f"CREATE TABLE {keyspace}.visits ({columns})")
    cassandra_session.execute(
        f"CREATE TABLE {keyspace}.prices (id uuid PRIMARY KEY, price decimal, pieces int)"
    )
    visits, prices, unload = examples("spelling")
    (at_work / "visits.csv").write_text(
        "id,day,at,seen,paid\n1,31/01/2026,083000,2026-01-31T08:30:00.25,yes\n2,01/02/2026,235959,,no\n"
    )
    key = uuid4()
    (at_work / "prices.csv").write_text(f'id,price,pieces\n{key.hex.upper()},"1.234,50","3,0"\n')
    run(fleet, keyspace, visits)
    found = cassandra_session.execute(f"SELECT id, day, at, seen, paid FROM {keyspace}.visits")
    seen = datetime(2026, 1, 31, 7, 30, 0, 250_000)
    assert sorted((i, day.date(), at.time(), *rest) for i, day, at, *rest in found) == [
        (1, date(2026, 1, 31), time(8, 30), seen, True),
        (2, date(2026, 2, 1), time(23, 59, 59), None, False),
    ]
    run(fleet, keyspace, prices)
    (row,) = cassandra_session.execute(f"SELECT * FROM {keyspace}.prices")
    assert tuple(row) == (key, 3, Decimal("1234.50"))
    run(fleet, keyspace, unload)
    (part,) = (at_work / "visits").glob("part-*.csv")
    assert sorted(part.read_text().splitlines()[1:]) == [
        '"1","08:30:00.000000000","2026-01-31","yes","2026-01-31 07:30:00.250"',
        '"2","23:59:59.000000000","2026-02-01","no",',
    ]
