"""The examples of docs/reference for unload, count, query, peek, lookup and exec work as
documented, and each option of these commands has an example.

`test_documented_options.py` runs those under "Options of every job".
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from click.core import ParameterSource

from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.documented import OF_EVERY_JOB, csv_rows, listed, run_line
from tests.acceptance.documented_shop import (
    NOTES,
    PEOPLE,
    READINGS,
    REGIONS,
    ROWS,
    age,
    create_shop,
    note,
    write_inputs,
)
from tests.unit.test_docs import (
    CLI,
    COMMANDS,
    documented,
    options,
    ringhaul_calls,
    shell_lines,
)

READS = ("unload", "count", "query", "peek", "lookup", "exec")
#: `test_documented_commands` runs it, with a table that has a column `tags`.
ELSEWHERE = "-o newest/"
EXAMPLES = [
    line
    for line in shell_lines(CLI)
    if ELSEWHERE not in line and any(call[0] in READS for call in ringhaul_calls(line))
]


@pytest.fixture(scope="module")
def shop(cassandra_session: Session, module_keyspace: str) -> str:
    """A keyspace with the examples' tables."""
    create_shop(cassandra_session, module_keyspace)
    return module_keyspace


@pytest.fixture
def at_work(fleet: Ringhaul) -> Path:
    """The folder in which the examples run, with their input files."""
    write_inputs(fleet.cwd)
    return fleet.cwd


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(int(row["id"]) for row in rows)


def check_north(folder: Path) -> None:
    _, files = listed(folder)
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert ids(found) == [n for n in range(101, ROWS) if n % 2 == 0]


def check_totals(folder: Path) -> None:
    rows, files = listed(folder)
    assert rows == ROWS and all(file.name.endswith(".csv.zst") for file in files)


def check_days(folder: Path) -> None:
    found = csv_rows((folder / "days.csv").read_text())
    assert len(found) == 100 == len({row["id"] for row in found})
    assert {row["site"] for row in found} == {"eu"}
    # Other examples change when two were placed.
    assert [row["day"] for row in found].count("2024-06-01") >= 98


def check_dialect(folder: Path) -> None:
    rows, files = listed(folder)
    assert rows == ROWS
    assert all(line.count("\t") == 3 for line in files[0].read_text().splitlines())


def check_zipped(folder: Path) -> None:
    found = csv_rows(gzip.decompress((folder / "orders.csv.gz").read_bytes()).decode())
    assert ids(found) == list(range(ROWS))
    assert list(found[0]) == ["id", "total", "writetime(total)"]


def check_one_file(folder: Path) -> None:
    found = csv_rows(gzip.decompress((folder / "orders.csv.gz").read_bytes()).decode())
    assert ids(found) == list(range(ROWS))


def check_named(folder: Path) -> None:
    rows, files = listed(folder / "named")
    assert rows == ROWS
    assert [file.name for file in files] == [f"orders-{n:04}.csv" for n in range(1, len(files) + 1)]


def check_regions(folder: Path) -> None:
    rows, files = listed(folder / "regions")
    assert rows == ROWS
    assert {file.parent.name for file in files} == {"region=north", "region=south"}
    assert all("region" not in pq.read_schema(file).names for file in files)


def check_typed(folder: Path) -> None:
    rows, files = listed(folder / "typed")
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert len(found) == rows > 0 and all(row["total"] == row["id"] for row in found)


def check_spelled(folder: Path) -> None:
    rows, files = listed(folder / "spelled")
    found = [row for file in files for row in csv_rows(file.read_text())]
    assert rows == ROWS and len({row["id"] for row in found}) == ROWS
    assert {row["placed"] for row in found} == {"01/06/2024 02:00:00.000"}
    assert {row["total"] for row in found if row["id"] == "1.500"} == {"1.500"}
    assert files[0].read_bytes().startswith(b'"id","placed","region","total"\r\n')


def check_by_profile(folder: Path) -> None:
    rows, files = listed(folder / "numbers")
    first = [line.split(",")[0] for file in files for line in file.read_text().splitlines()]
    assert rows == ROWS and sorted(map(int, first)) == list(range(ROWS))


def check_array(folder: Path) -> None:
    _, files = listed(folder / "array")
    found = [row for file in files for row in json.loads(file.read_text("utf-16"))]
    assert ids(found) == list(range(ROWS))
    assert {row["placed"] for row in found} == {"1717200000"}


