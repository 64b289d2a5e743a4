"""Who takes part in the benches of loading."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import PROCESSES
from bench.harness import System
from bench.peers import bulk_loader, cqlsh_copy
from bench.site import Site
from bench.systems import limits, ours, ours_embedded
from ringhaul.load.write.grouping import BATCH_PARTITIONS_MAX


def line_up(
    site: Site, without: Sequence[str] = (), *, batch_rows: int = BATCH_PARTITIONS_MAX
) -> list[System]:
    """The limit, ours in every way it is run, and the tools that people load CSV files with.

    `without`: leaves out the systems with any of these words in their names. `batch_rows`: as many
    as the server does not warn of in one batch.
    """
    systems = [
        *limits(site, batch_rows=batch_rows),
        ours(site),
        ours(site, strategy="single"),
        ours(site, strategy="token-batch"),
        ours_embedded(site, processes=PROCESSES),
        cqlsh_copy(site, processes=1),
        cqlsh_copy(site, processes=2),
        bulk_loader(site),
        bulk_loader(site, batch_mode="REPLICA_SET"),
    ]
    return [system for system in systems if not any(word in system.name for word in without)]
