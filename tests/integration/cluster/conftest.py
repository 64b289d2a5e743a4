"""A cluster that asks for a password, and one behind TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from producer.local.stack import Endpoints
from ringhaul.cluster.connect import ClusterConfig
from tests.services import running_stack


@pytest.fixture
def config(endpoints: Endpoints) -> ClusterConfig:
    """The way to the session's node."""
    return ClusterConfig(
        contact_points=tuple(endpoints.contact_points),
        port=endpoints.port,
        local_dc="datacenter1",
    )


@pytest.fixture(scope="package")
def login() -> Iterator[Endpoints]:
    """A node of its own that refuses everybody but its superuser."""
    with running_stack(heap="512M", auth=True) as stack:
        yield stack.endpoints()
