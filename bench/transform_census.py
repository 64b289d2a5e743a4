"""Claim: a wide record becomes 200 rows at far more than 100,000 of these a second on one core.

The shape of the fourth article: census records of many counts each, every one of which becomes a
row with its field's entry in a dictionary. The article reaches 5,000 to 22,000 rows a second in
total. This measures the client's work (reading, the transform, converting, EXECUTE frames) without
a server, with the packaged function by column, and with one by row, as one would write it first.
Then it loads into a real table.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cassandra import ConsistencyLevel

from bench.command import run_command
from bench.data import Table, data_file
from bench.harness import claim, machine
from bench.stage import KEYSPACE, stage
from bench.tools import summary_of
from config.sections import cache_dir_default
from ringhaul.cluster.schema import ColumnSchema, TableSchema
from ringhaul.cql.frames import execute_frames
from ringhaul.cql.text_format import TextFormat
from ringhaul.cql.tokens import murmur3_tokens
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Position
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.records.reading import read_records
from ringhaul.records.rows import RowEncoder
from ringhaul.records.unit import TO_THE_END
from ringhaul.sources.source import SourceFile
from ringhaul.transform import each_row
from ringhaul.transform.chain import Transform
from ringhaul.transform.examples import split_wide

FIELDS = tuple(f"p{number:03}" for number in range(1, 201))
RECORDS = 5_000
ROUNDS = 5
ROWS_S_MIN = 100_000
COLUMNS = {"logrecno": "int", "item": "text", "matrix": "text", "value": "bigint"}
KEY = "PRIMARY KEY (logrecno, item)"


def _lines(records: int, source: random.Random) -> Iterator[str]:
    for record in range(records):
        yield f"{record},{','.join(str(source.randrange(20_000)) for _ in FIELDS)}\n"


#: The file; its table has the rows after the transform.
CENSUS = Table(
    "census",
    ("logrecno", *FIELDS),
    ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items()) + f", {KEY}",
    _lines,
)


class Work(NamedTuple):
    """The cost of one pass over the file."""

    rows: int
    cpu_s: float


def dictionary_file(folder: Path) -> Path:
    """Write the dictionary of the fields."""
    path = folder / "dictionary.csv"
    lines = [f"{field},P{number // 20:03}\n" for number, field in enumerate(FIELDS)]
    path.write_text("item,matrix\n" + "".join(lines))
    return path


def by_column(dictionary: Path) -> Any:
    """Return the packaged function."""
    return split_wide(["logrecno"], dictionary=str(dictionary))


def by_row(dictionary: Path) -> Any:
    """Return an equal function that works row by row."""
    lines = dictionary.read_text().splitlines()[1:]
    matrices = dict(line.split(",") for line in lines)

    @each_row
    def split(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for item, matrix in matrices.items():
            yield {
                "logrecno": row["logrecno"],
                "item": item,
                "matrix": matrix,
                "value": row[item],
            }

    return split


def client_work(path: Path, function: Any) -> Work:
    """Read, transform, convert and encode all of the file on this thread."""
    job, source = _job(path)
    encoder = RowEncoder(job, source, (Transform("bench:split", function),))
    rows_count, cpu_started = 0, time.process_time()
    for block in read_records(source, job, _start(path), TO_THE_END, job.block_bytes):
        for part in encoder.parts(block):
            assert not part.rejects
            for rows in part.rows:
                # The writer's work before it sends.
                murmur3_tokens(rows.keys)
                execute_frames(rows.joined(), b"0123456789abcdef", ConsistencyLevel.LOCAL_QUORUM, 5)
                rows_count += len(rows)
    return Work(rows_count, time.process_time() - cpu_started)


def _job(path: Path) -> tuple[LoadJob, LoadSource]:
    source = LoadSource(
        file=SourceFile(str(path), path.stat().st_size, False),
        fields=CENSUS.columns,
        mapping=tuple((name, name) for name in COLUMNS),
        results=tuple(COLUMNS),
    )
    job = LoadJob(
        table=TableSchema(
            keyspace=KEYSPACE,
            table=CENSUS.name,
            columns=tuple(ColumnSchema(name=n, cql_type=kind) for n, kind in COLUMNS.items()),
            partition_key=("logrecno",),
            clustering_key=("item",),
        ),
        cluster_name="",
        sources=(source,),
        dialect=CsvDialect(),
        text=TextFormat(),
        base_us=1_700_000_000_000_000,
        unit_bytes=1 << 30,
        transforms=("bench:split",),
    )
    return job, source


def _start(path: Path) -> Position:
    with path.open("rb") as file:
        return Position(len(file.readline()), 0, 2)


def run(records: int, rounds: int, *, load: bool = True) -> None:
    """Run the bench and print rows a second of both functions, by CPU time."""
    path = data_file(cache_dir_default() / "bench", CENSUS, rows=records)
    print(f"\n{records:,} records of {len(FIELDS)} fields, median of {rounds}\n{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="ringhaul-bench-") as folder:
        dictionary = dictionary_file(Path(folder))
        rates = {
            name: _rate(path, make(dictionary), records, rounds)
            for name, make in (("by column", by_column), ("by row", by_row))
        }
        if load:
            _load(path, Path(folder), records)
    print("\nclaims")
    print(claim("rows a second of one core's CPU", rates["by column"], at_least=ROWS_S_MIN))


def _rate(path: Path, function: Any, records: int, rounds: int) -> float:
    found = [client_work(path, function) for _ in range(rounds)]
    if {work.rows for work in found} != {records * len(FIELDS)}:
        raise SystemExit(f"{found[0].rows:,} rows came of {records:,} records")
    rates = [work.rows / work.cpu_s for work in found]
    rate = statistics.median(rates)
    name = getattr(function, "__name__", "")
    how = "by column, split_wide" if name == "run" else "by row, @each_row"
    spread = (max(rates) - min(rates)) / rate
    print(f"  {how:<24} {rate:>10,.0f} rows/s  {1e6 / rate:>6.2f} us/row  spread {spread:.0%}")
    return rate


def _load(path: Path, folder: Path, records: int) -> None:
    """Load the file into a table, with a worker process for each core."""
    module = "from ringhaul.transform.examples import split_wide\n\n"
    module += f"split = split_wide(['logrecno'], dictionary={str(folder / 'dictionary.csv')!r})\n"
    (folder / "census_bench.py").write_text(module)
    with stage() as running:
        running.create(CENSUS)
        env = running.env_embedded | {
            "RINGHAUL_TRANSFORM_ALLOWED": "census_bench:split",
            "RINGHAUL_TRANSFORM_PATH": str(folder),
        }
        command = [
            *(sys.executable, "-P", "-m", "ringhaul", "load", str(path)),
            *("-t", f"{KEYSPACE}.{CENSUS.name}", "--transform", "census_bench:split"),
            *("--json", "--progress", "none"),
        ]
        summary = summary_of(run_command(command, env).out)
        found = running.count(CENSUS)
    if summary["state"] != "COMPLETE" or found != records * len(FIELDS):
        raise SystemExit(f"the load ended {summary['state']} with {found:,} rows in the table")
    print(
        f"  {'load into a table':<24} {summary['rows_per_s']:>10,.0f} rows/s  "
        f"{summary['cpu_us_per_row']:>6.2f} us/row of the workers"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transform_census", description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help=f"default {RECORDS:,}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default {ROUNDS}")
    parser.add_argument("--no-load", action="store_true", help="only what needs no server")
    options = parser.parse_args()
    run(options.records, options.rounds, load=not options.no_load)


if __name__ == "__main__":
    main()
