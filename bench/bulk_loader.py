"""DataStax Bulk Loader from its Maven artifacts, without its installer."""

from __future__ import annotations

from functools import cache

from config.sections import cache_dir_default
from producer.local.java import find_java

VERSION = "1.10.0"
ARTIFACTS = (
    "dsbulk-runner",
    "dsbulk-workflow-load",
    "dsbulk-workflow-unload",
    "dsbulk-connectors-csv",
    "dsbulk-connectors-json",
    "dsbulk-batcher-reactor",
    "dsbulk-executor-reactor",
)
MAIN_CLASS = "com.datastax.oss.dsbulk.runner.DataStaxBulkLoader"


@cache
def bulk_loader_command() -> tuple[str, ...]:
    """Return its command line; the first call downloads its 90 jars (40 MB) into the cache."""
    import jgo
    from jgo.config import GlobalSettings

    environment = jgo.build(
        "+".join(f"com.datastax.oss:{artifact}:{VERSION}" for artifact in ARTIFACTS),
        cache_dir=cache_dir_default() / "bench" / "dsbulk",
        # The user's repository (a company mirror) before the public one.
        repositories=GlobalSettings.load().repositories,
    )
    class_path = ":".join(str(jar) for jar in environment.all_jars)
    return (str(find_java().path), "-cp", class_path, MAIN_CLASS)
