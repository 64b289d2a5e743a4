"""Workers are chosen before the job is created."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from producer.services.start import Services
from producer.services.workers import choose_workers, unreadable_text
from ringhaul import __version__
from ringhaul.errors import UsageError
from ringhaul.ledger.formats import Readable
from ringhaul.ledger.workers import Worker
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


def test_workers_of_other_versions_are_named_with_what_to_do() -> None:
    old = Worker("h1", 1, 4, ("q",))
    new = Worker("h2", 2, 4, ("q",), "9.0", Readable(5, 6))
    assert unreadable_text([]) == ""
    assert unreadable_text([new]) == (
        f"1 worker (h2) runs ringhaul 9.0, which cannot read jobs of {__version__}, and takes no "
        "unit of this job: install one version on all hosts, on workers before commands"
    )
    assert unreadable_text([new, old, new]).startswith(
        "3 workers (h1, h2) run ringhaul 9.0 and an earlier version, which cannot read jobs of "
    )
