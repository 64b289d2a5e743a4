"""What `translate` makes of commands like those of both manuals is run, and every row is compared.

A case has a command of another tool as its users write it, the files that it reads and the rows
that are in the table then; or rows of a table and the lines that the command writes.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from cassandra.cluster import Session

from producer.migrate.guard import checked
from producer.translate.command import translate
from tests.acceptance.command import Finished, Ringhaul
from tests.acceptance.oracle import assert_table

PEOPLE = "id int PRIMARY KEY, name text, n int"
#: Three columns whose names say the order in which they are filled.
PLACED = "col1 int PRIMARY KEY, col2 text, col3 text"
COUNTED = "page text PRIMARY KEY, n counter"
#: A boolean, a blob and numbers in spellings that only Bulk Loader takes without options.
LOOSE = "id int PRIMARY KEY, flag boolean, n int, price decimal, data blob, list list<int>"


@dataclass(frozen=True)
class Load:
    """A command that writes rows. `KS.T` in a text is the table, `KS` its keyspace."""

    name: str
    text: str
    schema: str
    files: Mapping[str, bytes]
    columns: str
    rows: Sequence[tuple[Any, ...]]
    stdin: bytes | None = None
    check: bool = False  #: with `--check`
    code: int = 0  #: of the command that was translated


LOADS = [
    Load(
        "loose spellings, an escaped quote, a null",
        "dsbulk load -url export.csv -k KS -t T",
        LOOSE,
        {
            "export.csv": b"id,flag,n,price,data,list\n"
            b'1,TRUE,"1,234",1.50,yv4=,"1,2,3"\n2,0,7.0,,0xCAFE,"[]"\n3,N,,"12,345.5",,\n'
        },
        "id, flag, n, price, data, list",
        [
            (1, True, 1234, Decimal("1.50"), b"\xca\xfe", [1, 2, 3]),
            (2, False, 7, None, b"\xca\xfe", None),
            (3, False, None, Decimal("12345.5"), None, None),
        ],
    ),
    Load(
        "standard input",
        "dsbulk load -k KS -t T",
        PEOPLE,
        {},
        "id, name, n",
        [(1, 'a"b', 2), (2, "", None), (3, None, 4)],
        stdin=b'id,name,n\n1,"a\\"b",2\n2,"",\n3,,4\n',
    ),
    Load(
        "tabs",
        r"dsbulk load -k KS -t T -url export.csv -delim '\t'",
        PEOPLE,
        {"export.csv": b"name\tid\tn\na,b\t1\t2\n"},
        "id, name, n",
        [(1, "a,b", 2)],
    ),
    Load(
        "positions",
        "dsbulk load -url ./export.csv -k KS -t T -header false -m '0=col1,1=col3'",
        PLACED,
        {"export.csv": b"1,x,left out\n2,y,\n"},
        "col1, col2, col3",
        [(1, None, "x"), (2, None, "y")],
    ),
    Load(
        "a folder, by the order of the fields",
        "dsbulk load -url ./export-dir -k KS -t T -m 'col1, col2, col3' -header false",
        PLACED,
        {
            "export-dir/a.csv": b"1,x,y\n",
            "export-dir/deep.d/b.csv": b"9,not,read\n",
            "export-dir/c.csv": b"2,,z\n",
            "export-dir/d.txt": b"not,read,either\n",
        },
        "col1, col2, col3",
        [(1, "x", "y"), (2, None, "z")],
    ),
    Load(
        "doubled quotes",
        """dsbulk load -url export.csv -k KS -t T -escape '\\"'""",
        PEOPLE,
        {"export.csv": b'id,name,n\n1,"a ""b"" \\",2\n'},
        "id, name, n",
        [(1, 'a "b" \\', 2)],
    ),
    Load(
        "settings from a file, of which one is given otherwise",
        "dsbulk load -f load.conf -url in.csv --connector.csv.delimiter '|'",
        PEOPLE,
        {
            "load.conf": b"""# of the nightly load
                include classpath("driver.conf")
                dsbulk {
                  schema { keyspace = KS, table = "T"
                    mapping = "key = id, *=[-key,-extra]" }  // all others by name
                  connector.csv.delimiter = ";"
                  connector.csv { nullValue = "AUTO", "comment" : "#" }
                  codec.nullStrings = [
                    NIL
                    "N/A" ]
                }
                datastax-java-driver.basic.request.consistency = LOCAL_ONE
            """,
            "in.csv": b'key|name|n|extra\n# no record\n1|NIL|2|\n2|"N/A"|N/A|x\n3|""|4|\n',
        },
        "id, name, n",
        [(1, None, 2), (2, None, None), (3, "", 4)],
    ),
    Load(
        "JSON documents with texts for null",
        """dsbulk load -c json -url in.json -k KS -t T -nullStrings '["N/A", "-"]'""",
        PEOPLE,
        {
            "in.json": b'{"id": 1, "name": "N/A",\n "n": "-"}\n'
            b'{"id": 2, "name": "", "n": 3, "more": 1} {"id": 3, "n": "4"}'
        },
        "id, name, n",
        [(1, None, None), (2, "", 3), (3, None, 4)],
    ),
    Load(
        "a JSON array",
        "dsbulk load -c json --connector.json.mode SINGLE_DOCUMENT -url in.json -k KS -t T",
        PEOPLE,
        {"in.json": b'[{"id": 1, "name": {"a": 1}},\n {"id": 2, "name": "x", "n": 1.0}]'},
        "id, name, n",
        [(1, '{"a":1}', None), (2, "x", 1)],
    ),
    Load(
        "all columns but one, which another field fills",
        "dsbulk load -url in.csv -k KS -t T -m '* = *, c5 = n'",
        PEOPLE,
        {"in.csv": b"id,name,c5\n1,x,2\n"},
        "id, name, n",
        [(1, "x", 2)],
    ),
    Load(
        "a key that a function fills",
        "dsbulk load -url in.csv -k KS -t T -m 'now()=id, fieldA=name, fieldB = \"Big\"'",
        'id timeuuid PRIMARY KEY, name text, "Big" int',
        {"in.csv": b"fieldA,fieldB\nx,5\ny,\n"},
        'name, "Big"',
        [("x", 5), ("y", None)],
        check=True,
    ),
    Load(
        "the names of older versions beside a statement",
        "dsbulk load -k KS -query 'INSERT INTO T (id, name) VALUES (:id, :name) USING TTL :t1 AND "
        "TIMESTAMP :T2' -m 'id=id, name=name, at = __timestamp, left = __ttl' -url in.csv",
        PEOPLE,
        {"in.csv": b"id,name,at,left\n1,x,1000000,864000\n"},
        "id, name, writetime(name)",
        [(1, "x", 1_000_000)],
    ),
    Load(
        "a batch without a keyspace",
        "dsbulk load -k KS -url in.csv --schema.query 'BEGIN UNLOGGED BATCH INSERT INTO T (id, "
        "name) VALUES (:id, :name); UPDATE T SET n = :n WHERE id = :id; APPLY BATCH'",
        PEOPLE,
        {"in.csv": b"id,name,n\n1,x,2\n"},
        "id, name, n",
        [(1, "x", 2)],
    ),
    Load(
        "counters by a statement",
        "dsbulk load -query 'UPDATE KS.T SET n = n + :n WHERE page = :page' -url in.csv",
        COUNTED,
        {"in.csv": b"page,n\na,5\nb,7\n"},
        "page, n",
        [("a", 5), ("b", 7)],
    ),
    Load(
        "units since an epoch with a zone",
        'dsbulk load -url in.csv -k KS -t T --codec.epoch "2000-01-01T00:00:00+01:00[Europe/Paris]"'
        " --codec.unit MINUTES --codec.date UNITS_SINCE_EPOCH --codec.timestamp UNITS_SINCE_EPOCH",
        "id int PRIMARY KEY, d date, t timestamp",
        {"in.csv": b"id,d,t\n1,11520,11520\n2,-1440,0\n"},
        "id, d, t",
        [
            (1, date(2000, 1, 9), datetime(2000, 1, 8, 23)),
            (2, date(1999, 12, 31), datetime(1999, 12, 31, 23)),
        ],
    ),
    Load(
        "patterns, a locale, words and limits",
        "dsbulk load -url in.csv -k KS -t T -locale de_DE --codec.date 'd. MMMM yyyy' --codec.time "
        "HH.mm -skipRecords 1 -maxRecords 2 --codec.booleanStrings '[\"ja:nein\"]' -comment '#'",
        "id int PRIMARY KEY, d date, t time, price decimal, flag boolean",
        {
            "in.csv": b"id,d,t,price,flag\n0,skipped,,,\n"
            b'1,3. M\xc3\xa4rz 2024,08.30,"1.234,5",ja\n# no\n2,,,"0,25",nein\n3,beyond,,,\n'
        },
        "id, d, t, price, flag",
        [
            (1, date(2024, 3, 3), time(8, 30), Decimal("1234.5"), True),
            (2, None, None, Decimal("0.25"), False),
        ],
    ),
    Load(
        "COPY by the header's names",
        "COPY KS.T (id, name) FROM 'people.csv' WITH HEADER = TRUE",
        PEOPLE,
        {"people.csv": b"id,firstname\n1,Bram\n2,\n"},
        "id, name, n",
        [(1, "Bram", None), (2, None, None)],
    ),
    Load(
        "COPY by the order of the columns",
        "COPY KS.T FROM 'category.csv' WITH DELIMITER = '|' AND HEADER = TRUE",
        "category text, point int, id int, lastname text, PRIMARY KEY (category, point)",
        {"category.csv": b"category|point|id|last\nGC|1269|2003|T'LO\n"},
        "category, point, id, lastname",
        [("GC", 1269, 2003, "T'LO")],
        check=True,
    ),
    Load(
        "COPY from standard input",
        "COPY KS.T FROM STDIN",
        PEOPLE,
        {},
        "id, name, n",
        [(1, "x", 5), (2, 'q"', None)],
        stdin=b'1,5,x\n2,,"q\\""\n',
    ),
    Load(
        "COPY with its options",
        "COPY KS.T FROM 'a.csv, b.csv' WITH NULL = '-' AND DATETIMEFORMAT = '%d/%m/%Y %H:%M' AND "
        "BOOLSTYLE = 'Y,N' AND DECIMALSEP = ',' AND THOUSANDSSEP = '.' AND QUOTE = '|' AND "
        "SKIPROWS = 1 AND MAXROWS = 3 AND ESCAPE = '|' AND CHUNKSIZE = 5 AND TTL = 864000",
        "id int PRIMARY KEY, at timestamp, flag boolean, price decimal",
        {
            "a.csv": b"0,no\n1,31/01/2024 10:00,Y,|1.234,5|\n",
            "b.csv": b"2,-,N,-\n3,31/01/2024 10:00,N,-\n",
        },
        "id, at, flag, price",
        [(1, datetime(2024, 1, 31, 10), True, Decimal("1234.5")), (2, None, False, None)],
    ),
    Load(
        "COPY without a column of the file",
        "COPY KS.T FROM 'people.csv' WITH SKIPCOLS = 'n'",
        PEOPLE,
        {"people.csv": b"1,not a number,x\n"},
        "id, name, n",
        [(1, "x", None)],
        check=True,
    ),
    Load(
        "COPY deletes what a record lacks",
        "COPY KS.T FROM 'people.csv'",
        PEOPLE,
        {"people.csv": b"7,,\n"},
        "id, name, n",
        [(7, None, None)],
    ),
    Load(
        "COPY into counters",
        "COPY KS.T (page, n) FROM 'hits.csv'",
        COUNTED,
        {"hits.csv": b"a,5\nb,7\n"},
        "page, n",
        [("a", 5), ("b", 7)],
        check=True,
    ),
]


@dataclass(frozen=True)
class Read:
    """A command that reads this table, and what it prints, or writes to files in `out`."""

    name: str
    text: str
    lines: Sequence[str]
    code: int = 0
    check: bool = False
    files: Sequence[str] = field(default_factory=tuple)


HEADER = "id,n,name"
READS = [
    Read("all", "dsbulk unload -k KS -t T", [HEADER, '1,10,"a\\"b"', "2,,c", '3,30,""']),
    Read(
        "a folder",
        "dsbulk unload -url out -k KS -t T -maxConcurrentFiles 1",
        [HEADER, '1,10,"a\\"b"', "2,,c", '3,30,""'],
    ),
    Read(
        "JSON",
        "dsbulk unload -url out -k KS -t T -c json --connector.json.prettyPrint true "
        "-nullStrings N/A -maxConcurrentFiles 1",
        [
            '{"id":1,"n":10,"name":"a\\"b"}',
            '{"id":2,"n":null,"name":"c"}',
            '{"id":3,"n":30,"name":""}',
        ],
    ),
    Read(
        "a SELECT that Bulk Loader splits, with other names",
        "dsbulk unload -query 'SELECT id, n AS number, writetime(n) FROM KS.T WHERE token(id) > "
        ':"My Start" AND token(id) <= :"My End"\' -m \'key = id, "Big N" = number\' -nullStrings -',
        ["key,Big N", "1,10", "2,-", "3,30"],
    ),
    Read(
        "positions beside a SELECT, and markers without names",
        "dsbulk unload -k KS -query 'SELECT id, n FROM T WHERE token(id) > ? AND token(id) <= ?' "
        "-header false -m '1=id,0=n'",
        ["10,1", ",2", "30,3"],
    ),
    Read("a count", "dsbulk count -k KS -t T", ["count", "3"]),
    Read(
        "a count of token ranges of the user",
        'dsbulk count -query "SELECT * FROM KS.T WHERE token(id) > -9223372036854775808 AND n > 5"',
        ["count", "2"],
    ),
    Read(
        "COPY TO",
        "COPY KS.T (id, name) TO STDOUT WITH HEADER = TRUE AND NULL = 'none'",
        ["id,name", '1,"a\\"b"', "2,c", '3,""'],
        code=1,
    ),
    Read(
        "COPY TO of token ranges",
        "COPY KS.T TO STDOUT WITH BEGINTOKEN = '-9223372036854775807' AND ENDTOKEN = '0' AND "
        "ENCODING = 'utf8'",
        ['1,10,"a\\"b"', "2,,c"],
        check=True,
    ),
]


def ids(cases: Sequence[Load | Read]) -> list[str]:
    return [case.name for case in cases]


def translated(fleet: Ringhaul, case: Load | Read, table: str) -> tuple[str, ...]:
    """Return the words of the command that a case is translated to."""
    text = in_table(case.text, table)
    if case.check:
        done = fleet.run("translate", "--check", "--json", text)
        assert done.code == case.code, done
        return tuple(json.loads(done.out)["command"][1:])
    (found,) = translate(text, lambda name: (fleet.cwd / name).read_text())
    assert checked(found).complete, checked(found).notes
    return found.words


def in_table(text: str, table: str) -> str:
    """Return a text with the table's names."""
    keyspace, name = table.split(".")
    return re.sub(r"\bKS\b", keyspace, re.sub(r"\bT\b", name, text))


