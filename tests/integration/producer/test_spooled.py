"""Spooled standard input is kept as long as workers, a resume or an export may need it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from producer.inputs.stdin_spool import spool_path
from producer.run.spool_cleanup import drop_if_done
from ringhaul.errors import (
    EXIT_COMPLETE,
    EXIT_FATAL,
    EXIT_INTERRUPTED,
    EXIT_REJECTS,
    EXIT_STILL_RUNNING,
)
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.labels import KIND_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.records.rejects import Reject, RejectLog
from ringhaul.statements.job import StatementJob
from ringhaul.statements.result import join_extra
from ringhaul.statements.values import StatementValues
from tests.loads import load_source, statement_values, table_schema

JOB = "lk-000001"
TABLE = table_schema({"id": "int"}, ["id"])


def listed(ledger: Ledger, values: StatementValues, data: bytes | None) -> None:
    """Create a lookup in the ledger that lists one key, with or without its bytes."""
    job = StatementJob(kind="lookup", cluster_name="test", values=values, table=TABLE, key=("id",))
    ledger.create(JOB, {KIND_LABEL: "lookup"}, json.dumps(job.to_json()))
    ledger.add_units(JOB, 1, 0, ["0,0,2,0,1,1"])
    ledger.seal(JOB, 1, 1)
    ledger.issue(JOB, 1)
    log = RejectLog()
    key = Reject(
        file=values.sources[0].file.path,
        offset=0,
        length=1,
        line=1,
        stage="missing",
        column=None,
        reason="no row has this key",
        data=data,
    )
    log.add([key])
    assert isinstance(ledger.claim(JOB, 0, 1, "a", 60_000), Claimed)
    ledger.commit(JOB, 0, 1, "a", "", {}, extra=join_extra([], log.blob()))


@pytest.mark.parametrize(
    ("code", "resumable", "data", "kept"),
    [
        (EXIT_COMPLETE, True, b"1", False),
        (EXIT_COMPLETE, True, None, True),  # for an export of the keys without a row
        (EXIT_REJECTS, True, b"1", False),
        (EXIT_REJECTS, True, None, True),
        (EXIT_FATAL, True, b"1", True),  # for a resume
        (EXIT_FATAL, False, b"1", False),
        (EXIT_FATAL, False, None, True),
        (EXIT_INTERRUPTED, False, b"1", False),
        (EXIT_STILL_RUNNING, False, b"1", True),  # for the workers
    ],
)
def test_a_spool_file_stays_while_it_may_be_needed(
    ledger: Ledger, tmp_path: Path, code: int, resumable: bool, data: bytes | None, kept: bool
) -> None:
    spool = spool_path(tmp_path, JOB)
    spool.parent.mkdir()
    spool.write_text("1\n")
    values = statement_values(TABLE, load_source(["id"], path=str(spool), size_bytes=2))
    listed(ledger, values, data)
    drop_if_done(ledger, tmp_path, JOB, values, code, resumable=resumable)
    assert spool.exists() == kept
