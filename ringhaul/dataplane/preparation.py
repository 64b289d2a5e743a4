"""Prepare a statement again on a connection whose server forgot it: a schema change, a restart."""

from __future__ import annotations

from typing import Any

from cassandra.query import PreparedStatement

from ringhaul.cql.frames import (
    FrameError,
    Opcode,
    Reply,
    prepare_body,
    read_error,
    read_prepared_id,
)
from ringhaul.dataplane.connection import NodeConnection, WireError
from ringhaul.dataplane.retry import Verdict, classify_code
from ringhaul.errors import ClusterError


def prepare(connection: NodeConnection[Any], statement: PreparedStatement) -> None:
    """Send PREPARE, unless it is on its way; the connection gets no rows until its response."""
    if connection.control_sent_at_s is None:
        connection.send_control(Opcode.PREPARE, prepare_body(statement.query_string))


def take_prepared(
    connection: NodeConnection[Any], reply: Reply, statement: PreparedStatement, refusal: str
) -> None:
    """Take the response to `prepare`.

    `refusal`: what the cluster does if it will not prepare the statement, for the message.

    Raises:
      WireError, FrameError: the connection is of no use; ClusterError: the job is over.
    """
    connection.control_sent_at_s = None
    if reply.opcode == Opcode.ERROR:
        error = read_error(reply.body)
        if classify_code(error.code, error.message) is Verdict.RETRY:
            raise WireError(f"{connection.host.address}: {error.name}: {error.message}")
        raise ClusterError(f"the cluster {refusal}: {error.message}")
    if read_prepared_id(reply.body) != statement.query_id:
        raise FrameError("the server returned a different id for the statement")
