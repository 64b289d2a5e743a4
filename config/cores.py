"""How many processes of ours have a core to run on: affinity, and the CPU quota of a container.

`taskset`, a cpuset and systemd's `CPUAffinity=` leave fewer cores than the machine has. A quota
(`docker --cpus`, a CPU limit of Kubernetes, systemd's `CPUQuota=`) leaves them all to be seen, and
stops every process of the group for the rest of a period once they have used their time: with two
cores' worth on a host of 64, 64 processes would mostly stand still, each with a session and its
memory.

Where the kernel tells of it:

- cgroup v2 (Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files"): `cpu.max`, "$MAX
  $PERIOD" in microseconds, `max` for no limit. Limits are hierarchical, so that of any ancestor
  holds too. The root has no such file; a container mostly takes its own group for the root
  (`0::/`), and then the file is there.
- cgroup v1 (Documentation/scheduler/sched-bwc.rst): `cpu.cfs_quota_us`, -1 for no limit, and
  `cpu.cfs_period_us`, in the hierarchy of the `cpu` controller. A container without a namespace
  for cgroups is told the host's path there, of which it sees its own group alone, as the root.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

#: The groups of this process: `hierarchy:controllers:path` lines, see cgroups(7).
MEMBERSHIP = Path("/proc/self/cgroup")
#: Where systemd and container runtimes mount the hierarchies.
MOUNT = Path("/sys/fs/cgroup")
#: That of v2 beside those of v1, where a host has both.
_UNIFIED = "unified"


def usable_cores() -> int:
    """Cores that this process may use, at least 1: of a quota of 1.5 cores, 2."""
    return cores_within(_cores_seen(), quotas(MEMBERSHIP, MOUNT))


def cores_within(seen: int, limits: Iterable[float]) -> int:
    """The least of the cores that are `seen` and of quotas in cores, rounded up, at least 1."""
    return max(1, min([seen, *(math.ceil(limit) for limit in limits)]))


def quotas(membership: Path, mount: Path) -> list[float]:
    """The quotas, in cores, of a process's groups and all above them. What cannot be read is none:
    no kernel with groups, no such controller, or nobody's business in there."""
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
    """Folders below the mount that may hold a quota for the process, of which many do not exist.

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
        # A group outside of the process's namespace is told as `/..`, and cannot be looked at.
        group = PurePosixPath(path.lstrip("/")) if ".." not in path.split("/") else PurePosixPath()
        for top in tops:
            for folder in (group, *group.parents):
                yield PurePosixPath(top) / folder


def v2_quota(text: str) -> float | None:
    """Cores that a `cpu.max` allows, such as 1.5 for `150000 100000`; None: it sets no limit."""
    words = text.split()
    return _cores(words[0], words[1]) if len(words) == 2 else None


def v1_quota(quota: str, period: str) -> float | None:
    """Cores that `cpu.cfs_quota_us` and `cpu.cfs_period_us` allow; None: they set no limit."""
    return _cores(quota.strip(), period.strip())


def _cores(quota: str, period: str) -> float | None:
    """Of two counts of microseconds. `max` and -1, and what is no count, are no limit."""
    if not (quota.isdecimal() and period.isdecimal()) or 0 in (int(quota), int(period)):
        return None
    return int(quota) / int(period)


def _cores_seen() -> int:
    """Cores that the scheduler may put this process on."""
    if sys.platform == "linux":  # macOS has no such call
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _text(path: Path) -> str:
    """What a file says; nothing if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
