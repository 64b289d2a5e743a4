"""Jobs that older versions made and that workers of this one cannot run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from ringhaul.errors import Terminal
from ringhaul.load.run import run_load_unit
from ringhaul.load.write import RequestBounds, Target
from ringhaul.records.account import UnitHooks
from ringhaul.records.job import LoadJob
from ringhaul.records.unit import LoadUnit
from tests.loads import load_job, load_source, table_schema


def test_a_strategy_that_is_gone_ends_the_job_with_what_to_do() -> None:
    job = load_job(table_schema({"id": "text"}, ["id"]), load_source(["id"], path="/gone.csv"))
    older = json.loads(json.dumps(replace(job, strategy="concurrent").to_json()))
    with pytest.raises(
        Terminal,
        match="the job's strategy concurrent is not in this version of ringhaul: start the load "
        "again with pipeline, single, token-batch",
    ):
        run_load_unit(
            LoadUnit.unpack("0,0,10,0,1,-1"),
            LoadJob.from_json(older),
            cast(Target, None),
            RequestBounds(retries_max=1, request_timeout_s=1.0),
            UnitHooks(tick=lambda rows, rejected, done: None),
        )
