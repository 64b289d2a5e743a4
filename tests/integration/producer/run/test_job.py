"""The life of a job of each kind, led by its command against a real ledger, without workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from config.settings import load_settings
from producer.options.job import JobOptions
from producer.plan.plan import Plan
from producer.run.job import run_plan
from producer.run.spool_cleanup import SpooledInput
from producer.services.start import Services
from producer.startup import STEP_VARIABLE
from ringhaul.destination.delivered import Imports
from ringhaul.errors import EXIT_COMPLETE, EXIT_STILL_RUNNING
from ringhaul.formats.split import Position
from ringhaul.formats.write import OutputFormat
from ringhaul.ledger.history import EventKind, History
from ringhaul.ledger.keys import job_key
from ringhaul.ledger.kinds import JobKind
from ringhaul.ledger.ledger import Ledger
from ringhaul.ledger.states import JobState
from ringhaul.output.job import Output, ResultOutput
from ringhaul.records.job import LoadJob, LoadSource
from ringhaul.scan.job import ReadJob
from ringhaul.sstables.layout import Layout
from ringhaul.statements.job import StatementJob
from ringhaul.storage.hidden import MANIFEST
from tasks.kinds import Job, read_job
from tests.integration.conftest import Settle
from tests.loads import load_job, load_source, statement_values, table_schema
from tests.options import parse_options

JOB = "xx-000001"
TABLE = table_schema({"id": "int"}, ["id"])
ROWS = b"1\n2\n3\n"


@pytest.fixture
def ledger(ledger: Ledger, settle: Settle) -> Ledger:
    """An empty ledger. Messages go to a queue without a reader."""
    settle()
    return ledger


@pytest.fixture
def services(ledger: Ledger, broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Services of a command that starts no workers."""
    monkeypatch.setenv("RINGHAUL_BROKER_URL", broker_url)
    loaded = load_settings()
    return cast(
        Services,
        SimpleNamespace(
            job_id=JOB, loaded=loaded, settings=loaded.settings, broker=None, worker=None
        ),
    )


def source_of(folder: Path) -> LoadSource:
    path = folder / "in.csv"
    path.write_bytes(ROWS)
    return load_source(["id"], path=str(path), size_bytes=len(ROWS), start=Position(0, 0, 1))


def load_of(folder: Path, **options: Any) -> LoadJob:
    return load_job(TABLE, source_of(folder), **options)


def read_of(kind: JobKind, **options: Any) -> ReadJob:
    return ReadJob(
        kind=kind, cluster_name="c", table=TABLE, sql="SELECT id FROM shop.orders", **options
    )


def exec_of(folder: Path, **options: Any) -> StatementJob:
    return StatementJob(
        kind=JobKind.EXEC,
        cluster_name="c",
        values=statement_values(TABLE, source_of(folder)),
        statement="UPDATE shop.orders SET n = n + 1 WHERE id = ?",
        **options,
    )


def options_of(kind: JobKind) -> JobOptions:
    """The options of a command for a job of this kind."""
    words = {
        JobKind.LOAD: ("in.csv", "-t", "shop.orders"),
        JobKind.UNLOAD: ("-t", "shop.orders", "-o", "out"),
        JobKind.COUNT: (
            "-t",
            "shop.orders",
        ),
        JobKind.EXEC: ("UPDATE shop.orders SET n = n + 1 WHERE id = ?", "--params", "in.csv"),
    }[kind]
    return cast(JobOptions, parse_options(kind.value, *words))


def run(services: Services, job: Job, *units: str, detach: bool = True, **facts: Any) -> int:
    """Run a plan of the job, with these units if they are not made of its files."""
    options = replace(options_of(job.kind), detach=detach)
    plan = Plan(job=job, units=units, target="shop.orders", headline="does it", **facts)
    return run_plan(options, services, plan, "dc1,load")


