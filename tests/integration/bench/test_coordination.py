"""The bench of coordination at a small size, and what a unit costs Redis in fleets of any size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.coordination import (
    OF_A_UNIT,
    Cost,
    Operation,
    apart,
    broker,
    claims,
    measure,
    measure_operations,
    message_bytes,
)
from bench.stage import KEYSPACE, Stage, stage_at
from producer.local.stack import Endpoints


@pytest.fixture
def stage(endpoints: Endpoints, tmp_path: Path) -> Iterator[Stage]:
    with stage_at(endpoints, tmp_path) as shared:
        yield apart(shared)
        shared.session.execute(f"DROP KEYSPACE {KEYSPACE}", timeout=60)


def test_simulated_workers_do_every_unit_of_a_real_command(stage: Stage) -> None:
    [cost] = measure(stage, [(12, 3)])
    assert (cost.units, cost.workers) == (12, 3)
    assert cost.producer_s > 0 and cost.redis_s > 0 and cost.work_s > 0
    assert message_bytes(stage) < 1_500


def test_the_scripts_of_a_unit_run_as_many_commands_in_a_large_fleet(stage: Stage) -> None:
    small, large = (measure_operations(stage, workers, 20) for workers in (10, 100))
    in_small = {one.name: one.commands for one in small}
    for one in large:
        # The sum over the workers is kept for a second, so few looks add them up.
        slack = 1 if one.name in OF_A_UNIT else 2
        assert one.commands <= in_small[one.name] + slack, one.name
    # Most workers of a large fleet do not sweep.
    rounds = {one.name: one.commands for one in large}
    assert rounds["round of another worker"] < rounds["round of a keeper"] / 3
    assert broker(stage).dbsize() == 0


def test_claims_are_about_the_largest_job_and_the_largest_fleet() -> None:
    def cost(units: int, cpu_s: float) -> Cost:
        return Cost(units, 10, 1.0, 1.0, cpu_s, cpu_s)

    def scripts(us: float) -> list[Operation]:
        return [Operation(name, 1, us) for name in OF_A_UNIT] + [Operation("heartbeat", 1, 1e6)]

    costs = [cost(10, 1.0), cost(100_000, 90.0)]
    per_unit, per_worker = claims(costs, {5_000: scripts(44), 10: scripts(40)})
    assert "kept" in per_unit and "100,000 units: 1.80 (at most 2)" in per_unit
    assert "5,000 workers, of that with 10: 1.10 (at most 1.5)" in per_worker
    assert all("MISSED" in line for line in claims([cost(10, 1)], {1: scripts(1), 2: scripts(2)}))
