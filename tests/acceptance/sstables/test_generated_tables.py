"""SSTables of generated tables are those of a node: see `tests/sstable_proof.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.any_table import raw_session
from tests.acceptance.command import Ringhaul
from tests.scale import drawn, scaled
from tests.services import fresh_keyspace
from tests.sstable_proof import Proof, written_tables
from tests.sstable_tools import Node

#: Tables that share the tools' start, and how many there are.
AT_ONCE = 6
TABLES = scaled(6, 240)
#: The driver's threads call it while a table is drawn, which Hypothesis takes for the test.
NOT_OURS = "ignore:Do not use the `random` module"


@pytest.mark.filterwarnings(NOT_OURS)
@pytest.mark.timeout(scaled(300, 6 * 3600))
def test_generated_tables_are_stored_as_a_node_stores_them(
    node: Node, ringhaul: Ringhaul, tmp_path: Path
) -> None:
    given = drawn(written_tables(), TABLES)
    for first in range(0, len(given), AT_ONCE):
        folder = tmp_path / f"from{first}"
        folder.mkdir()
        with raw_session(node.session) as raw, fresh_keyspace(node.session) as keyspace:
            Proof(node, raw, ringhaul, keyspace, folder).prove(given[first : first + AT_ONCE])