def test_a_load_is_labelled_and_fed(
    services: Services, ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(services, load_of(tmp_path)) == EXIT_STILL_RUNNING
    status = ledger.status(JOB)
    assert (status.state, status.units, status.sealed) == (JobState.RUNNING, 1, True)
    labels = status.labels
    assert {name: labels[name] for name in ("kind", "table", "bytes_total", "queue")} == {
        "kind": "load",
        "table": "shop.orders",
        "bytes_total": "6",
        "queue": "dc1,load",
    }
    assert "publishes" not in labels
    shown = capsys.readouterr()
    assert shown.out == f"{JOB}\n"
    assert shown.err.startswith(f"{JOB}  does it\ndetached; the job continues.")


def test_its_history_says_which_schedule_created_a_load(
    services: Services, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STEP_VARIABLE, "nightly")
    run(services, load_of(tmp_path))
    created, *_ = History(ledger.caller).events(JOB)
    assert (created.kind, created.by) == (EventKind.CREATED, "schedule nightly")


def test_a_load_that_imports_needs_a_command_at_its_end(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    layout = Layout(partition_key_class="K", clustering=(), columns=(), written_s=1)
    imports = Imports(table_id="1", layout=layout, folder=str(tmp_path / "imports"))
    run(services, load_of(tmp_path, destination=imports))
    assert ledger.status(JOB).labels["publishes"] == "1"


def test_an_unload_has_all_its_units_at_once(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    job = read_of(JobKind.UNLOAD, output=Output(url=str(tmp_path), format=OutputFormat()))
    assert run(services, job, "a", "b") == EXIT_STILL_RUNNING
    status = ledger.status(JOB)
    assert (status.units, status.sealed) == (2, True)
    assert status.labels["kind"] == "unload"
    assert not {"bytes_total", "publishes"} & status.labels.keys()
    assert read_job(ledger, JOB) == job


@pytest.mark.parametrize(("repeatable", "starts"), [(True, None), (False, 1)])
def test_a_unit_that_must_not_run_twice_starts_once(
    services: Services,
    ledger: Ledger,
    tmp_path: Path,
    repeatable: bool,
    starts: int | None,
) -> None:
    run(services, exec_of(tmp_path, repeatable=repeatable))
    status = ledger.status(JOB)
    assert (status.labels["kind"], status.units, status.sealed) == ("exec", 1, True)
    allowed = int(ledger.caller.client.hget(job_key(JOB, "meta"), "starts_max"))
    assert allowed == (ledger.starts_max if starts is None else starts)


def test_the_end_of_a_job_without_units_is_published(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    job = read_of(
        JobKind.UNLOAD,
        output=Output(url=str(tmp_path), format=OutputFormat()),
        columns=(("id", "int"),),
    )
    assert run(services, job, detach=False) == EXIT_COMPLETE
    assert (tmp_path / MANIFEST).exists()
    assert ledger.status(JOB).published


def test_a_result_goes_where_the_command_says(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    job = ReadJob(
        kind=JobKind.COUNT,
        cluster_name="c",
        table=TABLE,
        sql='SELECT count(*) AS "count" FROM shop.orders',
    )
    path = tmp_path / "count.csv"
    result = ResultOutput(path=str(path), form="csv")
    assert run(services, job, detach=False, result=result) == EXIT_COMPLETE
    assert path.read_text() == "count\n0\n"


def test_rows_for_standard_output_are_printed_to_the_end(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    calls = list[str]()

    class Printer:
        def look(self, ledger: Ledger, status: Any) -> None:
            calls.append("look")

        def end(self, ledger: Ledger, status: Any) -> None:
            calls.append("end")

    output = Output(url=str(tmp_path), format=OutputFormat())
    job = read_of(JobKind.UNLOAD, output=output, streams=True)
    assert run(services, job, detach=False, printer=Printer()) == EXIT_COMPLETE
    assert (calls[0], calls[-1], calls.count("end")) == ("look", "end", 1)
    assert not ledger.status(JOB).published


def test_spooled_input_stays_for_its_job_only(
    services: Services, ledger: Ledger, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="refused"), SpooledInput(tmp_path, JOB, ["-"]) as spooled:
        spooled.path.parent.mkdir(parents=True)
        spooled.path.write_bytes(ROWS)
        raise ValueError("refused")
    assert not spooled.path.exists()
    with SpooledInput(tmp_path, JOB, ["-"]) as spooled:
        spooled.path.write_bytes(ROWS)
        plan = Plan(job=load_of(tmp_path), target="shop.orders", headline="does it")
        options = replace(options_of(JobKind.LOAD), detach=True)
        run_plan(options, services, plan, "load", spooled)
    assert spooled.path.exists()
    assert ledger.status(JOB).sealed
