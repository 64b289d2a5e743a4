"""Requests and answers compressed by LZ4: the same rows, fewer bytes on the network."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from cassandra.cluster import Session

from producer.local.stack import Endpoints
from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import assert_report, assert_table, create_table
from tests.proxy import Proxy, proxied
from tests.refusals import assert_refused

ROWS = [
    (i, f"customer {i % 100} of the northern region, order line number {i}", "x" * (i % 700))
    for i in range(8000)
]
#: Larger than what a socket gives at once, and LZ4 does not make them smaller.
for _i in (10, 1500):
    ROWS[_i] = (*ROWS[_i][:2], Random(_i).randbytes(150_000).hex())
FILE = "id,v,w\n" + "".join(f'{i},"{v}",{w}\n' for i, v, w in ROWS)


@dataclass
class Line:
    """The command, whose connections to the cluster go through a proxy."""

    ringhaul: Ringhaul
    proxy: Proxy
    port: int
    bytes_: Counter[str] = field(default_factory=Counter)

    def count(self) -> None:
        """Count bytes, by direction, from now on."""
        self.bytes_.clear()

        def requests(data: bytes) -> bytes:
            self.bytes_["requests"] += len(data)
            return data

        def answers(data: bytes) -> bytes:
            self.bytes_["answers"] += len(data)
            return data

        self.proxy.filter_requests(requests)
        self.proxy.filter_answers(answers)


@pytest.fixture
def line(endpoints: Endpoints, tmp_path: Path) -> Iterator[Line]:
    (tmp_path / "rows.csv").write_text(FILE)
    with proxied((endpoints.contact_points[0], endpoints.port)) as (proxy, port):
        env = {
            "RINGHAUL_CLUSTER_CONTACT_POINTS": "127.0.0.1",
            "RINGHAUL_CLUSTER_PORT": str(port),
            "RINGHAUL_STATE_DIR": str(tmp_path / "state"),
            "RINGHAUL_CLUSTER_COMPRESSION": "lz4",
            "RINGHAUL_WORKER_CONCURRENCY": "1",
        }
        yield Line(Ringhaul(env, tmp_path), proxy, port)


def test_rows_are_the_same_and_bytes_are_fewer(
    line: Line, cassandra_session: Session, module_keyspace: str
) -> None:
    run, cwd = line.ringhaul.run, line.ringhaul.cwd
    table = create_table(cassandra_session, module_keyspace, "id int PRIMARY KEY, v text, w text")
    # When rows are loaded, through the data plane
    line.count()
    loaded = run("load", "rows.csv", "-t", table, "--json", "--max-errors", 0)
    assert assert_report(loaded, rows=len(ROWS))["window_max"] > 0
    # Then all of them are in the table, and the line had fewer bytes than the file
    assert_table(cassandra_session, table, "id, v, w", [(i, v, w or None) for i, v, w in ROWS])
    assert 0 < line.bytes_["requests"] < 0.5 * len(FILE)
    # And when they are unloaded, through the driver, it is the same
    line.count()
    assert run("unload", "-t", table, "-o", "out.csv", "--single-file").code == 0
    out = (cwd / "out.csv").read_text().splitlines()
    assert sorted(out) == sorted(FILE.splitlines())
    assert 0 < line.bytes_["answers"] < 0.5 * len(FILE)
    # And when they are looked up and compared, through the data plane
    (cwd / "keys.csv").write_text("id\n" + "".join(f"{i}\n" for i, _, _ in ROWS[:2000]))
    found = run("lookup", "-t", table, "--keys", "keys.csv", "-o", "-").out.splitlines()
    few = [one for one in out if one.startswith("id,") or int(one.partition(",")[0]) < 2000]
    assert sorted(found) == sorted(few)
    assert run("verify", "rows.csv", "-t", table).code == 0


def without_lz4(data: bytes) -> bytes:
    return data.replace(b"\x00\x03lz4", b"\x00\x03lzo")


def test_a_node_that_does_not_offer_it(line: Line) -> None:
    line.proxy.filter_answers(without_lz4)
    assert_refused(
        line.ringhaul.run("load", "rows.csv", "-t", "s.t"),
        4,
        f"127.0.0.1:{line.port}: the node does not offer lz4 for requests, it offers lzo, snappy; "
        'set cluster.compression = "none"',
    )


def test_a_node_that_offers_none_at_all(line: Line) -> None:
    """The driver alone would go on without compression."""
    line.proxy.filter_answers(
        lambda data: without_lz4(data).replace(b"\x00\x06snappy", b"\x00\x06sneppy")
    )
    refused = line.ringhaul.run("count", "-t", "s.t")
    assert "does not offer lz4 for requests, it offers lzo, sneppy" in refused.err
    assert refused.code == 4


def test_a_node_that_refuses_it_on_the_data_plane(
    line: Line, cassandra_session: Session, module_keyspace: str
) -> None:
    """Rows then go through the driver."""
    line.proxy.filter_requests(lambda data: data if b"DRIVER_NAME" in data else without_lz4(data))
    definition = "id int PRIMARY KEY, v text, w text"
    table = create_table(cassandra_session, module_keyspace, definition, "refused")
    loaded = line.ringhaul.run("load", "rows.csv", "-t", table, "--json", "--max-errors", 0)
    assert assert_report(loaded, rows=len(ROWS))["window_max"] == 0
    assert_table(cassandra_session, table, "id, v, w", [(i, v, w or None) for i, v, w in ROWS])


def test_the_doctor_shows_it(line: Line) -> None:
    def check(**env: str) -> tuple[str, str]:
        done = line.ringhaul.run("doctor", "--json", **env)
        found = {(c["about"], c["check"]): c for c in json.loads(done.out)["checks"]}
        one = found.get(("cluster", "compression"), found["cluster", "address"])
        return one["level"], one["text"]

    assert check() == ("ok", "lz4 for requests and answers")
    assert check(RINGHAUL_CLUSTER_COMPRESSION="none") == ("ok", "requests are not compressed")
    line.proxy.filter_answers(without_lz4)
    level, text = check()
    assert level == "fail"
    assert "does not offer lz4" in text
