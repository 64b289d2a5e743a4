"""What the settings allow a process to open, and where it sorts rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.settings import Settings
from ringhaul.storage.access import Access, set_access
from ringhaul.storage.sorting import SpillBounds

if TYPE_CHECKING:
    from ringhaul.records.job import LoadJob


def spill_bounds(settings: Settings, job: LoadJob) -> SpillBounds:
    """Return where worker processes keep rows that they sort, and how large SSTables get."""
    sstables = settings.sstables
    return SpillBounds(
        folder=str(sstables.spill_dir or settings.state_dir.absolute() / "sort"),
        spill_bytes_max=sstables.spill_bytes_max,
        sstable_bytes=job.sstable_bytes,
        memory_bytes=sstables.sort_bytes,
    )


def use_storage(settings: Settings) -> None:
    """Restrict this process to the paths and URLs that its settings allow."""
    set_access(storage_access(settings))


def storage_access(settings: Settings) -> Access:
    """Return what this host may open for jobs. In its state folder, which holds a password, that is
    only what jobs keep there: streams and partial results."""
    limits = settings.storage.model_dump()
    if roots := settings.storage.allowed_roots:
        kept = [str(settings.state_dir.absolute() / name) for name in ("spool", "spill")]
        spill = settings.query.spill_dir
        limits["allowed_roots"] = (*roots, *kept, *([str(spill)] if spill else []))
    return Access(**limits)
