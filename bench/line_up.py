"""Who takes part in the benches of loading."""

from __future__ import annotations

from collections.abc import Sequence

from bench.contest import PROCESSES
from bench.harness import System
from bench.peers import bulk_loader, cqlsh_copy
from bench.site import Site
from bench.systems import limit, ours, ours_embedded


def line_up(site: Site, without: Sequence[str] = ()) -> list[System]:
    """The limit, ours in every way it is run, and the tools that people load CSV files with.

    `without`: leaves out the systems with any of these words in their names.
    """
    systems = [
        limit(site),
        ours(site),
        ours(site, strategy="token-batch"),
        ours_embedded(site, processes=PROCESSES),
        cqlsh_copy(site, processes=1),
        cqlsh_copy(site, processes=2),
        bulk_loader(site),
        bulk_loader(site, batch_mode="REPLICA_SET"),
    ]
    return [system for system in systems if not any(word in system.name for word in without)]
