"""The demo: what a newcomer wants to see first, in one command.

It starts a local stack, generates sensor readings, loads them with the `ringhaul load` that any
file would get, reads the table back, and compares it with the file value by value.
"""

from __future__ import annotations

import csv
import os
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from cassandra.cluster import Session

from config.sections import state_dir_default
from config.settings import load_settings
from producer.commands.load import load_command
from producer.commands.local import up as start_local_stack
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL
from ringhaul.new_file import replace_file
from tasks.cluster_settings import cluster_config

KEYSPACE = "ringhaul_demo"
TABLE = "readings"
SEED = 20260101
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {KEYSPACE}.{TABLE} (
  sensor text, taken timestamp, seq bigint, temperature double, humidity double, note text,
  PRIMARY KEY (sensor, taken))
"""


def run_demo(rows: int, workers: int) -> int:
    """Run the demo; return 0 if the table equals the file."""
    _only_local()
    start_local_stack.main([], standalone_mode=False)
    settings = load_settings().settings
    sample = settings.cache_dir / "demo" / f"readings-{rows}.csv"
    if not sample.exists():
        _say(f"writing a sample of {rows:,} readings to {sample}")
        write_sample(sample, rows)
    session = open_session(cluster_config(settings))
    try:
        session.execute(
            f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = "
            "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute(SCHEMA)
        session.execute(f"TRUNCATE {KEYSPACE}.{TABLE}")
        _say("")
        _say(f"$ ringhaul load {sample} -k {KEYSPACE} -t {TABLE} -c {workers}")
        code = _load(sample, workers)
        if code != EXIT_COMPLETE:
            return code
        return _verify(session, sample)
    finally:
        close_session(session)


def _only_local() -> None:
    """Forget every configured cluster and broker: the demo empties its table, so it must only ever
    use its own Cassandra."""
    for name in [name for name in os.environ if name.startswith("RINGHAUL_")]:
        if name not in ("RINGHAUL_STATE_DIR", "RINGHAUL_CACHE_DIR"):
            del os.environ[name]
    empty = Path(os.environ.get("RINGHAUL_STATE_DIR") or state_dir_default()) / "demo.toml"
    empty.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    empty.write_text("# the demo runs with the defaults\n")
    os.environ["RINGHAUL_CONFIG"] = str(empty)


def write_sample(path: Path, rows: int) -> None:
    """Write readings with every difficulty that a CSV file may have: quotes, line ends in values,
    nulls."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(SEED)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with replace_file(path) as out:
        file = TextIOWrapper(out, newline="", encoding="utf-8")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["sensor", "taken", "seq", "temperature", "humidity", "note"])
        for seq in range(rows):
            taken = start + timedelta(milliseconds=250 * seq)
            note = ""
            if seq % 1000 == 7:
                note = f'calibrated, "{draw.randint(1, 9)}° off"\nby hand'
            writer.writerow(
                [
                    f"sensor-{draw.randrange(rows // 50 + 1):05}",
                    taken.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                    seq,
                    repr(round(draw.gauss(18, 9), 3)),
                    repr(round(draw.random() * 100, 2)) if seq % 13 else "",
                    note,
                ]
            )
        file.detach()  # flushes; the file itself is closed by `replace_file`


def _load(sample: Path, workers: int) -> int:
    """Load the sample with the command line that was shown."""
    code: int = load_command.main(
        [str(sample), "-k", KEYSPACE, "-t", TABLE, "-c", str(workers)], standalone_mode=False
    )
    return code


def _verify(session: Session, sample: Path) -> int:
    """Read the table back and compare every value with the file."""
    _say("")
    _say("reading the table back and comparing every value with the file ...")
    expected = {row[:2]: row[2:] for row in _sample_rows(sample)}
    total, wrong = len(expected), 0
    rows = session.execute(
        f"SELECT sensor, taken, seq, temperature, humidity, note FROM {KEYSPACE}.{TABLE}",
        timeout=60,
    )
    for row in rows:
        if expected.pop((row.sensor, _ms(row.taken)), None) != tuple(row[2:]):
            wrong += 1
    if wrong or expected:
        _say(f"NOT equal: {wrong:,} rows differ, {len(expected):,} are missing")
        return EXIT_FATAL
    _say(f"verified: all {total:,} rows of {KEYSPACE}.{TABLE} equal the file")
    _say("the stack stays up; stop it with `ringhaul local down`")
    return EXIT_COMPLETE


def _sample_rows(sample: Path) -> Iterator[tuple[Any, ...]]:
    """Yield the rows as the driver returns them, read with Python's own csv module."""
    with sample.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        next(reader)
        for sensor, taken, seq, temperature, humidity, note in reader:
            yield (
                sensor,
                _ms(datetime.fromisoformat(taken)),
                int(seq),
                float(temperature),
                float(humidity) if humidity else None,
                note or None,
            )


def _ms(moment: datetime) -> int:
    """Return milliseconds since the epoch, exactly; the driver's datetimes have no time zone."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
