"""Who takes part in the benches of loading."""

from __future__ import annotations

from bench.contest import PROCESSES
from bench.harness import System
from bench.peers import bulk_loader, cqlsh_copy
from bench.site import Site
from bench.systems import limit, ours, ours_embedded


def line_up(site: Site) -> list[System]:
    """The limit, ours in every way it is run, and the tools that people load CSV files with."""
    return [
        limit(site),
        ours(site),
        ours(site, strategy="token-batch"),
        ours_embedded(site, processes=PROCESSES),
        cqlsh_copy(site, processes=1),
        cqlsh_copy(site, processes=2),
        bulk_loader(site),
        bulk_loader(site, batch_mode="REPLICA_SET"),
    ]
