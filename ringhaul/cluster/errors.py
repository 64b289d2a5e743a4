"""Turn driver errors into messages for users.

The driver reports an unreachable cluster, a wrong password and a wrong data centre all as
`NoHostAvailable` with the cause inside. `translate_error` says what is wrong and what to do.
It looks at exceptions only.
"""

from __future__ import annotations

import re

from cassandra import (
    AuthenticationFailed,
    FunctionFailure,
    OperationTimedOut,
    RequestExecutionException,
    Unauthorized,
    UnresolvableContactPoints,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.protocol import IsBootstrappingErrorMessage, OverloadedErrorMessage

from ringhaul.cluster.connection import CompressionNotOffered, ConnectionNotTaken
from ringhaul.errors import ClusterError, ClusterUnavailable, RinghaulError
from ringhaul.option_names import job_option

#: What to do if a node accepts no further connection.
NOT_TAKEN_HINT = (
    "it has all the connections that it may have: close others, use fewer worker processes, or "
    "raise native_transport_max_concurrent_connections (or ..._per_ip) in its cassandra.yaml"
)

#: How a server refuses a log-in whose tables it could not read: not because of the password.
_NOT_CHECKED = re.compile("Unable to perform authentication")
#: The server's message inside the driver's `Error from server: code=0100 [...]`.
_SERVER_WORDS = re.compile(r'message="(.+)"')
#: OpenSSL's reason for distrusting a certificate; the driver keeps only this text of it.
_NOT_TRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (.+?)\.? \(_ssl")
#: How a node ends a TLS handshake that it rejects; few say that a certificate was the reason.
_HANDSHAKE_ENDED = re.compile(
    r"\w+ alert [\w ]+(?= \(_ssl)|tlsv1 unrecognized name|EOF occurred in violation of protocol"
    r"|Connection reset by peer|Broken pipe"
)


class NodesTroubled(ClusterUnavailable):
    """Nodes answer, but with errors that may pass."""


class ConnectionsExhausted(ClusterUnavailable):
    """A node is alive but accepts no further connection."""


def translate_error(
    error: BaseException,
    *,
    where: str,
    user: str = "",
    tls_cert: str | None = None,
    bundle: str = "",
) -> RinghaulError:
    """Return the error as one of ours; errors that already are ours come back unchanged.

    `where`, `user`, `tls_cert` and the path of a secure connect bundle are what was tried;
    `tls_cert` is None without TLS.
    """
    if isinstance(error, RinghaulError):
        return error
    causes = list(_causes(error))
    for cause in reversed(causes):  # the first contains the text of all others
        if _may_pass(cause):
            return NodesTroubled(
                f"{where} answered with an error that may pass: {_first_line(cause)}. Try again "
                "later; if it stays, look into the log of the node"
            )
        if isinstance(cause, AuthenticationFailed):
            return _refused(cause, where, user)
        reset = isinstance(cause, ConnectionResetError) and tls_cert is None  # while connecting
        if reset or isinstance(cause, ConnectionNotTaken):
            return ConnectionsExhausted(
                f"{where} closed the connection before it answered. If TLS is set as the node has "
                f"it (cluster.tls), {NOT_TAKEN_HINT}"
            )
        if isinstance(cause, Unauthorized):
            return ClusterError(f"user {user!r} may not do this: {_first_line(cause)}")
        if isinstance(cause, CompressionNotOffered):
            return ClusterError(f'{where}: {cause}; set cluster.compression = "none"')
        if distrust := _NOT_TRUSTED.search(str(cause)):
            hint = "Is cluster.tls_ca the authority that issued it?"
            if bundle:
                hint = f"Is {bundle} the bundle of this cluster (cluster.secure_connect_bundle)?"
            return ClusterError(f"the certificate of {where} is not trusted: {distrust[1]}. {hint}")
        if tls_cert is not None and (ended := _HANDSHAKE_ENDED.search(str(cause))):
            return _handshake_ended(ended[0], where, tls_cert, bundle)
    if isinstance(error, UnresolvableContactPoints):
        return ClusterUnavailable(
            f"no host name in {where} can be resolved; check the spelling "
            f"({job_option('contact-points')}, cluster.contact_points)"
        )
    if isinstance(error, (NoHostAvailable, OperationTimedOut, ConnectionException, OSError)):
        reason = _first_line(causes[-1]) if causes else type(error).__name__
        if bundle:
            return ClusterUnavailable(
                f"no node answers through {where}: {reason}. Is the database active, and the way "
                f"to it open? (cluster.secure_connect_bundle {bundle})"
            )
        return ClusterUnavailable(
            f"no node answers at {where}: {reason}. Is it the right address "
            f"({job_option('contact-points')}, cluster.contact_points) and is the node up? "
            "`ringhaul local up` starts one to try with"
        )
    return ClusterError(f"the cluster at {where} answered: {_first_line(error)}")


def _may_pass(error: BaseException) -> bool:
    """Return whether a node answered that it, or other nodes, could not do something just now."""
    if _NOT_CHECKED.search(str(error)):
        return True
    troubles = (RequestExecutionException, OverloadedErrorMessage, IsBootstrappingErrorMessage)
    return isinstance(error, troubles) and not isinstance(error, FunctionFailure)


def _refused(cause: BaseException, where: str, user: str) -> ClusterError:
    if not user:
        return ClusterError(
            f"the cluster at {where} asks for a user and none is set "
            f"({job_option('user')} with -p or {job_option('password-file')}, or cluster.user and "
            "cluster.password_file)"
        )
    return ClusterError(
        f"the cluster at {where} refused user {user!r}: {_first_line(cause)}. "
        "Check the user and the password"
    )


def _handshake_ended(reason: str, where: str, tls_cert: str, bundle: str) -> ClusterError:
    if bundle:
        hint = f"Is {bundle} the bundle of this cluster, and the newest one?"
    elif tls_cert:
        hint = f"Does it trust the authority that issued cluster.tls_cert {tls_cert}?"
    else:
        hint = "Does it ask for a client certificate (cluster.tls_cert and cluster.tls_key)?"
    return ClusterError(f"the cluster at {where} ended the TLS handshake: {reason}. {hint}")


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
    # The driver lists every address it tried before the actual error.
    return lines[0].rpartition("Last error: ")[2]
