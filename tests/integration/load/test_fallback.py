"""A server that refuses the data plane's protocol: loads fall back to the driver, with a warning;
commands without a fallback fail at once, with the reason."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.load.run import run_load_unit
from ringhaul.load.statement import insert_statement
from ringhaul.load.write import RequestBounds
from ringhaul.records.account import UnitHooks
from ringhaul.records.unit import LoadUnit
from tests.acceptance.command import Ringhaul
from tests.acceptance.conftest import cluster_env
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.integration.load.conftest import (
    REQUEST_TIMEOUT_S,
    Ticks,
    cluster_config,
    connected_target,
    make_table,
    read_table,
)
from tests.loads import load_job, load_source
from tests.servers import SharedNode
from tests.services import fresh_keyspace
from tests.sstable_tools import opened

ROWS = 2000


@pytest.fixture(scope="module")
def newest_only(
    strict_node: SharedNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Endpoints]:
    """A node that accepts protocol v5 and refuses v4 meanwhile."""
    with opened(strict_node, tmp_path_factory.mktemp("tools")) as node:
        node.nodetool("disableoldprotocolversions")
        try:
            yield node.endpoints
        finally:
            node.nodetool("enableoldprotocolversions")


@pytest.fixture(scope="module")
def newest_session(newest_only: Endpoints) -> Iterator[Session]:
    session = open_session(cluster_config(newest_only))
    yield session
    assert close_session(session, 20)


def test_units_are_written_through_the_driver_with_one_warning(
    newest_session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # Given a file in three units and one process that runs them all
    path = tmp_path / "in.csv"
    path.write_text("".join(f"{i:06d},v{i:06d}\n" for i in range(ROWS * 3)))
    length_bytes = path.stat().st_size // 3
    with fresh_keyspace(newest_session) as keyspace:
        table = make_table(newest_session, keyspace, "id int PRIMARY KEY, v text")
        source = load_source(["id", "v"], path=str(path), size_bytes=path.stat().st_size)
        job = load_job(table, source, consistency="ONE", strategy="pipeline", base_us=10**15)
        prepared = newest_session.prepare(insert_statement(table, ["id", "v"], job.ttl_s))
        with (
            caplog.at_level(logging.WARNING, logger="ringhaul"),
            connected_target(newest_session, prepared, keyspace) as target,
        ):
            for unit in range(3):
                ticks = Ticks()
                first = unit * ROWS
                outcome = run_load_unit(
                    LoadUnit(0, unit * length_bytes, length_bytes, first, first + 1, ROWS),
                    job,
                    target,
                    RequestBounds(request_timeout_s=REQUEST_TIMEOUT_S),
                    UnitHooks(tick=ticks),
                )
                # Then each unit is written completely, and its progress only grew
                assert (outcome.records, outcome.written, outcome.rejected) == (ROWS, ROWS, 0)
                assert ticks.seen == sorted(ticks.seen)
        # And every row is in the table, with the time of its place in the file
        assert read_table(newest_session, keyspace, "id, v, writetime(v)") == sorted(
            ((i, f"v{i:06d}", 10**15 + i) for i in range(ROWS * 3)), key=repr
        )
    # And one warning said why the pipeline was not used
    ours = [record for record in caplog.records if record.name.startswith("ringhaul.")]
    (warning,) = [record.getMessage() for record in ours]
    assert warning.startswith(
        "writing through the driver (token-batch) instead: 127.0.0.1 speaks another protocol: "
    )


def test_the_command_loads_through_the_driver(
    newest_session: Session, newest_only: Endpoints, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,v\n" + "".join(f"{i},v{i}\n" for i in range(ROWS)))
    ringhaul = Ringhaul(cluster_env(newest_only, tmp_path / "state"), tmp_path)
    with fresh_keyspace(newest_session) as keyspace:
        table = create_table(newest_session, keyspace, "id int PRIMARY KEY, v text")
        command = ("load", "rows.csv", "-t", table, "--json", "--unit-size", "8 KiB")
        summary = assert_report(ringhaul.run(*command, "--workers", 1), rows=ROWS)
        # No window of the pipeline was used
        assert summary["window_max"] == 0
        assert summary["units"] > 1
        assert_table(newest_session, table, "id, v", [(i, f"v{i}") for i in range(ROWS)])
        # And the worker's log has the reason, once
        (log,) = (tmp_path / "state" / "logs").glob("*.log")
        assert log.read_text().count("writing through the driver (token-batch) instead") == 1


@pytest.mark.parametrize("command", ["verify", "lookup", "exec"])
def test_commands_that_need_the_data_plane_fail_with_the_reason(
    newest_session: Session, newest_only: Endpoints, tmp_path: Path, command: str
) -> None:
    (tmp_path / "keys.csv").write_text("id\n1\n")
    ringhaul = Ringhaul(cluster_env(newest_only, tmp_path / "state"), tmp_path)
    with fresh_keyspace(newest_session) as keyspace:
        table = create_table(newest_session, keyspace, "id int PRIMARY KEY, v text")
        arguments = {
            "verify": ("keys.csv", "-t", table),
            "lookup": ("-t", table, "--keys", "keys.csv", "-o", "out/"),
            "exec": (f"DELETE FROM {table} WHERE id = ? IF EXISTS", "--params", "keys.csv",
                     "-o", "out/"),
        }[command]  # fmt: skip
        done = ringhaul.run(command, *arguments, "--workers", 1)
    assert done.code == 4, done
    assert f"{command} needs version 4 of the native protocol" in done.err
    assert "127.0.0.1 speaks another protocol: " in done.err
    assert "Traceback" not in done.err
