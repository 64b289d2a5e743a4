"""Count the cores that this process may use, by affinity and by the CPU quota of a container.

`taskset`, a cpuset and systemd's `CPUAffinity=` leave fewer cores than the machine has. A quota
(`docker --cpus`, a CPU limit of Kubernetes, systemd's `CPUQuota=`) leaves all cores visible, but
stops every process of the group for the rest of a period once they have used their time: with a
quota of two cores on a host of 64, 64 processes would mostly stand still, each with a session and
its memory.

Sources of the quota:

- cgroup v2 (Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files"): `cpu.max`, "$MAX
  $PERIOD" in microseconds, `max` for no limit. Limits are hierarchical: the limits of all ancestors
  apply too. The root has no such file; but a container mostly sees its own group as the root
  (`0::/`), which has that file.
- cgroup v1 (Documentation/scheduler/sched-bwc.rst): `cpu.cfs_quota_us`, -1 for no limit, and
  `cpu.cfs_period_us`, in the hierarchy of the `cpu` controller. There a container without a cgroup
  namespace is given the host's path, but sees only its own group, mounted as the root.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

#: Lists the groups of this process as `hierarchy:controllers:path` lines, see cgroups(7).
MEMBERSHIP = Path("/proc/self/cgroup")
#: Where systemd and container runtimes mount the hierarchies.
MOUNT = Path("/sys/fs/cgroup")
#: Name of the v2 hierarchy's folder on a host that has v1 as well.
_UNIFIED = "unified"


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1. A quota of 1.5 gives 2."""
    return cores_within(_cores_seen(), quotas(MEMBERSHIP, MOUNT))


def cores_within(seen: int, limits: Iterable[float]) -> int:
    """Return the minimum of `seen` cores and quotas (in cores, rounded up), at least 1."""
    return max(1, min([seen, *(math.ceil(limit) for limit in limits)]))


def quotas(membership: Path, mount: Path) -> list[float]:
    """Return the quotas, in cores, of a process's groups and all their ancestors.

    A file that cannot be read counts as no quota: the kernel may lack cgroups or the controller, or
    the container may hide them.
    """
    found: list[float] = []
    for folder in group_folders(_text(membership)):
        quota = v2_quota(_text(mount / folder / "cpu.max"))
        if quota is None:
            quota = v1_quota(
                _text(mount / folder / "cpu.cfs_quota_us"),
                _text(mount / folder / "cpu.cfs_period_us"),
            )
        if quota is not None:
            found.append(quota)
    return found


def group_folders(membership: str) -> Iterator[PurePosixPath]:
    """Yield folders below the mount that may hold a quota for the process; many do not exist.

    `membership`: the text of `/proc/self/cgroup`.
    """
    for line in membership.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not path.startswith("/"):
            continue
        if not controllers:
            tops = ["", _UNIFIED]
        elif "cpu" in controllers.split(","):
            tops = list(dict.fromkeys([controllers, "cpu"]))
        else:
            continue
        # A group outside the process's namespace has a path such as `/..` and cannot be read.
        group = PurePosixPath(path.lstrip("/")) if ".." not in path.split("/") else PurePosixPath()
        for top in tops:
            for folder in (group, *group.parents):
                yield PurePosixPath(top) / folder


def v2_quota(text: str) -> float | None:
    """Return the cores that a `cpu.max` allows, such as 1.5 for `150000 100000`; None: no limit."""
    words = text.split()
    return _cores(words[0], words[1]) if len(words) == 2 else None


def v1_quota(quota: str, period: str) -> float | None:
    """Return the cores that `cpu.cfs_quota_us` and `cpu.cfs_period_us` allow; None: no limit."""
    return _cores(quota.strip(), period.strip())


def _cores(quota: str, period: str) -> float | None:
    """Divide two counts of microseconds. `max`, -1 and anything but a count mean no limit: None."""
    if not (quota.isdecimal() and period.isdecimal()) or 0 in (int(quota), int(period)):
        return None
    return int(quota) / int(period)


def _cores_seen() -> int:
    """Return the number of cores on which the kernel may schedule this process."""
    if sys.platform == "linux":  # macOS has no such call
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _text(path: Path) -> str:
    """Return a file's text; empty if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
