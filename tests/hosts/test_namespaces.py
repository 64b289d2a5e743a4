"""Jobs over several hosts: network namespaces with separate addresses and host names.

Worker hosts A, B, C and D, a host for commands, one for the broker, one for the object store, and
Cassandra's. They share only the network: inputs and outputs are on S3 (moto's server).
"""

from __future__ import annotations

import csv
import gzip
import json
from typing import Any

from tests.acceptance.command import wait_until
from tests.acceptance.oracle import Row, assert_table, create_table
from tests.hosts.fleet import Fleet

COLUMNS = "id int PRIMARY KEY, name text, amount bigint"
NAMES = "id, name, amount"
ROWS = 18_000


def rows(count: int, first: int = 0) -> list[Row]:
    return [(n, f'line 1 of {n}\n"line, 2"', n * 1_000_003) for n in range(first, first + count)]


def csv_of(records: list[Row]) -> bytes:
    lines = [NAMES.replace(" ", "") + "\n"]
    for number, name, amount in records:
        quoted = name.replace('"', '""')
        lines.append(f'{number},"{quoted}",{amount}\n')
    return "".join(lines).encode()


def test_a_host_is_cut_off_and_another_joins(fleet: Fleet) -> None:
    """
    1. Hosts A, B and C load from S3.
    2. C is cut off while it works on a unit, and D joins.
    3. Another host does C's unit; every row is in the table once.
    4. C is back: its late reports about that unit have no effect.
    5. All four unload to S3: the manifest's objects hold every row once.
    """
    table = create_table(fleet.session, "hosts", COLUMNS, "moved")
    job, records = "ld-moved", rows(ROWS)
    fleet.store.put("in/a.csv", csv_of(records[:12_000]))
    fleet.store.put("in/b.csv", csv_of(records[12_000:15_000]))
    fleet.store.put("in/c.csv.gz", gzip.compress(csv_of(records[15_000:])))
    fleet.workers("A", "B", "C")
    with fleet.ringhaul.started(
        *("load", fleet.store.url("in/*"), "-t", table, "--json"),
        *("--unit-size", "16K", "--rate", "600", "--job-id", job),
    ) as load:
        fleet.wait_for_job(job)
        wait_until(lambda: len(fleet.units_by_host(job)) == 3, "units done on each host")
        held = cut_at_work(fleet, job, "C")
        assert fleet.ringhaul.run("throttle", job, "--rows-per-second", 200).code == 0
        fleet.begin("D")
        wait_until(lambda: "D" in fleet.units_by_host(job), "a unit done on D")
        assert fleet.ringhaul.run("throttle", job, "--rows-per-second", 5000).code == 0
        out, err = load.communicate(timeout=120)
        assert load.returncode == 0, err
    by_unit = fleet.hosts_by_unit(job)
    assert held and "C" not in {by_unit[unit] for unit in held}
    assert set(by_unit.values()) == {"A", "B", "C", "D"}
    summary = summary_of(out)
    assert (summary["rows"], summary["rejected"], summary["state"]) == (ROWS, 0, "COMPLETE")
    assert summary["units"] == summary["units_done"] == len(by_unit)
    assert {worker.rpartition(":")[0] for worker in summary["workers"]} == set("ABCD")
    assert_table(fleet.session, table, NAMES, records)

    fleet.network.reconnect("C")
    fleet.workers("A", "B", "C", "D")
    assert fleet.hosts_by_unit(job) == by_unit
    assert fleet.ledger.status(job).totals["rows"] == ROWS

    job = "ul-moved"
    with fleet.ringhaul.started(
        *("unload", "-t", table, "-o", fleet.store.url("out"), "--json"),
        *("--rate", "300", "--job-id", job),
    ) as unload:
        fleet.wait_for_job(job)
        # C may still be busy with dropping its unit.
        wait_until(lambda: len(fleet.units_by_host(job)) == 4, "units done on each host")
        assert fleet.ringhaul.run("throttle", job, "--rows-per-second", 50_000).code == 0
        out, err = unload.communicate(timeout=120)
    assert unload.returncode == 0, err
    assert summary_of(out)["rows"] == ROWS
    assert sorted(unloaded(fleet, "out")) == records


def cut_at_work(fleet: Fleet, job: str, name: str) -> set[int]:
    """Cut a host off while it works, and return its unfinished units."""
    while True:
        wait_until(lambda: fleet.units_of(job, name), f"a unit on {name}")
        held = fleet.units_of(job, name)
        fleet.network.cut(name)
        held -= fleet.hosts_by_unit(job).keys()
        if held:
            return held
        fleet.network.reconnect(name)  # it finished first


def unloaded(fleet: Fleet, folder: str) -> list[Row]:
    """Check an unload's files in the store against its manifest, and return its rows."""
    manifest = json.loads(fleet.store.get(f"{folder}/_manifest.json"))
    names = [part["name"] for part in manifest["parts"]]
    assert fleet.store.keys(f"{folder}/") == sorted([*names, "_manifest.json"])
    found: list[Row] = []
    for part in manifest["parts"]:
        text = fleet.store.get(f"{folder}/{part['name']}").decode()
        some = list(csv.DictReader(text.splitlines(keepends=True)))
        assert len(some) == part["rows"]
        found += [(int(row["id"]), row["name"], int(row["amount"])) for row in some]
    assert manifest["totals"]["rows"] == len(found)
    return found


def summary_of(out: str) -> dict[str, Any]:
    (summary,) = (m for m in map(json.loads, out.splitlines()) if m["message_type"] == "summary")
    return dict(summary)


