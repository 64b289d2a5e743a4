"""The version of a local file: what shows that it is still the file that a job was planned with.

Size and modification time are compared on every host. Where a process sees the file through the
same kernel as the process that planned, the inode and the time of the last change are compared too:
they show that a file was replaced by another with the same size and times, or was rewritten and got
its old modification time back. A change of permissions, owner or links also sets the time of the
last change, and counts as no change of the content.

This imports little, because `storage.preflight` has to be quick.
"""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from ringhaul.errors import SourceChanged

#: A kernel's clock for files moves in ticks of up to 10 ms. A file that changed within this time
#: may change once more without its times showing it.
TICK_NS = 20_000_000
#: The same where times are whole seconds: FAT counts in twos.
COARSE_TICK_NS = 2_000_000_000
#: Granularities of times on mounts that keep fewer digits than the disk behind them.
_GRANULARITIES_NS = (100, 1000, 1_000_000, 1_000_000_000, COARSE_TICK_NS)
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MOUNTS = "/proc/self/ns/mnt"
_MOUNT_LIST = "/proc/self/mountinfo"
#: How the names of file systems begin that have no inode numbers of their own.
_RENUMBERING = ("vfat ", "msdos ", "exfat ", "fuse", "cifs ", "smb3 ")
#: Begins the text of a version; another form would begin with another word.
_FORM = "file"
_AGAIN = "start again once nothing writes to it"


class FileVersion(NamedTuple):
    """What a file looks like, without its size."""

    #: Kernel that shows the file: all its processes see the same inodes and times.
    kernel: str
    mounts: str  #: mount namespace within the kernel: a container has its own
    device: int
    inode: int
    modified_ns: int
    changed_ns: int
    #: Permissions, owner, group, links: what may change and leave the content as it is.
    about: str

    @classmethod
    def of(cls, status: os.stat_result) -> FileVersion:
        kernel, mounts = _here()
        about = f"{status.st_mode:o}.{status.st_uid}.{status.st_gid}.{status.st_nlink}"
        return cls(
            kernel,
            mounts,
            status.st_dev,
            status.st_ino,
            status.st_mtime_ns,
            status.st_ctime_ns,
            about,
        )

    @classmethod
    def parse(cls, text: str) -> FileVersion | None:
        """Return the version with this text; None if it has another form or there is none: then
        only sizes can be compared."""
        form, *words = text.split() or [""]
        if form != _FORM or len(words) != len(cls._fields):
            return None
        kernel, mounts, *numbers, about = words
        try:
            device, inode, modified_ns, changed_ns = map(int, numbers)
        except ValueError:
            return None
        return cls(kernel, mounts, device, inode, modified_ns, changed_ns, about)

    @property
    def text(self) -> str:
        """What `parse` takes."""
        return " ".join(map(str, (_FORM, *self)))

    def is_near(self, other: FileVersion) -> bool:
        """Return whether inodes and times of change can be compared: both were seen through one
        kernel, and in one mount namespace or on one device.

        A container may have a copy of its own under the same path.
        """
        return self.kernel == other.kernel and (
            self.mounts == other.mounts or self.device == other.device
        )

    def ready_ns(self, now_ns: int) -> int:
        """Return in how many nanoseconds any later change will show; 0: it would now."""
        times = (self.modified_ns, self.changed_ns)
        whole = not any(time % 1_000_000_000 for time in times)
        tick_ns = COARSE_TICK_NS if whole else TICK_NS
        # A time ahead of this clock was set by a user, or by a server whose clock is ahead.
        return max((time + tick_ns - now_ns for time in times if time <= now_ns), default=0)


