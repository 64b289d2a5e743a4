"""Inputs and outputs behind URLs: every row arrives, and an unusable URL is reported.

The store is moto's server: the S3 protocol over real HTTP, on loopback.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args

from producer.local.stack import Endpoints
from ringhaul.ledger.connection import connect
from ringhaul.ledger.ledger import Ledger
from tests.acceptance.command import Finished, Ringhaul, forking, wait_until
from tests.acceptance.conftest import cluster_env, fleet_settings
from tests.acceptance.hold import Hold
from tests.acceptance.oracle import Row, assert_report, assert_table, create_table
from tests.acceptance.running import running_worker
from tests.object_store import ObjectStore, running_object_store
from tests.services import running_valkey
from tests.web_server import running_web_server

COLUMNS = "id int PRIMARY KEY, name text, amount bigint"
NAMES = "id, name, amount"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with running_object_store(tmp_path_factory.mktemp("store")) as running:
        yield running
        assert running.uploads() == []


@pytest.fixture(scope="module")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Hold:
    """The switch that holds units of `fleet_on_s3`."""
    return Hold(tmp_path_factory.mktemp("hold") / "held")


@pytest.fixture(scope="module")
def fleet_on_s3(
    endpoints: Endpoints, store: ObjectStore, hold: Hold, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The settings of a worker with a separate broker and the store's credentials."""
    folder = tmp_path_factory.mktemp("s3-fleet")
    with running_valkey() as valkey:
        env = fleet_settings(endpoints, folder / "state", valkey.url) | store.env
        env |= {
            "RINGHAUL_WORKER_LEASE_S": "30",
            "RINGHAUL_STORAGE_PRIVATE_ADDRESSES": "true",
        }
        ringhaul = Ringhaul(env | hold.env, folder)
        with running_worker(ringhaul), forking(ringhaul):
            yield env


@pytest.fixture
def ringhaul(fleet_on_s3: dict[str, str], tmp_path: Path) -> Ringhaul:
    return Ringhaul(fleet_on_s3, tmp_path)


@pytest.fixture
def table(cassandra_session: Session, keyspace: str) -> str:
    return create_table(cassandra_session, keyspace, COLUMNS)


def rows(count: int, first: int = 0) -> list[Row]:
    return [(n, f'line 1 of {n}\n"line, 2"', n * 1_000_003) for n in range(first, first + count)]


def csv_of(records: list[Row]) -> bytes:
    lines = ["id,name,amount\n"]
    for number, name, amount in records:
        quoted = str(name).replace('"', '""')
        lines.append(f'{number},"{quoted}",{amount}\n')
    return "".join(lines).encode()


def jsonl_of(records: list[Row]) -> bytes:
    return b"".join(
        json.dumps(dict(zip(NAMES.split(", "), record, strict=True))).encode() + b"\n"
        for record in records
    )


def parquet_of(records: list[Row]) -> bytes:
    out = io.BytesIO()
    columns = zip(*records, strict=True)
    table = pa.table(dict(zip(NAMES.split(", "), map(list, columns), strict=True)))
    pq.write_table(table, out, row_group_size=1500)
    return out.getvalue()


def test_a_csv_is_loaded_in_many_ranges(
    ringhaul: Ringhaul, store: ObjectStore, cassandra_session: Session, table: str
) -> None:
    records = rows(30_000)
    url = store.put("one/orders.csv", csv_of(records))
    before = len(store.requests())
    done = ringhaul.run("load", url, "-t", table, "--unit-size", "256K", "--json")
    summary = assert_report(done, rows=30_000)
    assert summary["units"] > 5
    assert_table(cassandra_session, table, NAMES, records)
    reads = [path for _, path, _ in store.requests()[before:] if path.endswith("orders.csv")]
    # A unit: check the object, read its range, check again. The command: a few for its plan.
    assert len(reads) <= 3 * summary["units"] + 15


