"""Inputs and outputs of a job behind URLs, looked at from one host."""

from __future__ import annotations

from ringhaul.errors import RinghaulError
from ringhaul.storage.folders import try_writing
from ringhaul.storage.remote import RemoteFile, check_unchanged


def look_at_url(url: str, size_bytes: int, version: str) -> str:
    """Return what is wrong with a source, as this host sees it; empty if all is well."""
    try:
        check_unchanged(RemoteFile(url, size_bytes, version))
    except RinghaulError as error:
        return _without(url, str(error))
    return ""


def look_at_store(url: str) -> str:
    """Return why the place cannot be written to; empty if it can."""
    try:
        try_writing(url)
    except RinghaulError as error:
        return _without(url, str(error))
    return ""


def _without(url: str, text: str) -> str:
    """Return a message without the URL at its beginning, which is shown anyway."""
    return text.removeprefix(url).removeprefix(": ")