def check_pretty(folder: Path) -> None:
    _, files = listed(folder / "found")
    texts = [gzip.decompress(file.read_bytes()).decode("utf-16") for file in files]
    assert ids([row for text in texts for row in json.loads(text)]) == [7, 8]
    assert all('\n    "id": ' in text for text in texts)


def check_quoted(folder: Path) -> None:
    text = (folder / "found.csv").read_text()
    assert ids(csv_rows(text)) == [7, 8]
    # Other examples change when 7 was placed.
    assert '"01/06/2024 02:00"' in text
    assert len(re.findall(r'"\d\d/\d\d/2024 \d\d:00"', text)) == 2


def check_found(folder: Path) -> None:
    assert ids(csv_rows((folder / "found.csv").read_text())) == [7, 8]


def check_events(folder: Path) -> None:
    rows, (file, *_) = listed(folder / "out")
    assert rows == 7 and file.read_text().startswith("at,total\n")


def check_parts(folder: Path) -> None:
    assert listed(folder / "parts")[0] == 2


def check_zipped_lines(folder: Path) -> None:
    _, files = listed(folder / "found")
    lines = [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert ids([json.loads(line) for line in lines]) == [7, 8]


def check_tabs(folder: Path) -> None:
    found = [line.split("\t") for line in (folder / "found.csv").read_text().splitlines()]
    assert sorted(row[0] for row in found) == ["7", "8"] and len(found[0]) == 4


def check_born(folder: Path) -> None:
    _, files = listed(folder)
    found = {row["id"]: row["born"] for file in files for row in csv_rows(file.read_text())}
    ages = {str(n): age(n) for n in range(PEOPLE)}
    assert found == {n: str(2026 - years) for n, years in ages.items() if years is not None}


def check_march(folder: Path) -> None:
    _, files = listed(folder)
    lines = [line for file in files for line in gzip.decompress(file.read_bytes()).splitlines()]
    found = sorted(json.loads(line)["at"] for line in lines)
    assert found == sorted([*range(7), *range(7)])


def check_notes(folder: Path) -> None:
    _, files = listed(folder)
    assert [len(file.read_text().splitlines()) for file in files] == [5, 5, 2]
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert lines == [f"{n}\t'it''s; {n}'" if note(n) else f"{n}\tNULL" for n in NOTES]


def check_ranges(file: Path) -> None:
    assert sum(int(row["count"]) for row in csv_rows(file.read_text())) == ROWS


def check_old_ids(folder: Path) -> None:
    assert ids(csv_rows((folder / "found.csv").read_text())) == [1001, 1002]


def check_times(folder: Path) -> None:
    rows, (file, *_) = listed(folder)
    head, first, *_ = file.read_text().splitlines()
    names = ["placed", "region", "total"]
    both = [part for name in names for part in (name, f"writetime({name})", f"ttl({name})")]
    assert rows == ROWS and head.split(",") == ["id", *both]
    assert int(first.split(",")[2]) > 0


def check_readings(folder: Path) -> None:
    found = {(row["sensor"], row["at"]) for row in csv_rows((folder / "found.csv").read_text())}
    assert found == {(sensor, f"{at:%Y-%m-%dT%H:%M:%S.000}Z") for sensor, at in READINGS}


#: A part of the line that identifies an example -> the check of its folder.
IN_FILES: dict[str, Callable[[Path], None]] = {
    "unload shop.orders -o out/": lambda folder: listed(folder / "out")[0] == ROWS or fail(),
    "unload -t shop.orders -o out/": lambda folder: listed(folder / "out")[0] == ROWS or fail(),
    "-o most/": lambda folder: listed(folder / "most")[0] == ROWS or fail(),
    "-o north/": lambda folder: check_north(folder / "north"),
    "gzip > orders.csv.gz": check_zipped,
    "-o days.csv": check_days,
    "-o days/": lambda folder: listed(folder / "days")[0] == ROWS or fail(),
    "-o first.csv": lambda folder: (
        len(csv_rows((folder / "first.csv").read_text())) == 100 or fail()
    ),
    "-o last/": lambda folder: listed(folder / "last")[0] == 8 or fail(),
    "-o totals/": lambda folder: check_totals(folder / "totals"),
    "-o dialect/": lambda folder: check_dialect(folder / "dialect"),
    "-o spelled/": check_spelled,
    "-o array/": check_array,
    "-o numbers/": check_by_profile,
    "-o orders.csv.gz": check_one_file,
    "-o one/": lambda folder: (
        listed(folder / "one") == (ROWS, [folder / "one/orders.csv"]) or fail()
    ),
    "-o named/": check_named,
    "-o regions/": check_regions,
    "--keys floats.csv": check_found,
    "--params floats.csv": check_found,
    "--values-format-profile": check_found,
    "--values-header-at": check_found,
    "--values-format fixed": check_found,
    "--json-layout pretty": check_pretty,
    "ids.csv --quote-all": check_quoted,
    "--dry-run": lambda folder: (folder / "later").exists() and fail(),
    "--keys pairs.jsonl": check_events,
    "-o p99.parquet": lambda folder: pq.read_table(folder / "p99.parquet").num_rows == 2 or fail(),
    "-o people/": lambda folder: check_born(folder / "people"),
    "-o found/": check_zipped_lines,
    "-o typed/": check_typed,
    "-o ranges.csv": lambda folder: check_ranges(folder / "ranges.csv"),
    "-o march/": lambda folder: check_march(folder / "march"),
    "-o notes/": lambda folder: check_notes(folder / "notes"),
    "--keys old.txt": check_readings,
    "--keys old-notes.txt": check_old_ids,
    "-o all/": lambda folder: check_times(folder / "all"),
    "-o parts/": check_parts,
    "lookup -t shop.orders --keys ids.csv -d": check_tabs,
    "lookup -t shop.orders --keys ids.csv --dialect": check_tabs,
    "lookup -t shop.orders --keys ids.csv >": check_found,
    "--no-values-header --order any > found.csv": check_found,
    "--keys export.txt": check_found,
    "--keys - --values-format jsonl": lambda folder: listed(folder / "out")[0] == 7 or fail(),
}
#: The same for standard output: the check of its rows, dicts of text.
ON_STDOUT: dict[str, Callable[[list[dict[str, Any]]], bool]] = {
    "count shop.orders": lambda rows: rows == [{"count": str(ROWS)}],
    "count -t shop.orders": lambda rows: rows == [{"count": str(ROWS)}],
    'orders" --skip-failed-ranges': lambda rows: [*rows[0].values()] == [str(ROWS)],
    "count -k shop": lambda rows: rows == [{"count": str(ROWS // 2)}],
    "--top 10": lambda rows: [row["count"] for row in rows] == [16, 14, 12, 10, 8, 6, 4, 2],
    "count -t shop.orders --by host": lambda rows: [int(row["count"]) for row in rows] == [ROWS],
    "ORDER BY 2 DESC": lambda rows: sorted(row["region"] for row in rows) == list(REGIONS),
    "LIMIT 5": lambda rows: len(rows) == 5 and all([*row] == ["id", "total"] for row in rows),
    "peek shop.orders": lambda rows: len(rows) == 5,
    "peek shop.orders -n 20": lambda rows: len(rows) == 20 and [*rows[0]] == ["id", "total"],
    "peek orders -k shop": lambda rows: [type(row["id"]) for row in rows] == [int] * 5,
    "count(DISTINCT id)": lambda rows: [list(row.values()) for row in rows] == [[ROWS]],
    "--range day:": lambda rows: len(rows) == 14,
    "cat days.txt": lambda rows: len(rows) == 7,
    "IF region = 'west'": lambda rows: rows == [{"[applied]": "false"}] * 2,
}
#: Examples that change tables: the table's content afterwards.
IN_TABLES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "UPDATE shop.hits": ("SELECT page, n FROM shop.hits", [("/", 3), ("/about", 4)]),
    "INSERT INTO shop.orders": (
        "SELECT id, placed FROM shop.orders WHERE id IN (7, 8)",
        [(7, datetime(2024, 5, 31, 10)), (8, datetime(2024, 6, 1))],
    ),
    "UPDATE shop.orders SET placed": (
        "SELECT id, placed FROM shop.orders WHERE id IN (7, 8)",
        [(7, datetime(2024, 7, 1)), (8, None)],
    ),
    "INSERT INTO shop.notes": (
        "SELECT id, note FROM shop.notes WHERE id IN (7, 8)",
        [(7, "café"), (8, None)],
    ),
    "--params old-notes.txt --values-columns": (
        "SELECT id, note FROM shop.notes WHERE id IN (900, 1001, 1002, 1003)",
        [(1001, "a, b"), (1002, None)],
    ),
    "DELETE FROM": ("SELECT id FROM shop.orders WHERE id IN (6, 7, 8, 9)", [(6,), (9,)]),
}


def fail() -> None:
    raise AssertionError


def of_line(line: str, known: dict[str, Any]) -> Any:
    """Return the value of the longest key that occurs in the line."""
    keys = sorted((key for key in known if key in line), key=len)
    return known[keys[-1]] if keys else None


#: Examples that do not exit with 0: detached, or complete with rejects.
CODES = {"--detach": 7, "--max-errors 10": 1}


@pytest.mark.parametrize(
    "line", [line for line in EXAMPLES if line not in shell_lines(OF_EVERY_JOB)]
)
def test_an_example_works_as_documented(
    fleet: Ringhaul, cassandra_session: Session, shop: str, at_work: Path, line: str
) -> None:
    detached = "--detach" in line
    done = run_line(fleet, shop, line)
    assert done.code == (of_line(line, CODES) or 0), done
    in_table = of_line(line, IN_TABLES)
    if detached:
        wait_until(lambda: fleet.run("status", done.out.strip()).code == 0, "the detached unload")
        assert fleet.run("resume", done.out.strip()).code == 0
        assert listed(at_work / "later")[0] == ROWS
    elif in_table is not None:
        query, expected = in_table
        found = read_query(cassandra_session, query.replace("shop.", f"{shop}."))
        assert found == expected
        if "DELETE" in line:  # later examples need the rows that it deleted
            restored = [(n, REGIONS[n % 2], n) for n in (7, 8)]
            insert = cassandra_session.prepare(
                f"INSERT INTO {shop}.orders (id, region, total, placed) "
                "VALUES (?, ?, ?, '2024-06-01')"
            )
            execute_concurrent_with_args(cassandra_session, insert, restored)
    elif (check := of_line(line, IN_FILES)) is not None:
        check(at_work)
    else:
        is_json = done.out.startswith("{")
        rows = [json.loads(row) for row in done.out.splitlines()] if is_json else csv_rows(done.out)
        assert of_line(line, ON_STDOUT)(rows), done


def read_query(session: Session, query: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in session.execute(query))


@pytest.mark.parametrize("line", [line for line in EXAMPLES if "--consistency ONE" in line])
def test_the_example_s_consistency_is_applied(
    fleet: Ringhaul, shop: str, at_work: Path, line: str
) -> None:
    # Given an example with a level that one replica cannot meet
    done = run_line(fleet, shop, line.replace("--consistency ONE", "--consistency TWO"))
    assert done.code == 2 and "TWO" in done.err, done


def test_the_example_s_reject_limit_is_applied(fleet: Ringhaul, shop: str, at_work: Path) -> None:
    # Given the example, in which three rows fail, and a limit of two
    (line,) = (line for line in EXAMPLES if "--max-errors" in line)
    done = run_line(fleet, shop, line.replace("--max-errors 10", "--max-errors 2"))
    assert done.code == 3, done


def test_each_option_is_in_an_example() -> None:
    """An option of every job has an example with at least one command; any other option has one
    with each command that takes it."""
    used: dict[str, set[str]] = {name: set() for name in READS}
    for line in EXAMPLES:
        for name, *arguments in ringhaul_calls(line):
            context = COMMANDS[name].make_context(name, arguments)
            used[name] |= {
                given
                for given in (param.name or "" for param in COMMANDS[name].params)
                if context.get_parameter_source(given) is ParameterSource.COMMANDLINE
            }
    tables = [line.split("|")[1] for line in OF_EVERY_JOB.splitlines() if line.startswith("|")]
    shared = documented("\n".join(tables))
    used_by_one = set().union(*used.values())
    missing = {
        (name, option.opts[-1])
        for name in READS
        for option in options(COMMANDS[name])
        if option.name not in (used_by_one if shared & set(option.opts) else used[name])
    }
    assert missing == set()
