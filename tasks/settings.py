"""The settings of this process, read once."""

from __future__ import annotations

from functools import cache

from config.settings import Settings, load_settings


@cache
def process_settings() -> Settings:
    """Return the settings of this process, read once."""
    return load_settings().settings
