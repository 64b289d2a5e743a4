"""The manifest: which files of a folder are the unload; written when all of them exist."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ringhaul.errors import UsageError
from ringhaul.formats.write import OutputFormat
from ringhaul.output.missing_ranges import MissingRange
from ringhaul.output.parts import PartInfo, new_sum
from ringhaul.output.unloadable_rows import Unloadable
from ringhaul.storage.folders import open_folder
from ringhaul.storage.hidden import MANIFEST, MANIFESTS

VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Transformed:
    """The functions that the rows went through. The rows given to them became rows of the parts,
    unless dropped or rejected."""

    functions: tuple[str, ...]
    rows_given: int
    dropped: int
    rejected: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What an unload has written. A folder without a manifest holds an unfinished unload."""

    job: str
    keyspace: str
    table: str
    statement: str  #: the SELECT whose rows these are
    columns: tuple[tuple[str, str], ...]  #: name and CQL type of each
    format: OutputFormat
    created: str  #: when it was written: ISO 8601, UTC
    parts: tuple[PartInfo, ...]  #: in token order
    transform: Transformed | None = None  #: None: the parts hold the statement's rows unchanged
    missing: tuple[MissingRange, ...] = ()  #: token ranges that could not be read, in token order
    #: Columns, with their types, whose values are in the names of folders, not in the files.
    partition_by: tuple[tuple[str, str], ...] = ()
    unloadable: tuple[Unloadable, ...] = ()  #: rows of the parts that no load can put back

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    def to_json(self) -> dict[str, Any]:
        """Return a dict of JSON types that `from_json` takes."""
        return {
            "version": VERSION,
            "job": self.job,
            "keyspace": self.keyspace,
            "table": self.table,
            "statement": self.statement,
            "columns": [{"name": name, "type": cql_type} for name, cql_type in self.columns],
            "format": self.format.to_json(),
            "created": self.created,
            **({"transform": asdict(self.transform)} if self.transform else {}),
            **({"missing": [one.to_json() for one in self.missing]} if self.missing else {}),
            **(
                {"partition_by": [{"name": n, "type": t} for n, t in self.partition_by]}
                if self.partition_by
                else {}
            ),
            **({"unloadable": [o.to_json() for o in self.unloadable]} if self.unloadable else {}),
            "totals": {"parts": len(self.parts), "rows": self.rows, "bytes": self.bytes},
            "parts": [part.to_json() for part in self.parts],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """Read `to_json`'s dict. Raises `KeyError`, `TypeError`, `UsageError` for any other."""
        return cls(
            **{name: data[name] for name in ("job", "keyspace", "table", "statement", "created")},
            columns=tuple((column["name"], column["type"]) for column in data["columns"]),
            format=OutputFormat.from_json(data["format"]),
            parts=tuple(PartInfo.from_json(part) for part in data["parts"]),
            transform=_transformed(data.get("transform")),
            missing=tuple(MissingRange.from_json(one) for one in data.get("missing", ())),
            partition_by=tuple((one["name"], one["type"]) for one in data.get("partition_by", ())),
            unloadable=tuple(Unloadable.from_json(one) for one in data.get("unloadable", ())),
        )


def _transformed(data: Mapping[str, Any] | None) -> Transformed | None:
    if data is None:
        return None
    return Transformed(**{**data, "functions": tuple(data["functions"])})


def write_manifest(url: str, manifest: Manifest) -> None:
    """Write the manifest atomically over an existing one, and remove a manifest of this job that
    an earlier ringhaul wrote under another name.

    Raises `OutputUnusable` and `OutputUnavailable`.
    """
    folder = open_folder(url)
    file = folder.create(MANIFEST)
    try:
        file.write(json.dumps(manifest.to_json(), indent=1, ensure_ascii=False).encode() + b"\n")
        file.publish()
    except BaseException:
        file.discard()
        raise
    for name in MANIFESTS[1:]:
        if _job_of(folder.read(name)) == manifest.job:
            folder.remove(name)


def _job_of(data: bytes | None) -> str | None:
    try:
        return None if data is None else str(json.loads(data)["job"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def read_manifest(url: str) -> Manifest | None:
    """Return the manifest of a folder; None if it has none. Raises `UsageError` if unreadable."""
    folder = open_folder(url)
    for name in MANIFESTS:
        data = folder.read(name)
        if data is not None:
            return _parse(data, url, name)
    return None


def _parse(data: bytes, url: str, name: str) -> Manifest:
    try:
        fields = json.loads(data)
        version = fields["version"]
        if version == VERSION:
            return Manifest.from_json(fields)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, UsageError) as error:
        raise UsageError(f"{url}: its {name} is not one of ringhaul's: {error!r}") from error
    raise UsageError(
        f"{url}: its {name} has version {version}, and this ringhaul reads {VERSION}; "
        "use the ringhaul that wrote it, or a newer one"
    )


def check_parts(url: str, parts: tuple[PartInfo, ...], *, contents: bool = False) -> list[str]:
    """Return what is wrong with the files of `parts`, for people; empty if nothing is.

    Checks names and sizes, with `contents` every byte too. Missing parts are most often on another
    host: a worker wrote to its own folder with that name.
    """
    folder = open_folder(url)
    sizes = folder.sizes(deep=any("/" in part.name for part in parts))
    wrong = []
    for part in parts:
        if part.name not in sizes:
            wrong.append(f"{part.name}: is not there")
        elif sizes[part.name] != part.bytes:
            wrong.append(f"{part.name}: has {sizes[part.name]} bytes, and had {part.bytes}")
        elif contents:
            kind, _, expected = part.checksum.partition(":")
            found = new_sum(kind)
            found.update(folder.read(part.name) or b"")
            if found.hexdigest() != expected:
                wrong.append(f"{part.name}: its {kind} is {found.hexdigest()}, and was {expected}")
    return wrong
