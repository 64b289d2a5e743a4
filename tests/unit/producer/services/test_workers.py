"""Workers are chosen before the job is created."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from producer.services.start import Services
from producer.services.workers import choose_workers
from ringhaul.errors import UsageError
from tests.unit.cluster.sessions import by_dc, view


def test_embedded_workers_far_from_the_rows_are_refused() -> None:
    settings = SimpleNamespace(worker=SimpleNamespace(concurrency=3))
    services = cast(
        Services, SimpleNamespace(job_id="ld-1", loaded=SimpleNamespace(settings=settings))
    )
    rows = by_dc(dc1="3")
    with pytest.raises(UsageError, match="needs replicas in the local data centre dc2"):
        choose_workers(services, None, view("LOCAL_QUORUM", rows, "dc2", "dc1", "dc1"), "shop")
    assert (
        choose_workers(services, None, view("QUORUM", rows, "dc2", "dc1", "dc1"), "shop").slots == 3
    )
    near = view("LOCAL_QUORUM", rows, "dc1", "dc1", "dc2")
    assert choose_workers(services, None, near, "shop").slots == 3