def test_a_glob_matches_all_kinds_of_file(
    ringhaul: Ringhaul, store: ObjectStore, cassandra_session: Session, table: str
) -> None:
    records = rows(20_000)
    parts = [records[at : at + 4000] for at in range(0, 20_000, 4000)]
    store.put("days/a.csv.gz", gzip.compress(csv_of(parts[0])))
    store.put("days/b.csv.bz2", bz2.compress(csv_of(parts[1])))
    store.put("days/c.jsonl", jsonl_of(parts[2]))
    store.put("days/d.parquet", parquet_of(parts[3]))
    store.put("days/deep/e.csv", csv_of(parts[4]))
    store.put("days/notes.md", b"not data")
    done = ringhaul.run("load", store.url("days/*.*"), "-t", table, "--json")
    assert done.code == 2 and "notes.md" in done.err, "a glob takes every match"
    done = ringhaul.run("load", store.url("days/[a-d].*"), store.url("days/deep"), "-t", table,
                        "--json")  # fmt: skip
    summary = assert_report(done, rows=20_000)
    assert [source["path"] for source in summary["sources"]] == [
        store.url(f"days/{name}")
        for name in ("a.csv.gz", "b.csv.bz2", "c.jsonl", "d.parquet", "deep/e.csv")
    ]
    assert_table(cassandra_session, table, NAMES, records)
    assert_report(ringhaul.run("load", store.url("days"), "-t", table, "--json"), rows=20_000)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_unload_to_the_store_loads_again(
    ringhaul: Ringhaul,
    store: ObjectStore,
    cassandra_session: Session,
    keyspace: str,
    table: str,
    kind: str,
) -> None:
    records = rows(20_000)
    store.put("fill.csv", csv_of(records))
    assert_report(ringhaul.run("load", store.url("fill.csv"), "-t", table, "--json"), rows=20_000)
    out = f"out-{kind}"
    done = ringhaul.run("unload", "-t", table, "-o", store.url(out), "--format", kind, "--json")
    assert done.code == 0, done
    check_unloaded(store, out, done, 20_000)
    again = create_table(cassandra_session, keyspace, COLUMNS, "again")
    loaded = ringhaul.run("load", store.url(out), "-t", again, "--json")
    assert_report(loaded, rows=20_000)
    assert_table(cassandra_session, again, NAMES, records)
    refused = ringhaul.run("unload", "-t", table, "-o", store.url(out))
    assert refused.code == 2 and "is not empty" in refused.err


def check_unloaded(store: ObjectStore, folder: str, done: Finished, count: int) -> list[str]:
    """Assert that the manifest lists exactly the existing objects with their rows; return them."""
    manifest: dict[str, Any] = json.loads(store.get(f"{folder}/_manifest.json"))
    names = [part["name"] for part in manifest["parts"]]
    assert store.keys(f"{folder}/") == sorted([*names, "_manifest.json"])
    for part in manifest["parts"]:
        data = store.get(f"{folder}/{part['name']}")
        assert (part["bytes"], part["checksum"]) == (len(data), f"crc32:{zlib.crc32(data):08x}")
    assert done.summary["rows"] == manifest["totals"]["rows"] == count
    return names


@pytest.mark.parametrize("point", ["mid_write", "after_write"])
def test_a_killed_attempt_leaves_no_part_in_the_manifest(
    endpoints: Endpoints,
    store: ObjectStore,
    cassandra_session: Session,
    table: str,
    tmp_path: Path,
    point: str,
) -> None:
    """
    1. A process dies in the middle of a unit, or when its objects exist but are not committed.
    2. Another process runs the unit. The first one's objects are gone, and each row exists once.
    """
    records = rows(5000)
    insert = cassandra_session.prepare(f"INSERT INTO {table} ({NAMES}) VALUES (?, ?, ?)")
    execute_concurrent_with_args(cassandra_session, insert, records, concurrency=100)
    struck, out = tmp_path / "struck", f"struck-{point}"
    env = cluster_env(endpoints, tmp_path / "state") | store.env
    env["_RINGHAUL_FAILPOINT"] = f"{point}:3:{struck}"
    done = Ringhaul(env, tmp_path).run(
        "unload", "-t", table, "-o", store.url(out), "--json", "-c", 2
    )
    assert done.code == 0 and struck.exists(), done
    assert done.summary["repeated_units"] == 1
    found: list[Row] = []
    for name in check_unloaded(store, out, done, 5000):
        text = store.get(f"{out}/{name}").decode()
        for row in csv.DictReader(text.splitlines(keepends=True)):
            found.append((int(row["id"]), row["name"], int(row["amount"])))
    assert sorted(found) == records


def test_a_web_server(ringhaul: Ringhaul, cassandra_session: Session, table: str) -> None:
    records = rows(9000)
    with running_web_server() as server:
        server.files = {
            "x.csv": csv_of(records[:3000]),
            "x.jsonl": jsonl_of(records[3000:6000]),
            "x.csv.gz": gzip.compress(csv_of(records[6000:])),
        }
        urls = [f"{server.url}/{name}" for name in server.files]
        done = ringhaul.run("load", *urls, "-t", table, "--unit-size", "64K", "--json")
        summary = assert_report(done, rows=9000)
        assert summary["units"] > 3
    assert_table(cassandra_session, table, NAMES, records)


