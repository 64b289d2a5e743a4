"""`ringhaul tune` on a real cluster: it keeps its budget, cleans up, and writes what it found."""

from __future__ import annotations

import signal
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from cassandra.cluster import Session

from producer.local.valkey import EmbeddedValkey
from producer.tune.scratch_table import PREFIX
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.oracle import assert_table, create_table

ROWS = 30_000
#: From the start of Python to its end; the budget counts from the start of the process.
EXIT_S = 5.0
SETTINGS = """\
# ours
[load]  # how files are split
max_errors = "5"  # strict
strategy = "single"

[worker]
lease_s = 30.0
"""
#: A transform that never ends: no worker can stop between two blocks.
HANGS = """\
import time


def hang(rows):
    time.sleep(600)
    return rows
"""


@pytest.fixture
def orders(cassandra_session: Session, keyspace: str) -> str:
    """An empty table with an index."""
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, region text", "orders")
    cassandra_session.execute(f"CREATE INDEX ON {table} (region)")
    return table


@pytest.fixture
def timed(embedded: Ringhaul) -> Ringhaul:
    """`ringhaul` with embedded workers, started as a user does: no time goes into a process to fork
    it from."""
    return Ringhaul(embedded.env, embedded.cwd, fresh=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file with the orders."""
    path = tmp_path / "orders.csv"
    lines = (f"{n},r{n % 7}\n" for n in range(ROWS))
    path.write_text("id,region\n" + "".join(lines))
    return path


@pytest.fixture
def ledger(fleet_broker: EmbeddedValkey) -> Iterator[redis.Redis]:
    """The broker of the fleet."""
    with redis.Redis.from_url(fleet_broker.url) as client:
        yield client


def scratch_tables(session: Session, table: str) -> list[str]:
    """Return the scratch tables in the keyspace of a table."""
    rows = session.execute(
        "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s",
        [table.partition(".")[0]],
    )
    return [row.table_name for row in rows if row.table_name.startswith(PREFIX)]


def test_it_tries_settings_on_a_scratch_table_and_writes_the_best(
    timed: Ringhaul, cassandra_session: Session, orders: str, file: Path
) -> None:
    """
    Given an empty table and a ringhaul.toml with comments and other settings
    When its load is tuned
    Then the command ends within its budget, and says what limits
    And the file has what was compared, with the evidence, and what was in it before
    And neither a row, a scratch table nor a job is left
    """
    (timed.cwd / "ringhaul.toml").write_text(SETTINGS)
    began_s = time.monotonic()
    done = timed.run("tune", file, "-t", orders, "--budget", "60s", "-c", 1, "--json")
    assert done.code == 0, done.err
    assert time.monotonic() - began_s < 60 + EXIT_S
    (found,) = done.messages("tune")
    assert found["limit"] in ("server", "network", "client CPU", "source")
    assert found["before"]["load.strategy"] == "single"
    assert found["compared"]
    chosen = {line["setting"] for line in found["trials"] if line["chosen"]}
    assert chosen == set(found["compared"])
    assert all(line["rows_per_s"] > 0 for line in found["trials"] if line["chosen"])
    written = (timed.cwd / "ringhaul.toml").read_text()
    assert written.startswith("# ours\n[load]  # how files are split\n# tune: by `ringhaul tune`")
    assert 'max_errors = "5"  # strict\n' in written and "lease_s = 30.0\n" in written
    settings = tomllib.loads(written)
    for key in found["compared"]:
        section, _, name = key.partition(".")
        assert settings[section][name] == found["best"][key]
    assert timed.run("config", "show").code == 0
    assert_table(cassandra_session, orders, "id, region", [])
    assert scratch_tables(cassandra_session, orders) == []
    assert timed.run("status", "--json").out.strip() in ("", "[]")


def test_a_trial_that_hangs_is_cut_off_within_the_budget(
    timed: Ringhaul, cassandra_session: Session, orders: str, file: Path, tmp_path: Path
) -> None:
    """
    Given a transform that never returns
    When its load is tuned
    Then the command ends within its budget, says what to do, and leaves nothing behind
    """
    (tmp_path / "slow.py").write_text(HANGS)
    began_s = time.monotonic()
    done = timed.run(
        *("tune", file, "-t", orders, "--budget", "20s", "-c", 1, "--transform", "slow:hang"),
        RINGHAUL_TRANSFORM_ALLOWED="slow:*",
        RINGHAUL_TRANSFORM_PATH=str(tmp_path),
    )
    assert time.monotonic() - began_s < 20 + EXIT_S
    assert done.code == 2, done.err
    assert "give more with --budget" in done.err
    assert not (timed.cwd / "ringhaul.toml").exists()
    assert scratch_tables(cassandra_session, orders) == []
    assert timed.run("status", "--json").out.strip() in ("", "[]")


def test_ctrl_c_drops_the_scratch_table(
    embedded: Ringhaul, cassandra_session: Session, orders: str, file: Path
) -> None:
    with embedded.started("tune", file, "-t", orders, "--budget", "2m", "-c", 1) as tune:
        wait_until(lambda: scratch_tables(cassandra_session, orders), "the scratch table")
        tune.send_signal(signal.SIGINT)
        tune.communicate(timeout=60)
    assert tune.returncode == 130
    assert scratch_tables(cassandra_session, orders) == []
    assert not (embedded.cwd / "ringhaul.toml").exists()


def test_in_place_needs_an_empty_table_or_leave_to_overwrite(
    fleet: Ringhaul, cassandra_session: Session, orders: str, file: Path, ledger: redis.Redis
) -> None:
    """
    Given a table with a row, a file whose first line names its delimiter, and running workers
    When its load is tuned in place
    Then that is refused; with --overwrite the sample is loaded, and its rows are as in the file
    And the workers' number is not tuned, and no trial is left in the ledger
    """
    cassandra_session.execute(f"INSERT INTO {orders} (id, region) VALUES (-1, 'ours')")
    file.write_text("sep=;\n" + file.read_text().replace(",", ";"))
    words = ("tune", file, "-t", orders, "--header-at", "auto", "--in-place")
    refused = fleet.run(*words, "--budget", "20s")
    assert refused.code == 2
    assert "has rows" in refused.err and "--overwrite" in refused.err
    before = set(ledger.keys("ringhaul:{*"))
    done = fleet.run(*words, "--overwrite", "--budget", "40s", "--no-write")
    assert done.code == 0, done.err
    assert "not tried worker processes" in done.out
    assert all(len(line) < 80 for line in done.out.splitlines()), done.out
    assert "worker.concurrency" not in done.err and "[load]" in done.err
    rows = [(n, f"r{n % 7}") for n in range(ROWS)]
    found = cassandra_session.execute(f"SELECT count(*) FROM {orders}").one()[0]
    assert found > 1
    loaded = {(row.id, row.region) for row in cassandra_session.execute(f"SELECT * FROM {orders}")}
    assert (-1, "ours") in loaded
    assert loaded - {(-1, "ours")} <= set(rows)
    assert set(ledger.keys("ringhaul:{*")) <= before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--in-place"], "tags is a list that is not frozen"),
        (["--overwrite"], "--overwrite needs --in-place"),
        (["--write", "a.toml", "--no-write"], "give one of them"),
        (["--budget", "5s"], "give at least 20s"),
        (["--budget", "soon"], 'expected a time such as "90s"'),
        (["--write", "no/such/folder/a.toml"], "cannot be written"),
        (["--write", "inline.toml"], 'strategy = "pipeline"'),
        (["--write", "latin.toml"], "cannot be read"),
    ],
)
def test_what_cannot_be_tuned_is_refused_before_anything_is_created(
    fleet: Ringhaul, cassandra_session: Session, keyspace: str, words: list[str], message: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, tags list<int>")
    (fleet.cwd / "rows.csv").write_text("id,tags\n1,[1]\n")
    (fleet.cwd / "inline.toml").write_text('load = { strategy = "single" }\n')
    (fleet.cwd / "latin.toml").write_bytes(b"# caf\xe9\n")
    done = fleet.run("tune", "rows.csv", "-t", table, *words)
    assert done.code == 2 and message in " ".join(done.err.split()), done
    assert_table(cassandra_session, table, "id, tags", [])
    assert scratch_tables(cassandra_session, table) == []


def test_standard_input_is_refused(fleet: Ringhaul, orders: str) -> None:
    done = fleet.run("tune", "-", "-t", orders, stdin=b"id,region\n1,a\n")
    assert done.code == 2 and "give files, not -" in done.err, done
