"""A job spec is read by its kind, without imports for the other kinds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ringhaul.scan.job import ReadJob
from tasks.kinds import job_of
from tests.loads import load_job, load_source, table_schema

TABLE = table_schema({"id": "int"}, ["id"])
COUNT = ReadJob(kind="count", cluster_name="c", table=TABLE, sql="SELECT count(*) FROM ks.t")

#: Reads a spec and prints which of our modules that imported.
SCRIPT = """
import sys
from tasks.kinds import job_of
job = job_of(sys.stdin.read())
print(job.kind, *sorted(name for name in sys.modules if name.startswith("ringhaul.")))
"""


@pytest.mark.parametrize("job", [COUNT, load_job(TABLE, load_source(["id"]))])
def test_a_spec_is_read_back_as_the_job(job: ReadJob) -> None:
    assert job_of(json.dumps(job.to_json())) == job


def test_the_end_of_a_read_imports_nothing_for_loads() -> None:
    spec = json.dumps(COUNT.to_json())
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], input=spec, capture_output=True, text=True, check=True
    )
    kind, *modules = done.stdout.split()
    assert kind == "count" and "ringhaul.scan.job" in modules
    # Conversions of text, and readers of files: a tenth of a second
    assert not {"ringhaul.records.job", "ringhaul.cql.text", "ringhaul.sources.files"} & {*modules}
