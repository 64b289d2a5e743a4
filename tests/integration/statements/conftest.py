"""A scripted server."""

from tests.integration.load.pipeline_client import server as server
from tests.integration.load.pipeline_client import servers as servers