def test_doctor_looks_from_every_host(fleet: Fleet) -> None:
    """A is well, B does not see the folder `share`, and C is set to a node that does not exist."""
    share = fleet.folder / "share"
    (share / "seen.csv").write_bytes(csv_of(rows(10)))
    fleet.workers("A", "B")
    fleet.begin("C", RINGHAUL_CLUSTER_CONTACT_POINTS="10.0.0.99")
    files = ("--input", share / "seen.csv", "-o", fleet.store.url("looked-at"))
    done = fleet.ringhaul.run("doctor", "--json", "--keyspace", "hosts", *files)
    fleet.stop("C")
    checks = {(one["about"], one["check"]): one for one in json.loads(done.out)["checks"]}
    assert done.code == 4, done
    cluster = checks["workers", "cluster"]
    assert cluster["level"] == "fail" and cluster["text"].startswith("C: no node answers")
    # The local data centre's nodes are contacted; the other's are known.
    assert checks["cluster", "nodes"]["text"] == "1 node answers, 1 in other data centres"
    assert checks["cluster", "data centre"]["text"] == "dc1 of dc1, dc2"
    assert checks["cluster", "replication"]["level"] == "ok"
    # Of this host, the broker, a node, and A, B and C.
    assert checks["machine", "clocks"]["text"].startswith("6 clocks are within ")
    assert checks["files", "output"]["level"] == "ok"
    assert fleet.store.keys("looked-at/") == [], "nothing is left behind"
    hosts = checks["files", "hosts"]
    if fleet.network["B"].namespace:  # otherwise all share one view of the files
        assert hosts["level"] == "fail"
        assert hosts["text"] == f"B does not see {share}/seen.csv: No such file or directory"
    done = fleet.ringhaul.run("doctor", "--json", "-o", "s3://nobody/dump")
    checks = {(one["about"], one["check"]): one for one in json.loads(done.out)["checks"]}
    assert done.code == 4 and checks["files", "output"]["level"] == "fail"
    assert "nobody" in checks["files", "output"]["text"]


def test_a_host_that_does_not_see_the_input_is_named(fleet: Fleet) -> None:
    """The folder `share` is the same mount on all hosts except B."""
    if not fleet.network["B"].namespace:
        return  # one machine has one view of its files: see acceptance/test_file_visibility.py
    table = create_table(fleet.session, "hosts", COLUMNS, "seen")
    share = fleet.folder / "share"
    (share / "x.csv").write_bytes(csv_of(rows(10)))
    fleet.workers("A", "B")
    done = fleet.ringhaul.run("load", share / "x.csv", "-t", table)
    assert done.code == 2, done
    assert f"B: {share / 'x.csv'}: No such file or directory" in done.err and "A:" not in done.err
    done = fleet.ringhaul.run("unload", "-t", table, "-o", share / "out")
    assert done.code == 2 and f"B: {share / 'out'}: is not there" in done.err, done
    assert not (share / "out").exists()
    assert table not in {status.labels["table"] for status in fleet.ledger.jobs()}
    fleet.workers("A")
    done = fleet.ringhaul.run("load", share / "x.csv", "-t", table)
    assert done.code == 0, done
    assert_table(fleet.session, table, NAMES, rows(10))


def test_units_go_to_the_data_centre_of_their_rows_while_it_has_workers(fleet: Fleet) -> None:
    """
    1. A and the command are in dc1, C is in dc2. The rows are in both.
    2. Only A takes units of a load.
    3. A is lost. C takes A's units, those in A's queue, and the rest.
    4. C counts rows that are only in dc2 while A is running.
    """
    table = create_table(fleet.session, "both", COLUMNS)
    far = create_table(fleet.session, "far", COLUMNS)
    job, records = "ld-both", rows(4000)
    url = fleet.store.put("both.csv", csv_of(records))
    fleet.workers("A")
    fleet.begin("C", RINGHAUL_CLUSTER_LOCAL_DC="dc2")
    with fleet.ringhaul.started(
        *("load", url, "-t", table, "--json", "--job-id", job),
        *("--unit-size", "8K", "--rate", "1000"),
    ) as load:
        fleet.wait_for_job(job)
        wait_until(lambda: len(fleet.hosts_by_unit(job)) >= 5, "five units")
        assert set(fleet.units_by_host(job)) == {"A"}
        fleet.stop("A")
        out, err = load.communicate(timeout=120)
    assert load.returncode == 0, err
    assert summary_of(out)["rows"] == 4000
    assert set(fleet.units_by_host(job)) == {"A", "C"}
    assert_table(fleet.session, table, NAMES, records)

    fleet.begin("A")
    done = fleet.ringhaul.run("count", "-t", far, "--job-id", "ct-far")
    assert done.code == 0, done
    assert set(fleet.units_by_host("ct-far")) == {"C"}


def test_a_host_that_does_not_answer_is_named(fleet: Fleet) -> None:
    table = create_table(fleet.session, "hosts", COLUMNS, "unanswered")
    url = fleet.store.put("unanswered.csv", csv_of(rows(10)))
    fleet.workers("A")
    # Workers count as alive for four sweeps after their last heartbeat.
    fleet.begin("D", RINGHAUL_WORKER_SWEEP_S="3.5")
    fleet.network.cut("D")
    done = fleet.ringhaul.run("load", url, "-t", table)
    fleet.network.reconnect("D")
    assert done.code == 0, done
    assert "D did not answer whether it sees the input" in done.err
    assert_table(fleet.session, table, NAMES, rows(10))
