"""A load is traced from its command through the messages to its workers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cassandra.cluster import Session

from tests.acceptance.command import Ringhaul
from tests.acceptance.oracle import create_table
from tests.collector import running_collector

SECRET = "Kx9-secret"
ROWS = 6000


def test_a_span_for_the_job_and_for_each_unit(
    embedded: Ringhaul, cassandra_session: Session, keyspace: str, tmp_path: Path
) -> None:
    table = create_table(cassandra_session, keyspace, "id int PRIMARY KEY, name text")
    file = tmp_path / "t.csv"
    file.write_text("id,name\n" + "".join(f"{n},{SECRET}\n" for n in range(ROWS)))
    load = ("load", file, "-t", table, "-c", 2, "--unit-size", "16KiB", "--json")
    with running_collector() as collector:
        done = embedded.run(*load, RINGHAUL_TRACING_ENDPOINT=collector.endpoint)
        assert done.code == 0, done.err
        spans, text = collector.spans, "".join(collector.bodies)
    summary = done.summary
    names = Counter(span["name"] for span in spans)
    assert names == {"ringhaul load": 1, "ringhaul unit": summary["units"]}, "none per statement"
    assert summary["units"] > 4
    (job,) = (span for span in spans if span["name"] == "ringhaul load")
    units = [span for span in spans if span["name"] == "ringhaul unit"]
    assert {span["traceId"] for span in spans} == {job["traceId"]}
    assert {span["parentSpanId"] for span in units} == {job["spanId"]}
    assert job["attributes"]["ringhaul.job"] == summary["job"]
    assert job["attributes"]["ringhaul.exit_code"] == 0
    assert sorted(span["attributes"]["ringhaul.unit"] for span in units) == list(range(len(units)))
    assert sum(span["attributes"]["ringhaul.rows"] for span in units) == summary["rows"] == ROWS
    # (one process may have run all: the other may still have been starting)
    ran = {int(name.rpartition(":")[2]): count for name, count in summary["workers"].items()}
    assert Counter(span["attributes"]["process.pid"] for span in units) == ran
    for span in units:
        assert job["startTimeUnixNano"] <= span["startTimeUnixNano"] < span["endTimeUnixNano"]
    assert SECRET not in text and str(file) not in text
