"""Where a result goes: by options, as stored with the job, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from producer.options.job import Showing
from producer.options.output import ResultPlace
from producer.request.result_output import check_result_output, lasting, result_output
from ringhaul.errors import UsageError
from ringhaul.output.job import ResultOutput
from ringhaul.scan.job import ReadJob
from tests.loads import table_schema

STORED = ResultOutput(path="/out/r.csv", form="json")


def given(output: str | None, form: str | None) -> ResultPlace:
    return ResultPlace(output=output, result_format=form)


def test_the_job_stores_the_output() -> None:
    job = ReadJob(
        kind="query",
        cluster_name="test",
        table=table_schema({"id": "int"}, ["id"]),
        sql="SELECT count(*) FROM shop.orders",
        result_output=STORED,
    )
    assert ReadJob.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_a_path_is_stored_as_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert result_output(given("r.csv", "auto")) == ResultOutput(path=f"{tmp_path}/r.csv")
    for nowhere in (given(None, "csv"), given("-", "csv")):
        assert result_output(nowhere) == ResultOutput(form="csv")


def test_missing_options_are_taken_from_the_job() -> None:
    assert result_output(given(None, None), STORED) == STORED
    assert result_output(given("/else", None), STORED) == ResultOutput(path="/else", form="json")
    assert result_output(given(None, "auto"), STORED) == ResultOutput(path="/out/r.csv")
    assert result_output(given("-", "table"), STORED) == ResultOutput(form="table")


def test_a_pipe_or_a_device_is_not_stored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    of_a_shell = os.pipe()
    for name in (f"{tmp_path}/pipe", "/dev/null", f"/dev/fd/{of_a_shell[1]}"):
        assert lasting(ResultOutput(path=name, form="json")) == ResultOutput(form="json")
    for end in of_a_shell:
        os.close(end)
    for name in ("", f"{tmp_path}/file", f"{tmp_path}/new"):
        assert lasting(ResultOutput(path=name)) == ResultOutput(path=name)


def test_an_unwritable_output_is_refused_before_there_is_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, talking = Showing(), Showing(as_json=True)
    wrong = {
        f"-o {tmp_path} is a folder: give a file": ResultOutput(path=str(tmp_path)),
        f"-o {tmp_path}/no/r: there is no folder {tmp_path}/no": ResultOutput(
            path=f"{tmp_path}/no/r"
        ),
        f"-o {tmp_path}/r.csv.GZ: a result is not compressed; name it without .gz, or pipe it "
        "(--format csv | gzip)": ResultOutput(path=f"{tmp_path}/r.csv.GZ", form="csv"),
    }
    for words, output in wrong.items():
        with pytest.raises(UsageError) as refusal:
            check_result_output(output, silent)
        assert str(refusal.value) == words
    check_result_output(ResultOutput(path=f"{tmp_path}/r"), talking)
    check_result_output(ResultOutput(form="parquet"), silent)
    with pytest.raises(UsageError, match="the result and --json both want standard output"):
        check_result_output(ResultOutput(), talking)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(UsageError, match="Parquet is not for a terminal"):
        check_result_output(ResultOutput(form="parquet"), silent)