#: The fields of a version that are times.
_TIMES = slice(4, 6)


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return what stays the same as long as nothing at all happens to a file."""
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def version_text(status: os.stat_result) -> str:
    """Return the version of a file as a job keeps it."""
    return FileVersion.of(status).text


def changed(size_bytes: int, then: FileVersion | None, status: os.stat_result) -> str:
    """Return what changed about a file that had this size and version, for a message that begins
    with its path; empty if it is the same file. `then`: None if it is not known."""
    if status.st_size != size_bytes:
        return (
            f"the file is {status.st_size:,} bytes now and was {size_bytes:,} when the job "
            f"started; {_AGAIN}"
        )
    if then is None:
        return ""
    now = FileVersion.of(status)
    if not then.is_near(now):
        if _same_time(then.modified_ns, now.modified_ns):
            return ""
        return (
            f"the file was modified at {time_text(now.modified_ns)}, and the job was planned with "
            f"one of {time_text(then.modified_ns)}; {_AGAIN}, and let copies of it on other hosts "
            "keep that time (cp -p, rsync -t)"
        )
    times = f"modified {time_text(then.modified_ns)} then, {time_text(now.modified_ns)} now"
    if then.inode != now.inode and not (then[_TIMES] == now[_TIMES] and _renumbers(status.st_dev)):
        return (
            "the file was replaced by another one of the same size since the job started "
            f"({times}); start again once nothing replaces it"
        )
    if then.modified_ns != now.modified_ns:
        return f"the file was written to since the job started ({times}); {_AGAIN}"
    if then.changed_ns != now.changed_ns and then.about == now.about:
        return (
            "the file may have been rewritten since the job started: its size and modification "
            f"time are the same, but it was changed at {time_text(now.changed_ns)}; {_AGAIN}"
        )
    return ""


def read_small(path: str | os.PathLike[str], bytes_max: int) -> bytes:
    """Return the content of a small file, such as a list, as it was at one time.

    Returns more than `bytes_max` bytes if there are more. Raises `OSError`, and `SourceChanged` for
    a file that is written to meanwhile.
    """
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        data = file.read(bytes_max + 1)
        after = os.fstat(file.fileno())
    times = (before.st_mtime_ns, after.st_mtime_ns)
    if stat.S_ISREG(after.st_mode) and (before.st_size != after.st_size or times[0] != times[1]):
        raise SourceChanged(f"{path}: the file was written to while it was read; {_AGAIN}")
    return data


def unlike(size_bytes: int, version: str, status: os.stat_result) -> str:
    """Return how a file of this host differs from the file that another host sees under this path;
    empty if it does not."""
    if status.st_size != size_bytes:
        return f"{status.st_size:,} bytes on the worker, {size_bytes:,} here"
    then = FileVersion.parse(version) if version else None
    if then is None or not changed(size_bytes, then, status):
        return ""
    now_ns = status.st_mtime_ns
    if _same_time(then.modified_ns, now_ns):
        return "another file on the worker than here"
    return (
        f"modified at {time_text(now_ns)} on the worker, at {time_text(then.modified_ns)} here; "
        "copies must keep the time (cp -p, rsync -t)"
    )


def time_text(time_ns: int) -> str:
    """Return a time in UTC with all its digits."""
    seconds, rest_ns = divmod(time_ns, 1_000_000_000)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns:09}Z"
    except (ValueError, OverflowError):  # a year beyond 9999
        return f"{seconds}.{rest_ns:09} s"


def _same_time(then_ns: int, now_ns: int) -> bool:
    """Return whether two hosts may show the same time, perhaps with fewer digits on one host."""
    if then_ns == now_ns:
        return True
    return any(
        then_ns // unit == now_ns // unit and 0 in (then_ns % unit, now_ns % unit)
        for unit in _GRANULARITIES_NS
    )


def _renumbers(device: int) -> bool:
    """Return whether a device has a file system that changes inode numbers from time to time."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNT_LIST, encoding="utf-8", errors="replace") as file:
            mounts = [line.partition(" - ") for line in file]
    except OSError:
        return False
    kinds = [kind for mount, _, kind in mounts if mount.split()[2:3] == [wanted]]
    return any(kind.startswith(_RENUMBERING) for kind in kinds)


@cache
def _here() -> tuple[str, str]:
    """Return the kernel and the mount namespace of this process."""
    try:
        with open(_BOOT_ID) as file:
            kernel = file.read().strip().replace("-", "")[:16]
        mounts = os.readlink(_MOUNTS).strip("mnt:[]")
    except OSError:
        # Not Linux, so there are no containers, which may share a name.
        kernel, mounts = "".join(os.uname().nodename.split()), ""
    return kernel or "-", mounts or "-"
