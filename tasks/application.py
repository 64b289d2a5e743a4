"""The Celery application object. Importing this reads no settings and opens no connection.

A `ringhaul` command hands over its settings (`tasks.settings`). Otherwise they are read from the
environment and `ringhaul.toml` on first use, so all ways to start a worker (`ringhaul worker`,
`celery -A tasks worker`, a container) behave alike.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from celery import Celery
from celery.loaders.app import AppLoader
from kombu.transport import TRANSPORT_ALIASES

from config.celery_config import WORKER_ENVIRONMENT, celery_settings
from tasks.command_line import spell_as
from tasks.settings import process_settings

# Celery reads these when its own modules are imported.
for _name, _value in WORKER_ENVIRONMENT.items():
    os.environ.setdefault(_name, _value)


# What workers store about rows and units names options as users of the command line know them.
spell_as(None)

# No message in the broker, however malformed, may crash a worker: see `transport`.
TRANSPORT_ALIASES["redis"] = TRANSPORT_ALIASES["rediss"] = "tasks.transport:UnitTransport"


class InstalledLoader(AppLoader):  # type: ignore[misc]
    """Loader that imports installed modules only. Celery's own loader puts the current folder
    first, so a `numpy.py` that happens to lie there would run in place of numpy."""

    def import_from_cwd(self, module: str, imp: Any = None, package: str | None = None) -> Any:
        """Import a module from anywhere but the current folder."""
        return (imp or self.import_module)(module, package=package)


class UnitCelery(Celery):  # type: ignore[misc]
    """Celery application that uses our worker class, however the worker is started."""

    events_cls = "tasks.events:UnitEvents"

    @cached_property
    def Worker(self) -> Any:
        """The class of the worker's parent process."""
        return self.subclass_with_self("tasks.parent.shutdown:UnitWorker")


app = UnitCelery(
    "ringhaul",
    loader=InstalledLoader,
    include=["tasks.units", "tasks.signals"],
)
app.add_defaults(lambda: celery_settings(process_settings()))
# By name, since the step publishes messages through this application.
app.steps["worker"].add("tasks.parent.housekeeping:Keeper")
