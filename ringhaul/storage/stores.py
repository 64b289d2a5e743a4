"""Object stores and other file systems behind URLs, by fsspec.

Use it after the fork of a worker: clients of stores hold threads and connections, which do not
survive a fork. fsspec keeps one client for each kind of store and process.
"""

from __future__ import annotations

from typing import Any

from ringhaul.errors import UsageError
from ringhaul.storage.access import OBJECT_STORES, access, check_url, mask_url, scheme_of

#: How to install a scheme's client.
_PACKAGES = {
    "s3": 'install ringhaul with its extra s3 (pip install "ringhaul[s3]")',
    "s3a": 'install ringhaul with its extra s3 (pip install "ringhaul[s3]")',
    "gs": 'install ringhaul with its extra gcs (pip install "ringhaul[gcs]")',
    "gcs": 'install ringhaul with its extra gcs (pip install "ringhaul[gcs]")',
}
CONNECT_TIMEOUT_S = 5
#: Time without any data after which a request fails.
READ_TIMEOUT_S = 20
#: botocore's attempts, which are for answers of 500 and above. s3fs repeats them five times if
#: nothing answers, so that an absent store is given up after some 5 s.
_TRIES = {"total_max_attempts": 2, "mode": "standard"}


def open_store(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the path in it. Connects to nothing.

    Raises `UsageError` if such URLs may not be opened, or their package is not installed.
    """
    check_url(url)
    try:
        import fsspec
    except ImportError:
        raise UsageError(
            f"{mask_url(url)}: URLs need the package fsspec; pip install fsspec"
        ) from None
    scheme = scheme_of(url)
    try:
        # Not `url_to_fs`: it would take `s3://a::file:///b` for a chain of stores.
        client = fsspec.get_filesystem_class(scheme)
        store = client(**client._get_kwargs_from_urls(url), **_options(scheme))
        path = client._strip_protocol(url)
    except ImportError as error:
        install = _PACKAGES.get(scheme)
        missing = f"{scheme}:// needs a package that is not installed: {install}"
        problem = missing if install else error
        raise UsageError(f"{mask_url(url)}: {problem}") from error
    except ValueError as error:
        raise UsageError(f"{mask_url(url)}: no such kind of URL: {error}") from error
    return store, path


def _options(scheme: str) -> dict[str, Any]:
    """Return the options of a client. It finds the host's credentials itself."""
    if scheme not in ("s3", "s3a"):
        return {"use_listings_cache": False} if scheme in OBJECT_STORES else {}
    config: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": READ_TIMEOUT_S,
        "retries": _TRIES,
    }
    options: dict[str, Any] = {
        # A cached listing may be outdated, so each listing is requested.
        "use_listings_cache": False,
        "config_kwargs": config,
    }
    endpoint = access().s3_endpoint_url
    if endpoint:
        options["endpoint_url"] = endpoint
        # Private servers seldom have a host name for each bucket.
        config["s3"] = {"addressing_style": "path"}
    return options
