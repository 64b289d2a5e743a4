"""Plans of loads of the files in a test's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from producer.plan.sources import with_empty
from producer.request.load import LoadDraft
from ringhaul.records.job import LoadSource
from ringhaul.sources.find import find_sources
from tests.heads import plan_sources
from tests.loads import table_schema

TABLE = table_schema({"id": "int", "n": "bigint", "note": "text"}, ["id"])
#: plan(**options of the request) -> the sources.
Plan = Callable[..., tuple[LoadSource, ...]]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Plans a load of the files of `tmp_path`."""

    def planned(**options: Any) -> tuple[LoadSource, ...]:
        request = LoadDraft(keyspace="shop", table="orders", **options)
        files = find_sources([str(tmp_path)], request.dialect, request.file_format)
        found = plan_sources(request, files, TABLE)
        return with_empty(request, files, found, [source for source in found if source])

    return planned
