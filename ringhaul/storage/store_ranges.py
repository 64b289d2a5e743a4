"""Read parts of one version of an object: a request for another version fails.

A request to S3 names the ETag that the object must have. A request to another kind of store cannot;
there a unit compares the object's version before it reads and before it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringhaul.errors import SourceChanged, SourceMissing, SourceUnavailable
from ringhaul.storage.access import mask_url, same_version, scheme_of
from ringhaul.storage.errors import store_errors
from ringhaul.storage.stores import open_store

#: Codes of S3's answer that the object has another ETag.
_OTHER_VERSION = ("PreconditionFailed", "412")
#: Tries of a part, if connections break off in the middle of it.
_TRIES = 3


class StoreRanges:
    """The parts of an object. Threads may call it concurrently."""

    def __init__(self, url: str, version: str) -> None:
        """`version`: see `storage.remote.RemoteFile`."""
        self._url, self._version = url, version
        self._store, self._path = open_store(url)
        self._conditional = bool(version) and scheme_of(url) in ("s3", "s3a")

    def fetch(self, start: int, end: int) -> bytes:
        """Return the bytes [start, end), which are in the object.

        Raises `SourceChanged`, `SourceMissing` and `SourceUnavailable`.
        """
        with store_errors(self._url, refused=SourceMissing, away=SourceUnavailable):
            if self._conditional:
                data = self._fetch_version(start, end)
            else:
                data = bytes(self._store.cat_file(self._path, start=start, end=end))
        if len(data) != end - start:
            raise SourceChanged(
                f"{mask_url(self._url)}: the file ended early; something shortened it"
            )
        return data

    def _fetch_version(self, start: int, end: int) -> bytes:
        from fsspec.asyn import sync

        try:
            version, data = sync(self._store.loop, self._get, start, end)
        except Exception as error:
            if any(code in _OTHER_VERSION for code in _codes(error)):
                raise self._changed() from error
            raise
        # Some stores that speak S3 ignore the condition.
        if version and not same_version(version, self._version):
            raise self._changed()
        return bytes(data)

    async def _get(self, start: int, end: int) -> tuple[str, bytes]:
        """Return the version and the bytes of a part."""
        bucket, key, version_id = self._store.split_path(self._path)
        fields: dict[str, Any] = {"VersionId": version_id} if version_id else {}
        for left in reversed(range(_TRIES)):
            answer = await self._store._call_s3(
                "get_object",
                Bucket=bucket,
                Key=key,
                Range=f"bytes={start}-{end - 1}",
                IfMatch=f'"{self._version}"',
                **fields,
            )
            try:
                return answer.get("ETag", "").strip('"'), await answer["Body"].read()
            except Exception:
                if not left:
                    raise
            finally:
                answer["Body"].close()
        raise AssertionError("the last try returns or raises")

    def _changed(self) -> SourceChanged:
        return SourceChanged(
            f"{mask_url(self._url)}: the file was replaced since the job started; start again with "
            "a new job"
        )

    def close(self) -> None:
        pass  # the process keeps its client


def _codes(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            yield str(response.get("Error", {}).get("Code", ""))
        error = error.__cause__
