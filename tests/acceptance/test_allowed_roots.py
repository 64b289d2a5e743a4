"""A worker opens only paths that its own settings allow, whatever paths a job names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul, wait_until
from tests.acceptance.conftest import fleet_settings
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import assert_table, create_table
from tests.acceptance.running import running_worker
from tests.services import running_valkey

ROWS = [(number, f"a{number}") for number in range(100)]


@pytest.fixture
def hold(tmp_path: Path) -> Hold:
    """The switch that holds units of `limited`."""
    return Hold(tmp_path / "held")


@pytest.fixture
def limited(endpoints: Endpoints, hold: Hold, tmp_path: Path) -> Iterator[Ringhaul]:
    """A command without limits in front of a worker that may open only `ok`."""
    for name in ("ok", "other"):
        (tmp_path / name).mkdir()
        text = "id,a\n" + "".join(f"{id},{a}\n" for id, a in ROWS)
        (tmp_path / name / "in.csv").write_text(text)
    (tmp_path / "ok" / "link.csv").symlink_to(tmp_path / "other" / "in.csv")
    with running_valkey() as valkey:
        command = Ringhaul(fleet_settings(endpoints, tmp_path / "state", valkey.url), tmp_path)
        worker = Ringhaul(
            command.env | {"RINGHAUL_STORAGE_ALLOWED_ROOTS": str(tmp_path / "ok")} | hold.env,
            tmp_path,
        )
        with running_worker(worker, slots=1):
            yield command


def test_jobs_stay_within_the_roots(
    limited: Ringhaul, cassandra_session: Session, keyspace: str
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    # A path outside, by name or through a link, is refused before the job exists ...
    for name in ("other/in.csv", "ok/link.csv"):
        done = limited.run("load", name, "-t", table)
        assert done.code == 2, done
        assert "storage.allowed_roots" in done.err
    done = limited.run("unload", "-t", table, "-o", "other/out")
    assert done.code == 2, done
    assert "storage.allowed_roots" in done.err
    assert_table(cassandra_session, table, "id, a", [])
    # ... and a path inside works, as do spooled streams.
    assert limited.run("load", "ok/in.csv", "-t", table).code == 0
    assert_table(cassandra_session, table, "id, a", ROWS)
    assert limited.run("unload", "-t", table, "-o", "ok/out").code == 0
    assert limited.run("load", "-", "-t", table, stdin=b"id,a\n7,seven\n").code == 0
    assert_table(
        cassandra_session, table, "id, a", [(i, "seven" if i == 7 else a) for i, a in ROWS]
    )


def test_a_file_replaced_by_a_link_outside_fails_the_job(
    limited: Ringhaul, hold: Hold, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    """The worker checks the roots itself, also for what changes after the command's check."""
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, a text")
    text = "id,a\n" + "x" * 10 + "".join(f"{i},SENTINEL\n" for i in range(1000))
    source = tmp_path / "ok" / "later.csv"
    source.write_text(text)
    secret = tmp_path / "other" / "later.csv"
    secret.write_text(text)
    hold.from_unit(0)
    with limited.started(
        "load", source, "-t", table, "--job-id", "ld-later", "--unit-size", "4K"
    ) as load:
        wait_until(lambda: limited.run("status", "ld-later").code in (0, 7), "the job")
        link = tmp_path / "ok" / "link"
        link.symlink_to(secret)
        link.rename(source)  # at once: the path always leads to a file
        hold.release()
        load.wait(60)
        assert load.returncode in (2, 4)
    done = limited.run("status", "ld-later")
    assert "storage.allowed_roots" in done.err + done.out, done
