"""The settings of this process: handed over by its command, or read once from the environment."""

from __future__ import annotations

import logging

from config.settings import Loaded, Settings, load_settings

log = logging.getLogger(__name__)

_loaded: Loaded | None = None


def use_settings(loaded: Loaded) -> None:
    """Make these the settings of this process. A command calls this before it uses Celery, whose
    application has no other way to learn of flags and of an embedded broker."""
    global _loaded
    _loaded = loaded


def warn_of_setting(text: str) -> None:
    """Log that a setting is left out. A worker of this version, in a fleet that is being upgraded,
    must not end because its settings are ahead of it."""
    log.warning("%s", text)


def loaded_settings() -> Loaded:
    """Return the settings of this process, with their origins. A worker that Celery's own command
    started reads them from its environment, once."""
    global _loaded
    if _loaded is None:
        _loaded = load_settings(leave_out=warn_of_setting)
    return _loaded


def process_settings() -> Settings:
    """Return the settings of this process."""
    return loaded_settings().settings
