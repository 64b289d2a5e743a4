"""The ways of all destinations, by the destinations' names."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from producer.destination.way import LoadFacts, Way
from ringhaul.destination.base import Destination
from ringhaul.destination.cql import Cql
from ringhaul.destination.delivered import Imports, Streaming
from ringhaul.destination.files import Files

#: Destination -> the module with its `WAY`. A module is imported when a load needs it: importing
#: a module for SSTables takes half a second.
_MODULES = {Files.name: "files", Streaming.name: "streaming", Imports.name: "imports"}


def plan_destination(facts: LoadFacts) -> Destination:
    """Return the destination of a load. Raises as `Way.plan` does."""
    name = facts.wanted.name
    return Cql() if name == Cql.name else way_of(name).plan(facts)


def way_of(name: str) -> Way[Destination]:
    """Return the way of the destination with this name, other than `Cql`, which needs none."""
    return cast("Way[Destination]", import_module(f"producer.destination.{_MODULES[name]}").WAY)
