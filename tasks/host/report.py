"""What a host reports about itself. It travels as JSON between versions: every field has a default,
and unknown fields are ignored. No field holds a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tasks.host.clock import Offset

__all__ = ["Folder", "HostReport", "HostView", "Machine", "Node", "pack_report", "read_report"]


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder that jobs write to on this host. It may not exist yet."""

    role: str  #: what it is for: `state` or `spill`
    path: str = ""
    free_bytes: int | None = None  #: space that this user may fill; None: not known
    error: str = ""  #: why it cannot be written; empty: it can


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What the host gives to processes."""

    descriptors: int | None = None  #: open files of one process; None: no limit
    folders: tuple[Folder, ...] = ()
    synchronised: bool | None = None  #: the clock, as the kernel says; None: it does not say
    boot: str = ""  #: the kernel's boot id; hosts with the same one share a clock. Empty: not known


@dataclass(frozen=True, kw_only=True)
class Node:
    """A Cassandra node, seen from this host."""

    address: str
    data_centre: str = ""
    release: str = ""
    used: bool = True  #: False: in another data centre, so that this host does not contact it
    error: str = ""  #: why it did not answer; empty: it did
    clock: Offset | None = None  #: how far the node's clock is ahead of this host's


@dataclass(frozen=True, kw_only=True)
class HostView:
    """The cluster, seen from this host."""

    error: str = ""  #: why it cannot be used; empty: it can
    name: str = ""
    local_dc: str = ""
    nodes: tuple[Node, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The nodes' addresses."""
        return tuple(node.address for node in self.nodes)


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """A worker's report about itself and its host. None: that part did not end in time."""

    versions: Mapping[str, str] = field(default_factory=dict)
    #: Setting -> its value, as `config show` shows it.
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Machine | None = None
    #: How far the broker's clock is ahead of this host's.
    broker_clock: Offset | None = None
    #: What the broker's access rules refuse to the worker; empty: nothing that it needs.
    refused: str | None = None
    cluster: HostView | None = None


_READER = TypeAdapter(HostReport)


def pack_report(report: HostReport) -> dict[str, Any]:
    """Return the parts that a report has, ready for JSON."""
    return {name: part for name, part in asdict(report).items() if part not in (None, {})}


def read_report(packed: object) -> HostReport | None:
    """Return a report from its JSON; None if it is invalid."""
    try:
        return _READER.validate_python(packed)
    except ValidationError:
        return None
