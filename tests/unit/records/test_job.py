"""A job survives the ledger as JSON with the same meaning on every worker."""

import json
from dataclasses import replace

import pytest

from ringhaul.cql.text import TextFormat
from ringhaul.destination.delivered import Delivered, Imports, Streaming
from ringhaul.formats.dialect import CsvDialect
from ringhaul.formats.split import Position
from ringhaul.ledger.audit import JobDamaged
from ringhaul.ledger.kinds import ClosingStep
from ringhaul.records.job import ORDINAL_END, LoadJob
from ringhaul.sstables.layout import Layout
from tasks.kinds import job_of_spec
from tests.loads import load_job, load_source, table_schema

TABLE = table_schema({"id": "int", "Ünits": "text"}, ["id"])


def test_a_job_survives_json() -> None:
    job = load_job(
        TABLE,
        load_source(
            ["id", "x"],
            path="/data/ü b.csv",
            size_bytes=77,
            mapping=[("x", "id")],
            start=Position(12, 0, 3),
        ),
        load_source(["id"], path="/data/c.csv.gz", size_bytes=23, whole=True),
        dialect=CsvDialect(delimiter="\t", quote=None, escape="\\", null_strings=("", "NULL")),
        text=TextFormat(timestamp_formats=("%d.%m.%Y",), timezone="Europe/Berlin"),
        ttl_s=60,
        nulls="tombstone",
        consistency="QUORUM",
        strategy="single",
        ordinal_first=3,
        ordinal_end=9,
        in_flight_requests_max=40,
        batch_rows_max=2,
    )
    assert LoadJob.from_json(json.loads(json.dumps(job.to_json()))) == job
    assert job.total_bytes == 100


def test_by_default_every_record_is_wanted_and_missing_values_are_unset() -> None:
    job = LoadJob.from_json(json.loads(json.dumps(load_job(TABLE).to_json())))
    assert (job.ordinal_first, job.ordinal_end, job.nulls) == (0, ORDINAL_END, "unset")
    assert (job.consistency, job.strategy) == ("LOCAL_QUORUM", "pipeline")


def test_sources_keep_their_formats() -> None:
    jsonl = replace(load_source(["id", "x"]), format="jsonl", any_fields=True)
    parquet = replace(load_source(["id"]), format="parquet")
    dialect = CsvDialect(comment="#", escape="\\", encoding="latin-1")
    job = load_job(TABLE, load_source(["id"]), jsonl, parquet, dialect=dialect)
    assert LoadJob.from_json(json.loads(json.dumps(job.to_json()))) == job
    assert job.sources[0].dialect(job) == dialect
    lines = jsonl.dialect(job)
    assert (lines.quote, lines.escape, lines.comment) == (None, None, None)
    assert lines.encoding == dialect.encoding


def test_the_job_knows_its_kind() -> None:
    assert load_job(TABLE).to_json()["kind"] == "load"


def test_a_job_of_an_older_version_has_no_bounds() -> None:
    data = load_job(TABLE, in_flight_requests_max=40, batch_rows_max=2).to_json()
    for name in ("in_flight_requests_max", "batch_rows_max"):
        del data[name]
    job = LoadJob.from_json(data)
    assert (job.in_flight_requests_max, job.batch_rows_max) == (0, 0)


def test_sstables_that_nodes_import_have_a_folder_and_streamed_ones_have_none() -> None:
    layout = Layout(partition_key_class="K", clustering=(), columns=(), written_s=1)
    imports = Imports(table_id="1", layout=layout, folder="/mnt/imports/{node}")
    job = replace(load_job(TABLE), destination=imports)
    data = json.loads(json.dumps(job.to_json()))
    assert LoadJob.from_json(data) == job
    assert (
        job.closing is ClosingStep.DESTINATION
    )  # what killed processes left is removed at the end
    del data["stream"]["folder"]  # as older versions write it
    older = LoadJob.from_json(data)
    assert older.destination == Streaming(table_id="1", layout=layout)
    assert older.closing is ClosingStep.NOTHING


LAYOUT = Layout(partition_key_class="K", clustering=(), columns=(), written_s=1)


@pytest.mark.parametrize(
    ("destination", "closing"),
    [
        (Streaming(table_id="1", layout=LAYOUT), ClosingStep.NOTHING),
        (
            Imports(table_id="1", layout=LAYOUT, folder="/mnt/imports/{node}"),
            ClosingStep.DESTINATION,
        ),
    ],
    ids=["streamed", "imported"],
)
def test_sstables_that_nodes_get_are_streamed_or_imported(
    destination: Delivered, closing: ClosingStep
) -> None:
    job = replace(load_job(TABLE), destination=destination)
    data = json.loads(json.dumps(job.to_json()))
    assert LoadJob.from_json(data) == job
    assert job.closing is closing
    data["stream"]["by_sidecar"] = False  # as older versions write it
    assert LoadJob.from_json(data) == job


def test_a_job_of_an_older_version_through_sidecars_is_not_read() -> None:
    layout = Layout(partition_key_class="K", clustering=(), columns=(), written_s=1)
    job = replace(load_job(TABLE), destination=Streaming(table_id="1", layout=layout))
    data = json.loads(json.dumps(job.to_json()))
    data["stream"]["by_sidecar"] = True
    with pytest.raises(JobDamaged, match="ValueError: it loads --via sidecar, which this version"):
        job_of_spec("ld-1", json.dumps(data))
