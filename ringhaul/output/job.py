"""Where a job's rows or its result are written, as its spec says."""

from __future__ import annotations

import posixpath
from dataclasses import asdict, dataclass, replace
from typing import Any

from ringhaul.formats.write import OutputFormat

#: Compressions whose files, put one after the other, are one file.
_CONCATENATED = ("none", "gzip", "zstd", "bz2", "xz", "lz4")


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the parts of an unload go, and their format."""

    url: str  #: a folder of the parts: an absolute path, or a URL that fsspec knows
    format: OutputFormat
    rows_max: int = 0  #: per part; 0: no bound
    bytes_max: int = 0  #: per part's file, approximate; 0: no bound
    #: Path or URL of the single file that the parts become at the end; `url` is then a hidden
    #: folder beside it. Empty: the parts stay files.
    file: str = ""
    #: Whether the folder of `file` gets a manifest.
    listed: bool = True
    #: Pattern of the files' names at the end, see `FileNames`; empty: files are named like parts.
    names: str = ""

    #: Columns whose values name folders, instead of being in the files.
    partition_by: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the user finds the rows: a folder or a file."""
        return self.file or self.url

    @property
    def manifest_folder(self) -> str:
        """The folder that gets a manifest, if it is `listed`."""
        return posixpath.dirname(self.file) if self.file else self.url

    @property
    def explained(self) -> bool:
        """Whether a manifest beside the rows says how they are written."""
        return self.listed or not self.file

    @property
    def part_format(self) -> OutputFormat:
        """The format of parts: for one file, such that they can be put one after the other."""
        if not self.file:
            return self.format
        fmt = (
            replace(self.format, header=False, bom=None)
            if self.format.kind == "csv"
            else self.format
        )
        return replace(fmt, compression="none") if self.is_compressed_late else fmt

    @property
    def is_compressed_late(self) -> bool:
        """Whether a single file is compressed when it is put together, since parts cannot be."""
        if self.format.kind == "parquet":
            return False
        return self.format.json_layout is not None or self.format.compression not in _CONCATENATED

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"format": self.format.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Output:
        known = {"partition_by": tuple(data.get("partition_by", ()))}
        return cls(**data | known | {"format": OutputFormat.from_json(data["format"])})


@dataclass(frozen=True, kw_only=True)
class ResultOutput:
    """Where the result of a count or a query goes, and its form.

    Stored with the job, so that any command that finishes it handles the result as the command that
    started it would have.
    """

    path: str = ""  #: absolute path of a file; empty: standard output
    form: str = "auto"  #: table, csv, json, parquet; auto: decided where it is printed

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "form": self.form}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ResultOutput:
        return cls(**data)
