"""Check the cluster from here: reachable, schema, data centre, replication, versions, clocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from config.sections import ClusterSettings
from config.settings import Settings
from producer.doctor.finding import CLUSTER, Finding
from producer.text import count_text
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.cluster.connection import NOT_OFFERED
from ringhaul.cluster.consistency import too_far, too_few
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.replication import Replication
from ringhaul.cluster.view import ClusterView
from tasks.cluster_settings import cluster_config
from tasks.host.cluster import impatient, view_session
from tasks.host.report import HostView, Node

_SHOWN = 5


class Cluster(NamedTuple):
    """The cluster as seen from this host, and what was found out about it."""

    view: HostView
    findings: Sequence[Finding]


def open_cluster(settings: Settings, keyspace: str | None) -> Cluster:
    """Connect and check. `keyspace`: the jobs' keyspace; None: all keyspaces of users.

    Raises `RinghaulError` for a cluster that cannot be used.
    """
    session = open_session(impatient(cluster_config(settings)))
    try:
        view, cluster = view_session(session), DriverView(session)
        found = [
            CLUSTER.ok("address", _address(view.name, settings.cluster)),
            judge_compression(settings.cluster.compression, view.nodes),
            judge_versions(view.nodes),
            judge_nodes(view.nodes, sorted(node.address for node in cluster.nodes if node.is_down)),
            judge_schema(cluster.schema_versions()),
            judge_data_centre(view, settings.cluster.local_dc),
            judge_replication(
                settings.cluster.consistency, view.local_dc, _replications(cluster), keyspace
            ),
        ]
        return Cluster(view, found)
    finally:
        close_session(session, 1.0)


def _address(name: str, cluster: ClusterSettings) -> str:
    bundle = cluster.secure_connect_bundle
    return f"{name} answers" + (f", through the proxy that {bundle} leads to" if bundle else "")


def judge_compression(compression: str, nodes: Sequence[Node]) -> Finding:
    """Judge whether the nodes offer the compression of requests that is set."""
    check = "compression"
    if compression == "none":
        return CLUSTER.ok(check, "requests are not compressed")
    lacking = [node.address for node in nodes if node.used and NOT_OFFERED in node.error]
    if lacking:
        text = f"{compression} is set, and not offered by {', '.join(lacking[:_SHOWN])}"
        return CLUSTER.fault(check, text, 'set cluster.compression = "none"')
    return CLUSTER.ok(check, f"{compression} for requests and answers")


def judge_versions(nodes: Sequence[Node]) -> Finding:
    """Judge whether all nodes run one version."""
    releases = sorted({node.release for node in nodes if node.release})
    if not releases:
        return CLUSTER.unchecked("version", "no node reports its version")
    text = f"Cassandra {', '.join(releases)}"
    if len(releases) == 1:
        return CLUSTER.ok("version", text)
    advice = "finish the upgrade: schema changes wait until all nodes have one version"
    return CLUSTER.warning("version", text, advice)


def judge_nodes(nodes: Sequence[Node], down: Sequence[str]) -> Finding:
    """Judge whether the nodes that are used from here answer. `down`: addresses of the nodes that
    the cluster says are down."""
    silent = [node for node in nodes if node.used and node.error and node.address not in down]
    if silent:
        some = ", ".join(f"{node.address} ({node.error})" for node in silent[:_SHOWN])
        more = f" and {len(silent) - _SHOWN} more" if len(silent) > _SHOWN else ""
        advice = "open the way to the native protocol's port of every node of the data centre"
        text = f"{len(silent)} of {len(nodes)} nodes do not answer here: {some}{more}"
        return CLUSTER.fault("nodes", text, advice)
    if down:
        text = f"{len(down)} of {len(nodes)} nodes down ({', '.join(down[:_SHOWN])})"
        return CLUSTER.warning("nodes", text, "start them, or expect retries")
    far = sum(not node.used for node in nodes)
    used = len(nodes) - far
    text = f"{count_text(used, 'node')} {'answers' if used == 1 else 'answer'}"
    return CLUSTER.ok("nodes", text + (f", {far} in other data centres" if far else ""))


def judge_schema(versions: Iterable[object]) -> Finding:
    """Judge whether all nodes have one version of the schema."""
    count = len(set(versions))
    if count <= 1:
        return CLUSTER.ok("schema", "its nodes agree")
    advice = "wait until its nodes agree, and see `nodetool describecluster`"
    return CLUSTER.warning("schema", f"{count} versions", advice)


def judge_data_centre(view: HostView, configured: str) -> Finding:
    """Judge which data centre's nodes are used. (An unknown one cannot be connected to.)"""
    known = sorted({node.data_centre for node in view.nodes if node.data_centre})
    others = [name for name in known if name != view.local_dc]
    text = view.local_dc + (f" of {', '.join(known)}" if others else "")
    if configured or not others:
        return CLUSTER.ok("data centre", text or "not known")
    advice = "set cluster.local_dc on every host: today the first contact point decides"
    return CLUSTER.warning("data centre", text, advice)


def judge_replication(
    level: str, local_dc: str, replications: Mapping[str, Replication], keyspace: str | None
) -> Finding:
    """Judge whether the consistency level can be reached in the keyspaces."""
    check = "replication"
    if keyspace is not None and keyspace not in replications:
        text = f"no keyspace {keyspace} in this cluster"
        return CLUSTER.fault(check, text, "create it, or check the spelling of --keyspace")
    wanted = [keyspace] if keyspace is not None else sorted(replications)
    lacking = [
        words
        for name in wanted
        if (words := too_few(level, replications[name]))
        or (words := too_far(level, replications[name], local_dc))
    ]
    if not wanted:
        return CLUSTER.ok(check, "there is no keyspace yet")
    if not lacking:
        where = keyspace or count_text(len(wanted), "keyspace")
        return CLUSTER.ok(check, f"{level} can be reached in {where}")
    more = f"; the same in {len(lacking) - 1} more" if len(lacking) > 1 else ""
    if keyspace is not None:
        return CLUSTER.fault(check, f"{lacking[0]}{more}")
    # A keyspace that no job uses may be as it likes.
    return CLUSTER.warning(check, f"{lacking[0]}{more}", "--keyspace NAME checks only yours")


def _replications(cluster: ClusterView) -> dict[str, Replication]:
    """Return the replication of each keyspace of the users that can be judged."""
    found = {
        name: cluster.replication(name)
        for name in cluster.keyspace_names
        if name != "system" and not name.startswith("system_")
    }
    return {name: one for name, one in found.items() if one is not None}