def run(fleet: Ringhaul, words: Sequence[str], stdin: bytes | None = None) -> Finished:
    done = fleet.run(*words, "-q", stdin=stdin)
    assert done.code == 0, (words, done)
    return done


@pytest.mark.parametrize("case", LOADS, ids=ids(LOADS))
def test_a_load_writes_the_rows(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, case: Load
) -> None:
    table = f"{module_keyspace}.load_{LOADS.index(case)}"
    cassandra_session.execute(f"CREATE TABLE {table} ({case.schema})")
    if case.name == "COPY deletes what a record lacks":
        cassandra_session.execute(f"INSERT INTO {table} (id, name, n) VALUES (7, 'old', 7)")
    for name, data in case.files.items():
        path = fleet.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(in_table(data.decode(), table).encode() if "conf" in name else data)
    words = translated(fleet, case, table)
    run(fleet, words, case.stdin)
    assert_table(cassandra_session, table, case.columns, case.rows)


@pytest.fixture(scope="module")
def people(cassandra_session: Session, module_keyspace: str) -> str:
    table = f"{module_keyspace}.people"
    cassandra_session.execute(f"CREATE TABLE {table} ({PEOPLE})")
    for row in ((1, 'a"b', 10), (2, "c", None), (3, "", 30)):
        cassandra_session.execute(f"INSERT INTO {table} (id, name, n) VALUES (%s, %s, %s)", row)
    return table


