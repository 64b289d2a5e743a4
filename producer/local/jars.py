"""Cassandra's jars: downloaded once, checked against pinned digests, kept in the user's cache.

jgo downloads each jar into a partial folder; only a jar with the pinned SHA-256 is renamed into the
cache. So an interrupted download never leaves a broken jar behind, and a second process waits on
a file lock instead of downloading the same files.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path

from producer.local.errors import ExtraMissing, LocalStackError
from producer.local.jar_list import jar_list
from producer.local.state import locked

#: Concurrent downloads: enough to hide the latency of 100 small files, yet polite to a registry.
DOWNLOADS_MAX = 6
#: Seconds that a registry may stay silent.
TIMEOUT_S = 30
#: Attempts per jar; a registry that refuses one request in a hundred should not end a demo.
TRIES_MAX = 3

#: Callback after each jar, with the number of jars present and the total.
FetchProgress = Callable[[int, int], None]


def cassandra_jars(cache_dir: Path, on_progress: FetchProgress | None = None) -> list[Path]:
    """Return the jars of a Cassandra node; download those missing from `cache_dir`.

    Raises `ExtraMissing` without the extra that downloads, and `LocalStackError` if a jar cannot be
    downloaded or does not match its pinned digest.
    """
    listed = jar_list()
    folder = cache_dir / "jars" / f"cassandra-{listed.cassandra_version}"
    wanted = {coordinate: folder / jar_name(coordinate) for coordinate in listed.digests}
    if not all(path.exists() for path in wanted.values()):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "fetch.lock"):
            _fetch_missing(folder, wanted, on_progress)
    return list(wanted.values())


def jar_name(coordinate: str) -> str:
    """Return a file name, unique across groups, for `group:artifact:version[:classifier]`."""
    group, artifact, *rest = coordinate.split(":")
    return f"{group}.{'-'.join([artifact, *rest])}.jar"


def _fetch_missing(
    folder: Path, wanted: dict[str, Path], on_progress: FetchProgress | None
) -> None:
    if find_spec("jgo") is None:
        raise ExtraMissing("jgo, which fetches Cassandra,")
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    missing = {name: path for name, path in wanted.items() if not path.exists()}
    done = len(wanted) - len(missing)
    pool = ThreadPoolExecutor(DOWNLOADS_MAX)
    try:
        tasks = [pool.submit(_fetch, name, path, partial) for name, path in missing.items()]
        for task in as_completed(tasks):
            task.result()
            done += 1
            if on_progress is not None:
                on_progress(done, len(wanted))
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(coordinate: str, target: Path, partial: Path) -> None:
    """Download one jar into its own folder in `partial`, check it, and rename it to `target`."""
    pinned = jar_list().digests[coordinate]
    for attempt in range(1, TRIES_MAX + 1):
        try:
            fetched = _download(coordinate, partial / f"{target.stem}.{attempt}")
        except Exception as error:  # jgo raises RuntimeError, requests' and its own errors
            if attempt == TRIES_MAX:
                raise LocalStackError(
                    f"cannot fetch {coordinate} for the local Cassandra: {error}. "
                    "Check the network or the proxy settings and run the command again; "
                    "jars already downloaded are kept."
                ) from error
            continue
        found = _sha256(fetched)
        if found == pinned:
            os.replace(fetched, target)
            return
    raise LocalStackError(
        f"{coordinate} was fetched, but its SHA-256 is {found} and not the pinned "
        f"{pinned}. It is not used. A proxy that alters files is the usual cause."
    )


def _download(coordinate: str, folder: Path) -> Path:
    from jgo.config import GlobalSettings
    from jgo.maven import MavenContext

    settings = GlobalSettings.load()
    context = MavenContext(
        repo_cache=folder, remote_repos=_remotes(settings.repositories), timeout=TIMEOUT_S
    )
    path: Path = context.create_dependency(coordinate).artifact.resolve()
    return path


def _remotes(configured: dict[str, str]) -> dict[str, str]:
    """Return the user's repositories (such as a company mirror), followed by the public one."""
    from jgo.constants import MAVEN_CENTRAL_URL

    return {**configured, "central": configured.get("central", MAVEN_CENTRAL_URL)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
