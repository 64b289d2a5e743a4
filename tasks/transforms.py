"""Import the transforms of a job, if this host's settings allow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from config.settings import Settings

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform


def transforms_of(settings: Settings, names: Sequence[str]) -> tuple[Transform, ...]:
    """Return the functions with these names; each process imports their modules once.

    Raises `TransformError` (terminal), which names this host.
    """
    if not names:
        return ()
    from ringhaul.transform.loading import load_transforms  # most jobs do not need it

    return load_transforms(names, settings.transform.allowed, settings.transform.path)
