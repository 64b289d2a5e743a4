"""The result of a finished reading job, published by the command that follows or repeats it."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from producer.options.connection import Connection
from producer.options.control import ResumeOptions
from producer.options.reads import CountOptions, UnloadOptions
from producer.outputs.stdout_parts import StdoutParts
from producer.run import finish
from producer.run.continuation import report_end
from producer.run.finish import publish_end, publish_watched
from producer.run.resume import _publish_again, _result_of
from producer.run.status import show_job
from ringhaul.cql.types import CqlType
from ringhaul.errors import OutputUnusable, UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.answers import Claimed
from ringhaul.ledger.job_status import JobStatus
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.labels import KIND_LABEL
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.output.job import Output, ResultOutput
from ringhaul.output.parts import PartInfo, PartSet
from ringhaul.query.aggregate import Aggregation
from ringhaul.records.rejects import Reject, RejectLog
from ringhaul.scan.finish import unload_parts
from ringhaul.scan.job import ReadJob
from ringhaul.scan.result import ReadResult
from ringhaul.scan.spill import spill, spilled_name
from ringhaul.storage.hidden import MANIFEST
from tasks.kinds import job_of
from tests.loads import table_schema
from tests.options import parse_options

TABLE = table_schema({"id": "int"}, ["id"])
JOB = "rd-000001"
RESULT = ReadResult(1, 0, 0, 0, 1, 9, 1, 2, 1, 0, 0, 10, 5, 1, 1 << 20, "host:1")
UNLOAD: UnloadOptions = parse_options("unload", "-t", "shop.orders", "-o", "/out", "--json")
COUNT: CountOptions = parse_options("count", "-t", "shop.orders", "--json", "--format", "csv")


def resume_options(**given: Any) -> ResumeOptions:
    """Return the options of `ringhaul resume JOB`."""
    connection = dict.fromkeys(field.name for field in fields(Connection))
    return ResumeOptions(
        **connection, workers=None, on_interrupt=None, progress="none", job=JOB, **given
    )


def create(ledger: Ledger, job: ReadJob, units: int) -> None:
    """Create the job and issue its units. A unit whose worker dies is given up at once."""
    ledger.create(JOB, {KIND_LABEL: job.kind}, json.dumps(job.to_json()), starts_max=1)
    ledger.add_units(JOB, 1, 0, ["{}"] * units)
    ledger.seal(JOB, 1, units)
    ledger.issue(JOB, units)


def commit(ledger: Ledger, unit: int, extra: bytes, **totals: int) -> None:
    assert isinstance(ledger.claim(JOB, unit, 1, "a", 60_000), Claimed)
    figures = {"rows": 1, "rejected": 0, "bytes": 9, "retries": 0} | totals
    result = RESULT._replace(
        rows=figures["rows"], rejected=figures["rejected"], bytes_read=figures["bytes"]
    )
    ledger.commit(JOB, unit, 1, "a", result.pack(), figures, extra=extra)


def unload_job(folder: Path, **options: Any) -> ReadJob:
    return ReadJob(
        kind="unload",
        cluster_name="test",
        table=TABLE,
        sql="SELECT id FROM shop.orders",
        output=Output(url=str(folder), format=OutputFormat(header=False)),
        columns=(("id", "int"),),
        **options,
    )


def write_part(folder: Path, unit: int, attempt: str = "a") -> bytes:
    """Write a part with the unit's number; return the unit's record for the ledger."""
    parts = PartSet(
        str(folder),
        OutputFormat(header=False),
        ["id"],
        [CqlType("int")],
        job=JOB,
        unit=unit,
        attempt=attempt,
    )
    parts.write(pa.record_batch({"id": pa.array([unit], pa.int32())}))
    parts.roll()
    return json.dumps([PartInfo.to_json(part) for part in parts.parts]).encode()


def test_ordered_rows_continue_after_a_unit_that_was_given_up(
    ledger: Ledger, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    # Given an unload to standard output in token order, one unit of which kills its worker
    create(ledger, unload_job(tmp_path, token_order=True, streams=True), 4)
    printer = StdoutParts(tmp_path, unload_parts, b"id\n", in_order=True)
    for unit in (0, 3):
        commit(ledger, unit, write_part(tmp_path, unit))
    # When the units before and after it are done, one out of order
    printer.look(ledger, ledger.status(JOB))
    assert capfdbinary.readouterr().out == b"id\n0\n"
    ledger.claim(JOB, 1, 1, "a", 60_000)
    ledger.lost(JOB, 1, "a")
    commit(ledger, 2, write_part(tmp_path, 2))
    status = ledger.status(JOB)
    assert status.state is JobState.QUARANTINED
    # Then the rows after it come at the end, in order and once
    printer.look(ledger, status)
    assert capfdbinary.readouterr().out == b""
    printer.end(ledger, status)
    printer.end(ledger, status)
    assert capfdbinary.readouterr().out == b"2\n3\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rejected", [0, 1])
def test_a_repeated_unload_writes_a_missing_manifest(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str], rejected: int
) -> None:
    create(ledger, unload_job(tmp_path, transforms=("m:f",) * rejected), 1)
    extra = write_part(tmp_path, 0)
    write_part(tmp_path, 0, "died")
    log = RejectLog()
    reject = Reject(
        file="shop.orders",
        offset=0,
        length=1,
        line=0,
        stage="transform",
        column=None,
        reason="no",
        data=b"x",
    )
    log.add([reject] * rejected)
    commit(ledger, 0, extra + b"\n" + log.blob(), rows=1, rejected=rejected)
    status = ledger.status(JOB)
    assert status.state is (JobState.PARTIAL if rejected else JobState.COMPLETE)
    assert report_end(UNLOAD, ledger, status) == rejected
    (part,) = unload_parts(extra)
    assert sorted(os.listdir(tmp_path)) == sorted([MANIFEST, part.name])
    assert json.loads(capsys.readouterr().out)["output"] == str(tmp_path)
    # When the files were removed, the end is still reported again
    for path in tmp_path.iterdir():
        path.unlink()
    assert report_end(UNLOAD, ledger, status) == rejected
    publish_watched(ledger, status, pytest.fail)
    assert list(tmp_path.iterdir()) == []
    # but a resume checks them.
    with pytest.raises(OutputUnusable, match="1 of 1 files that workers wrote are not what they"):
        publish_end(ledger, status, again=True)


def test_a_finished_unload_to_standard_output_has_no_manifest(
    ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given a finished one, whose parts were copied and removed
    spool = tmp_path / "spool"
    create(ledger, unload_job(spool, streams=True), 1)
    commit(ledger, 0, write_part(spool, 0))
    for path in spool.iterdir():
        path.unlink()
    spool.rmdir()
    # When its command is repeated, then the end is reported
    assert report_end(COUNT, ledger, ledger.status(JOB)) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "COMPLETE"
    assert not spool.exists()


def test_a_result_of_large_partial_tables_can_be_printed_repeatedly(
    ledger: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = ReadJob(
        kind="query",
        cluster_name="test",
        table=TABLE,
        sql="SELECT id, count(*) AS n FROM shop.orders GROUP BY id",
        spill=str(tmp_path),
    )
    create(ledger, job, 1)
    partial = Aggregation(job.select).partial()
    partial.update(pa.record_batch({"id": pa.array([7, 7], pa.int32())}))
    kept = spill(partial.pack(), 0, job.spill, spilled_name(JOB, 0, "a"))
    old = tmp_path / spilled_name("qy-forgotten", 0, "a")
    old.touch()
    for path in (old, tmp_path / spilled_name(JOB, 0, "a")):
        os.utime(path, (0, 0))
    commit(ledger, 0, kept, rows=2)
    for _ in range(2):
        publish_end(ledger, ledger.status(JOB), ResultOutput(form="csv"))
        assert capfd.readouterr().out == "id,n\n7,2\n"
    assert not old.exists(), "the spill of an unknown job must be removed"
    # It is not printed among messages.
    with pytest.raises(UsageError, match="the result and --json both want"):
        _result_of(job, resume_options(as_json=True, result_format="csv"))
    assert capfd.readouterr().out == ""


def begin_count(ledger: Ledger, output: ResultOutput) -> ReadJob:
    job = ReadJob(
        kind="count",
        cluster_name="test",
        table=TABLE,
        sql='SELECT count(*) AS "count" FROM shop.orders',
        result_output=output,
    )
    create(ledger, job, 1)
    return job


def end_count(ledger: Ledger, job: ReadJob) -> JobStatus:
    """Complete the job long ago, with 3 rows found."""
    partial = Aggregation(job.select, exact_keys=True).partial()
    partial.update(pa.record_batch({"id": pa.array([1, 2, 3], pa.int32())}))
    commit(ledger, 0, spill(partial.pack(), 1 << 20, "", ""), rows=3)
    ledger.caller.command("HSET", job_key(JOB, "meta"), "finished_ms", 1)
    return ledger.status(JOB)


def counted(ledger: Ledger, output: ResultOutput) -> JobStatus:
    return end_count(ledger, begin_count(ledger, output))


def test_a_command_that_follows_a_job_to_its_end_writes_the_result(
    ledger: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, messages = tmp_path / "r.out", list[str]()
    status = counted(ledger, ResultOutput(path=str(path), form="json"))
    # A command that follows it to the end replaces an existing file
    path.write_text("of another job\n")
    publish_watched(ledger, status, messages.append)
    assert path.read_text() == '{"count": 3}\n'
    assert messages.pop() == f"the result is in {path}"
    # A later command leaves it alone: it was removed, or belongs to a later job.
    path.unlink()
    publish_watched(ledger, ledger.status(JOB), messages.append)
    assert (path.exists(), messages) == (False, [])
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("written", [True, False])
def test_a_watching_command_lets_the_job_s_command_write_first(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    path, messages = tmp_path / "r.out", list[str]()
    counted(ledger, ResultOutput(path=str(path), form="json"))
    over = [job_key(JOB, "meta"), "finished_ms"]
    ledger.caller.command("HSET", *over, ledger.status(JOB).now_ms)
    status = ledger.status(JOB)  # from before the result was written

    def meanwhile(seconds: float) -> None:
        assert (0 < seconds < 1, path.exists()) == (True, False)
        if written:  # and the file is removed at once
            publish_end(ledger, status)
            path.rename(tmp_path / "moved.out")
        else:
            ledger.caller.command("HSET", *over, 1)

    monkeypatch.setattr(finish, "sleep", meanwhile)
    publish_watched(ledger, status, messages.append)
    assert path.exists() is not written
    assert messages == ([] if written else [f"the result is in {path}"])
    # A command that comes too late leaves it alone.
    path.unlink(missing_ok=True)
    publish_end(ledger, status)
    assert not path.exists()


def test_a_result_is_written_again_with_the_job_s_or_the_command_s_options(
    ledger: Ledger,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.out"
    status = counted(ledger, ResultOutput(path=str(path), form="json"))
    read = job_of(ledger.job_spec(JOB))

    def resume(**given: Any) -> str:
        options = resume_options(**given)
        result = _result_of(read, options)
        assert _publish_again(ledger, ledger.status(JOB), read, options, result) == 0
        return capfd.readouterr().out

    # With another path it is only a copy.
    assert resume(output="-") == '{"count": 3}\n'
    assert not ledger.status(JOB).published
    assert json.loads(resume(as_json=True))["rows"] == 3
    assert path.read_text() == '{"count": 3}\n'
    assert ledger.status(JOB).published
    assert resume(output="s.csv", result_format="auto") == ""
    assert Path("s.csv").read_text() == "count\n3\n"
    # In another format it is another result, also at the same path.
    assert resume(output=str(path), result_format="csv") == ""
    assert path.read_text() == "count\n3\n"
    # A repeated command sets every option, also those that it leaves out.
    assert report_end(replace(COUNT, as_json=False), ledger, status) == 0
    assert capfd.readouterr().out == "count\n3\n"
    with pytest.raises(UsageError, match=r"there is no folder .*no$"):
        resume(output="no/r.csv")
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match="the job was made with it: name another with -o FILE"):
        resume()


def test_a_result_that_cannot_be_written_is_reported(
    ledger: Ledger, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status = counted(ledger, ResultOutput(path=str(tmp_path / "gone" / "r.csv")))
    why = (
        f"{tmp_path}/gone/r.csv: the result cannot be written: No such file or directory; "
        f"`ringhaul resume {JOB}` prints it again, with `-o FILE` elsewhere"
    )
    with pytest.raises(OutputUnusable) as raised:
        publish_watched(ledger, status, pytest.fail)
    assert str(raised.value) == why
    # A command that follows the finished job still shows how it ended.
    assert show_job(ledger, JOB, follow=True, as_json=False) == 0
    err = capfd.readouterr().err
    assert why in err
    assert err.endswith("\n complete\n")


def test_a_write_error_is_reported_although_redis_fails_meanwhile(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = counted(ledger, ResultOutput(path=str(tmp_path / "r.csv"), form="csv"))
    admin = ledger.caller.client

    def refuse(*_: object) -> None:
        admin.config_set("min-replicas-to-write", 1)  # it refuses writes from now on
        raise OutputUnusable("the disk is full")

    monkeypatch.setattr(finish, "_write", refuse)
    try:
        with pytest.raises(OutputUnusable, match="the disk is full"):
            publish_end(ledger.with_patience(100), status)
    finally:
        admin.config_set("min-replicas-to-write", 0)


def test_a_write_error_does_not_hide_the_end_from_a_following_command(
    ledger: Ledger,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = begin_count(ledger, ResultOutput(path=str(tmp_path / "gone" / "r.csv")))
    looks, look = [ledger.status(JOB)], ledger.status
    end_count(ledger, job)
    monkeypatch.setattr(ledger, "status", lambda job: looks.pop() if looks else look(job))
    assert show_job(ledger, JOB, follow=True, as_json=False) == 0
    err = capfd.readouterr().err
    assert "r.csv: the result cannot be written: No such file or directory" in err
    assert err.endswith("\n complete\n")


def test_a_watching_command_does_not_print_a_result_for_standard_output(
    ledger: Ledger, capfd: pytest.CaptureFixture[str]
) -> None:
    messages: list[str] = []
    publish_watched(ledger, counted(ledger, ResultOutput(form="csv")), messages.append)
    assert messages == [f"`ringhaul resume {JOB}` prints the result"]
    assert capfd.readouterr().out == ""
