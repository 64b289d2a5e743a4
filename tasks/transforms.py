"""The transforms of a job, where this host's settings allow them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from config.settings import Settings

if TYPE_CHECKING:
    from ringhaul.transform.chain import Transform


def transforms_of(settings: Settings, names: Sequence[str]) -> tuple[Transform, ...]:
    """The functions of these names; their modules are imported once by each process.

    Raises `TransformError` (terminal) that names this host.
    """
    if not names:
        return ()
    from ringhaul.transform.loading import load_transforms  # what most jobs do not need to import

    return load_transforms(names, settings.transform.allowed, settings.transform.path)
