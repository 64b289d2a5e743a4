"""The systems in the load benches."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import PROCESSES
from bench.harness import System
from bench.peers import bulk_loader, cqlsh_copy
from bench.site import Site
from bench.systems import limits, ours, ours_embedded
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX


def line_up(
    site: Site,
    without: Sequence[str] = (),
    *,
    short: bool = False,
    batch_rows: int = BATCH_PARTITIONS_MAX,
) -> list[System]:
    """Return the limit, ringhaul in each way of running it, and other tools that load CSV files.

    `short`: only one system of each kind. `without`: leave out systems with any of these words in
    their names. `batch_rows`: the most rows in a batch without a warning from the server.
    """
    systems = [*limits(site, batch_rows=batch_rows), ours(site)]
    if not short:
        systems += [
            ours(site, strategy="single"),
            ours(site, strategy="token-batch"),
            ours_embedded(site, processes=PROCESSES),
            cqlsh_copy(site, processes=2),
            bulk_loader(site),
        ]
    systems += [cqlsh_copy(site, processes=1), bulk_loader(site, batch_mode="REPLICA_SET")]
    return [system for system in systems if not any(word in system.name for word in without)]
