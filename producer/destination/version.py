"""Whether a cluster reads a version of SSTables."""

from __future__ import annotations

from cassandra import DriverException, Unauthorized
from cassandra.cluster import NoHostAvailable

from ringhaul.cluster.view import ClusterView
from ringhaul.errors import ClusterUnavailable, SetupUnusable
from ringhaul.sstables.version import SSTableVersion

_SETTING = "storage_compatibility_mode"
#: The mode of nodes whose settings do not say. They write as version 4 did, and read nothing later.
_DEFAULT = "CASSANDRA_4"


def check_reads(cluster: ClusterView, version: SSTableVersion) -> None:
    """Raise `SetupUnusable` for a cluster that does not read SSTables of this version.

    One node answers for all of them. Raises `ClusterUnavailable` if none does; a user who may not
    read the nodes' settings is not stopped.
    """
    if version is SSTableVersion.NB:
        return
    try:
        mode = cluster.setting(_SETTING)
    except Unauthorized:
        return
    except (DriverException, NoHostAvailable) as error:
        raise ClusterUnavailable(f"cannot read the nodes' settings: {error}") from error
    if mode is None or (mode or _DEFAULT) == _DEFAULT:
        found = "does not exist in this version" if mode is None else f"is {_DEFAULT}"
        raise SetupUnusable(
            f"--sstable-version {version}: {_SETTING} {found}; nodes read such files if it is "
            "UPGRADING or NONE: leave the option out"
        )