def test_an_object_that_is_replaced_during_a_load_fails_the_job(
    ringhaul: Ringhaul, hold: Hold, store: ObjectStore, table: str
) -> None:
    records = rows(20_000)
    url = store.put("changing.csv", csv_of(records))
    held = ("--unit-size", "64K", "--job-id", "ld-changing")
    hold.from_unit(1)
    client = connect(ringhaul.env["RINGHAUL_BROKER_URL"])
    ledger = Ledger(client)
    with ringhaul.started("load", url, "-t", table, *held) as load:

        def first_unit_done() -> bool:
            return any(job.job == "ld-changing" and job.done > 0 for job in ledger.jobs(1))

        wait_until(first_unit_done, "a first unit")
        store.put("changing.csv", csv_of([*records[:-1], (19_999, "another", 1)]))
        hold.release()
        _, err = load.communicate(timeout=60)
    client.close()
    assert load.returncode == 4
    # A unit that was reading it meets another version of a range, a later one another size.
    met = r"changing\.csv: the file (was replaced since the job started|is [0-9,]+ bytes now)"
    assert re.search(met, err) and "start again" in err


# --- URLs that cannot be used


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        ("s3://acme/none.csv", 2, "no such object or folder"),
        ("s3://acme/*.none", 2, "no object matches"),
        ("s3://nobucket/x.csv", 2, "there is no bucket nobucket"),
        ("s3://nobucket/*.csv", 2, "there is no bucket nobucket"),
        ("s3://", 2, "s3://: names no bucket; give s3://BUCKET/PATH"),
        ("s3://Bad_Bucket!/x.csv", 2, "Bad_Bucket!"),
        ("ftp://host/x.csv", 2, "storage.schemes"),
        ("s3://key:sentinel@acme/x.csv", 2, "credentials do not belong in a URL"),
        ("http://169.254.169.254/x.csv", 2, "is link-local"),
        ("http://nowhere.invalid/x.csv", 4, "does not resolve"),
    ],
)
def test_a_source_that_cannot_be_read_is_reported(
    ringhaul: Ringhaul, table: str, source: str, code: int, message: str
) -> None:
    done = ringhaul.run("load", source, "-t", table)
    assert (done.code, message in done.err, "sentinel" in done.err) == (code, True, False), done


@pytest.mark.parametrize(
    ("env", "code", "message"),
    [
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, 2, "no credentials for S3"),
        ({"RINGHAUL_STORAGE_S3_ENDPOINT_URL": "http://nowhere.invalid"}, 4, "does not resolve"),
        ({"RINGHAUL_STORAGE_S3_ENDPOINT_URL": "http://127.0.0.1:9"}, 4, "is not available"),
        ({"RINGHAUL_STORAGE_SCHEMES": "https"}, 2, "s3:// is not among"),
    ],
)
def test_a_store_that_cannot_be_used_is_reported(
    ringhaul: Ringhaul, store: ObjectStore, table: str, env: dict[str, str], code: int, message: str
) -> None:
    store.put("x.csv", csv_of(rows(3)))
    done = ringhaul.run("load", store.url("x.csv"), "-t", table, **env)
    assert (done.code, message in done.err) == (code, True), done
    done = ringhaul.run("unload", "-t", table, "-o", store.url("denied"), **env)
    assert (done.code, message in done.err) in [(code, True), (4, True)], done


def test_a_missing_package_is_reported_with_the_extra_to_install(
    ringhaul: Ringhaul, table: str, tmp_path: Path
) -> None:
    (tmp_path / "s3fs.py").write_text("raise ImportError('not here')")
    done = ringhaul.run("load", "s3://acme/x.csv", "-t", table, PYTHONPATH=str(tmp_path))
    assert done.code == 2 and 'pip install "ringhaul[s3]"' in done.err, done


def test_missing_rights_are_reported(ringhaul: Ringhaul, table: str, tmp_path: Path) -> None:
    """A store that checks keys refuses an unknown one, and one without any right."""
    import boto3

    # moto checks no rights before this number of requests.
    with running_object_store(tmp_path, INITIAL_NO_AUTH_ACTION_COUNT="4") as strict:
        iam = boto3.client(
            "iam",
            endpoint_url=strict.endpoint_url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        strict.put("x.csv", csv_of(rows(3)))
        iam.create_user(UserName="powerless")
        key = iam.create_access_key(UserName="powerless")["AccessKey"]
        powerless = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }
        for env, message in (({}, "access denied"), (powerless, "access denied")):
            given = strict.env | env
            done = ringhaul.run("load", strict.url("x.csv"), "-t", table, **given)
            assert (done.code, message in done.err) == (2, True), done
