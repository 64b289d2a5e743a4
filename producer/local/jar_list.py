"""The pinned jars of a Cassandra node, from `jars.toml`, and the version of Cassandra.

A local node runs code from a public registry, so the jars are pinned there and checked before use.
The list also saves reading about 300 POM files to resolve them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple


class JarList(NamedTuple):
    """The jars of one version of Cassandra."""

    cassandra_version: str
    #: Coordinate, `group:artifact:version[:classifier]` -> SHA-256 in hexadecimal.
    digests: Mapping[str, str]


@cache
def jar_list() -> JarList:
    """Return the list, which is read once."""
    text = resources.files(__package__).joinpath("jars.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)
    return JarList(found["cassandra"], found["jars"])
