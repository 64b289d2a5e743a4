"""Where a job's rows or its result are written, as its spec says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringhaul.formats.write import OutputFormat


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the parts of an unload go, and their format."""

    url: str  #: a folder: an absolute path, or a URL that fsspec knows
    format: OutputFormat
    rows_max: int = 0  #: per part; 0: no bound
    bytes_max: int = 0  #: per part's file, approximate; 0: no bound

    def to_json(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "format": self.format.to_json(),
            "rows_max": self.rows_max,
            "bytes_max": self.bytes_max,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Output:
        return cls(**data | {"format": OutputFormat.from_json(data["format"])})


@dataclass(frozen=True, kw_only=True)
class ResultOutput:
    """Where the result of a count or a query goes, and its form.

    Stored with the job, so that any command that finishes it handles the result as the command that
    started it would have.
    """

    path: str = ""  #: of a file, absolute; empty: standard output
    form: str = "auto"  #: table, csv, json, parquet; auto: decided where it is printed

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "form": self.form}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ResultOutput:
        return cls(**data)