@pytest.mark.parametrize("case", READS, ids=ids(READS))
def test_a_read_has_the_lines(fleet: Ringhaul, people: str, case: Read) -> None:
    done = run(fleet, translated(fleet, case, people))
    written = [path for path in fleet.cwd.glob("out/*") if not path.name.endswith("manifest.json")]
    text = "".join(path.read_text() for path in written) if written else done.out
    first, rest = case.lines[:1], sorted(case.lines[1:])
    found = text.splitlines()
    if case.lines[0] in found[:1]:  # a header stays first
        assert (found[:1], sorted(found[1:])) == (first, rest)
    else:
        assert sorted(found) == sorted(case.lines)


def test_what_was_unloaded_is_loaded(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str, people: str
) -> None:
    """The way back of a folder of JSON."""
    again = f"{module_keyspace}.again"
    cassandra_session.execute(f"CREATE TABLE {again} ({PEOPLE})")
    for operation, name in (("unload", "people"), ("load", "again")):
        (found,) = translate(
            f"dsbulk {operation} -c json -url moved -k {module_keyspace} -t {name}"
        )
        run(fleet, checked(found).words)
    rows = [(1, 'a"b', 10), (2, "c", None), (3, "", 30)]
    assert_table(cassandra_session, again, "id, name, n", rows)


