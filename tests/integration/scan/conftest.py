"""One filled table that all tests of this folder only read; and a scripted server."""

from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from ringhaul.scan.options import ScanTarget
from tests.integration.load.pipeline_client import server as server
from tests.integration.load.pipeline_client import servers as servers
from tests.integration.scan.rows import Rows, fill
from tests.services import fresh_keyspace


@pytest.fixture(scope="package")
def rows(cassandra_session: Session) -> Iterator[Rows]:
    with fresh_keyspace(cassandra_session) as keyspace:
        yield fill(cassandra_session, keyspace, "small_and_wide")


@pytest.fixture(scope="package")
def target(cassandra_session: Session, rows: Rows) -> ScanTarget:
    return rows.target(cassandra_session)
