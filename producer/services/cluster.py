"""A driver session that is opened while the command still imports the modules it needs.

Connecting is mostly waiting for the server; importing what a command needs beside the driver takes
longer. This module imports the driver itself, because two threads that import block each other.
"""

from __future__ import annotations

import threading
from typing import Self

from cassandra.cluster import Session

from config.settings import Settings
from ringhaul.cluster.connect import close_session, open_session
from ringhaul.cluster.driver_view import DriverView
from ringhaul.cluster.view import ClusterView
from tasks.cluster_settings import cluster_config


class Opening:
    """Opens one session in a thread. A context manager: it closes what it opened."""

    def __init__(self, settings: Settings) -> None:
        self._config = cluster_config(settings)
        self._session: Session | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._open, name="opening", daemon=True)
        self._thread.start()

    def session(self) -> Session:
        """Wait for the session and return it. Raises as `open_session` does."""
        self._thread.join()
        if self._session is None:
            assert self._error is not None
            raise self._error
        return self._session

    def view(self) -> ClusterView:
        """Wait for the session and return the cluster as it sees it. Raises as `open_session`."""
        return DriverView(self.session())

    def close(self) -> None:
        """Close the session as soon as it is open, without waiting for that."""
        threading.Thread(target=self._close, name="closing", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        try:
            self._session = open_session(self._config)
        except BaseException as error:  # raised again by `session`
            self._error = error

    def _close(self) -> None:
        self._thread.join()
        if self._session is not None:
            close_session(self._session)