def test_compressed_input_of_a_pipe(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    table = f"{module_keyspace}.piped"
    cassandra_session.execute(f"CREATE TABLE {table} ({PEOPLE})")
    (fleet.cwd / "in.csv.gz").write_bytes(gzip.compress(b"id,name,n\n1,x,2\n"))
    (found,) = translate(
        f"dsbulk load -k {module_keyspace} -t piped -url in.csv.gz --connector.csv.compression gzip"
    )
    run(fleet, checked(found).words)
    assert_table(cassandra_session, table, "id, name, n", [(1, "x", 2)])


#: Commands, and with the schema at hand: whether rows are the same, and words of the command or of
#: its notes.
CHECKED = [
    ("COPY KS.checked TO 'x.csv'", False, "may differ"),
    ("COPY KS.checked (id, name) TO 'x.csv'", True, "--columns id,name"),
    ("COPY KS.checked (id, nmae) FROM 'x.csv'", False, "did you mean 'name'?"),
    ("COPY KS.checked (id, name) FROM 'x.csv' WITH THOUSANDSSEP = '_'", True, "--thousands-sep _"),
    ("COPY KS.checked FROM 'x.csv' WITH HEADER = true", True, "--columns id,Big,name,tags"),
    ("dsbulk load -k KS -t checked -url x.csv", True, "load x.csv"),
    # A file that is here: a field of its header has no column
    ("dsbulk load -k KS -t checked -url here.csv", False, "extra"),
    ("dsbulk load -k KS -t checked -url here.csv -m 'id=id, name=name'", True, "load here.csv"),
    (
        "dsbulk load -k KS -t hits -url x.csv -nullStrings '-'",
        True,
        "exec UPDATE KS.hits SET n = n + :n WHERE page = :page",
    ),
    ("dsbulk load -k KS -t hits -url 'in/*.csv'", False, "exec reads one file"),
    ("dsbulk load -k KS -t cheked -url x.csv", False, "did you mean 'checked'?"),
    ("dsbulk count -k KS -t cheked", False, "did you mean 'checked'?"),
    ("dsbulk unload -query 'SELECT idd FROM KS.checked' -url out", False, "no column 'idd'"),
    ("dsbulk load -query 'UPDATE KS.checked SET x = ? WHERE id = ?' -url x.csv", False, "x"),
]


def test_the_schema_settles_what_it_can(
    fleet: Ringhaul, cassandra_session: Session, module_keyspace: str
) -> None:
    cassandra_session.execute(
        f"CREATE TABLE {module_keyspace}.checked (id int PRIMARY KEY, name text, tags set<text>, "
        '"Big" int)'
    )
    cassandra_session.execute(f"CREATE TABLE {module_keyspace}.hits ({COUNTED})")
    (fleet.cwd / "here.csv").write_text("id,name,extra\n1,x,y\n")
    script = "".join(f"{text};\n" if "COPY" in text else f"{text}\n" for text, _, _ in CHECKED)
    done = fleet.run(
        "translate",
        "--check",
        "--json",
        "-",
        stdin=in_table(script, f"{module_keyspace}.x").encode(),
    )
    assert done.code == 1, done
    documents = [json.loads(line) for line in done.out.splitlines()]
    assert len(documents) == len(CHECKED)
    for document, (text, exact, words) in zip(documents, CHECKED, strict=True):
        assert document["exact"] is exact, (text, document)
        notes = " ".join(
            f"{note['kind'].replace('_', ' ')} {note['text']}" for note in document["notes"]
        )
        said = f"{' '.join(document['command'])} {notes}".replace("differs", "may differ")
        assert words.replace("KS", module_keyspace) in said, (text, document)
