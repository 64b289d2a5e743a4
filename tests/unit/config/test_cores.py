"""Usable cores, from cgroup files as kernels write them and mount tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from config import cores
from config.cores import cores_within, group_folders, quotas, usable_cores, v1_quota, v2_quota

#: /proc/self/cgroup of Docker with v1 alone, and no namespace for cgroups.
DOCKER_V1 = """\
12:memory:/docker/4f1c
5:cpuset:/docker/4f1c
3:cpu,cpuacct:/docker/4f1c
1:name=systemd:/docker/4f1c
"""
#: A systemd service on a host with v2 beside v1, which has the controllers.
HYBRID = """\
4:cpu,cpuacct:/system.slice
2:cpuset:/
1:name=systemd:/system.slice/ringhaul-worker@1.service
0::/system.slice/ringhaul-worker@1.service
"""


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("max 100000\n", None),
        ("150000 100000\n", 1.5),
        ("200000 100000\n", 2.0),
        ("5000 100000\n", 0.05),
        ("50000 0\n", None),
        ("200000\n", None),
        ("many 100000\n", None),
        ("", None),
    ],
)
def test_quotas_of_v2(text: str, quota: float | None) -> None:
    assert v2_quota(text) == quota


@pytest.mark.parametrize(
    ("text", "period", "quota"),
    [
        ("-1\n", "100000\n", None),
        ("250000\n", "100000\n", 2.5),
        ("100000\n", "50000\n", 2.0),
        ("100000\n", "", None),
        ("", "", None),
    ],
)
def test_quotas_of_v1(text: str, period: str, quota: float | None) -> None:
    assert v1_quota(text, period) == quota


@pytest.mark.parametrize(
    ("seen", "limits", "usable"),
    [
        (64, [], 64),
        (64, [2.0], 2),
        (64, [1.5], 2),
        (64, [0.05], 1),
        (64, [8.0, 2.01], 3),
        (2, [8.0], 2),
    ],
)
def test_the_least_of_all_limits_is_rounded_up(seen: int, limits: list[float], usable: int) -> None:
    assert cores_within(seen, limits) == usable


@pytest.mark.parametrize(
    ("membership", "folders"),
    [
        ("0::/\n", [".", "unified"]),
        (
            "0::/a.slice/b\n",
            ["a.slice/b", "a.slice", ".", "unified/a.slice/b", "unified/a.slice", "unified"],
        ),
        ("0::/../../c\n", [".", "unified"]),
        (
            DOCKER_V1,
            [
                *("cpu,cpuacct/docker/4f1c", "cpu,cpuacct/docker", "cpu,cpuacct"),
                *("cpu/docker/4f1c", "cpu/docker", "cpu"),
            ],
        ),
        ("1:cpu:/\n", ["cpu"]),
        ("5:cpuset:/\n", []),
        ("not a line of it\n:\n", []),
        ("", []),
    ],
)
def test_folders_of_a_group_and_of_all_above_it(membership: str, folders: list[str]) -> None:
    assert [str(folder) for folder in group_folders(membership)] == folders


@pytest.mark.parametrize(
    ("membership", "files", "found"),
    [
        # The limit of a pod holds for its containers.
        (
            "0::/kubepods/pod1/c1\n",
            {
                "kubepods/pod1/c1/cpu.max": "max 100000",
                "kubepods/pod1/cpu.max": "200000 100000",
                "kubepods/cpu.max": "6000000 100000",
            },
            [2.0, 60.0],
        ),
        ("0::/\n", {"cpu.max": "150000 100000"}, [1.5]),
        ("0::/\n", {}, []),
        # The container sees its own group as the root.
        (
            DOCKER_V1,
            {
                "cpu,cpuacct/cpu.cfs_quota_us": "250000",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            [2.5],
        ),
        (
            HYBRID,
            {
                "unified/system.slice/cpu.stat": "usage_usec 1",
                "cpu,cpuacct/system.slice/cpu.cfs_quota_us": "400000",
                "cpu,cpuacct/system.slice/cpu.cfs_period_us": "100000",
                "cpu,cpuacct/cpu.cfs_quota_us": "-1",
                "cpu,cpuacct/cpu.cfs_period_us": "100000",
            },
            [4.0],
        ),
        (None, {"cpu.max": "150000 100000"}, []),
    ],
)
def test_quotas_are_read_where_they_are_mounted(
    tmp_path: Path, membership: str | None, files: dict[str, str], found: list[float]
) -> None:
    mount = tmp_path / "sys"
    for name, text in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    if membership is not None:
        (tmp_path / "cgroup").write_text(membership)
    assert quotas(tmp_path / "cgroup", mount) == found


@pytest.mark.parametrize(("count", "usable"), [(7, 7), (None, 1)])
def test_all_cores_are_used_where_affinity_is_not_supported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int | None, usable: int
) -> None:
    """As on macOS."""
    monkeypatch.setattr("os.cpu_count", lambda: count)
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(cores, "MEMBERSHIP", tmp_path / "no proc here")
    assert usable_cores() == usable
