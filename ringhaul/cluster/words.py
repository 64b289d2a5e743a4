"""Driver errors in the user's words.

The driver reports an unreachable cluster, a wrong password and a wrong data centre all as
`NoHostAvailable` with the cause inside. `tell` looks inside and says what is wrong and what to
do. Pure: it looks at exceptions only.
"""

from __future__ import annotations

import re

from cassandra import (
    AuthenticationFailed,
    OperationTimedOut,
    Unauthorized,
    UnresolvableContactPoints,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException

from ringhaul.errors import ClusterError, ClusterUnavailable, RinghaulError

#: What the server itself says, within the driver's `Error from server: code=0100 [...]`.
_SERVER_WORDS = re.compile(r'message="(.+)"')


def tell(error: BaseException, *, where: str, user: str = "") -> RinghaulError:
    """The error as one of ours; errors that already are ours come back unchanged."""
    if isinstance(error, RinghaulError):
        return error
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, AuthenticationFailed):
            return _refused(cause, where, user)
        if isinstance(cause, Unauthorized):
            return ClusterError(f"user {user!r} may not do this: {_first_line(cause)}")
    if isinstance(error, UnresolvableContactPoints):
        return ClusterUnavailable(
            f"no host name in {where} can be resolved; check the spelling "
            "(--contact-points, cluster.contact_points)"
        )
    if isinstance(error, (NoHostAvailable, OperationTimedOut, ConnectionException, OSError)):
        reason = _first_line(causes[-1]) if causes else type(error).__name__
        return ClusterUnavailable(
            f"no node answers at {where}: {reason}. Is it the right address (--contact-points, "
            "cluster.contact_points) and is the node up? `ringhaul local up` starts one to try with"
        )
    return ClusterError(f"the cluster at {where} answered: {_first_line(error)}")


def _refused(cause: BaseException, where: str, user: str) -> ClusterError:
    if not user:
        return ClusterError(
            f"the cluster at {where} asks for a user and none is set "
            "(--user and --password-file, or cluster.user and cluster.password_file)"
        )
    return ClusterError(
        f"the cluster at {where} refused user {user!r}: {_first_line(cause)}. "
        "Check the user and the content of the password file"
    )


def _causes(error: BaseException) -> list[BaseException]:
    inner = getattr(error, "errors", None)
    if isinstance(error, NoHostAvailable) and isinstance(inner, dict):
        return [error, *(cause for cause in inner.values() if isinstance(cause, BaseException))]
    return [error]


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    if said := _SERVER_WORDS.search(lines[0]):
        return said[1]
    # The driver lists every address it tried before it says what went wrong.
    return lines[0].rpartition("Last error: ")[2]
