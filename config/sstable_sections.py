"""The settings of loads that make SSTables, and of the ways in which these reach nodes.

`config/ringhaul.example.toml` explains each setting to users.
"""

import re
from typing import Self

from pydantic import Field, model_validator

from config.section import Section
from config.values import Bytes, Count, OptionalPath, Seconds, Words


class SSTableSettings(Section):
    """How loads build SSTables, with `--to-sstables` and any `--via` but cql."""

    #: Size of Data.db after which the next SSTable starts.
    size_bytes: Bytes = Field(default=2**30, ge=2**20)
    #: Keys and values that a worker process sorts in memory. Sorting and building take up to nine
    #: times as much: 90 MB by default, whatever the size of a unit.
    sort_bytes: Bytes = Field(default=10 * 2**20, ge=4096, le=2**30)
    #: Folder on a local disk for rows beyond that. Empty: `sort` in the state folder. Its files
    #: have no names, so `df` shows them and `ls` does not; they disappear with the process.
    spill_dir: OptionalPath = None
    #: Per worker process. Rows beyond that become further SSTables.
    spill_bytes_max: Bytes = Field(default=2 * 2**30, ge=2**20)


class StreamingSettings(Section):
    """How `load --via streaming` reaches the nodes' storage ports."""

    #: 0: the port that each node reports.
    storage_port: Count = Field(default=0, ge=0, le=65535)
    #: Smaller inputs are refused: each worker process leaves at least one SSTable.
    input_bytes_min: Bytes = Field(default=32 * 2**20, ge=0)
    tls: bool = False
    tls_ca: OptionalPath = None
    tls_cert: OptionalPath = None
    tls_key: OptionalPath = None
    #: Certificates of nodes often name no host.
    tls_verify_hostname: bool = False

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError(
                "streaming.tls_cert and streaming.tls_key go together: give both or none"
            )
        if not self.tls and (self.tls_ca is not None or self.tls_cert is not None):
            raise ValueError("streaming.tls_ca, tls_cert and tls_key need streaming.tls = true")
        return self


class ImportSettings(Section):
    """How `load --via import` has nodes import SSTables."""

    #: Folder for the SSTables, as this host sees it, and as nodes do; `{node}` is a node's address.
    folder: OptionalPath = None
    node_folder: OptionalPath = None  #: empty: the same folder
    #: Words with placeholders, see `ringhaul.imports.command`. Empty: nodetool.
    command: Words = ""
    jmx_port: Count = Field(default=7199, ge=1, le=65535)
    jmx_user: str = ""
    jmx_password_file: OptionalPath = None
    #: The node checks the files and builds the indexes of up to a GiB in that time.
    timeout_s: Seconds = Field(default=600.0, ge=1, le=86400)
    #: Smaller inputs are refused: each worker process leaves at least one SSTable.
    input_bytes_min: Bytes = Field(default=32 * 2**20, ge=0)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        for name in ("folder", "node_folder"):
            if re.search(r"\s", str(getattr(self, name) or "")):
                raise ValueError(
                    f"imports.{name}: nodetool takes no folder with a blank in its name: choose "
                    "another one"
                )
        if bool(self.jmx_user) != (self.jmx_password_file is not None):
            raise ValueError(
                "imports.jmx_user and imports.jmx_password_file go together: give both or none"
            )
        return self
