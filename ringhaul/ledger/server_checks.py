"""Check whether a Redis or Valkey server is configured to hold the ledger. Pure.

The ledger holds the only state of jobs: a server that evicts keys, or forgets them in a restart,
damages jobs. Settings that a server does not report (a managed server may refuse CONFIG) are not
checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

#: The first version with `WAITAOF`, which jobs that must not run twice rely on. Every Valkey has
#: it, and reports itself as a Redis of 7.2.
VERSION_MIN = (7, 2)
#: Share of maxmemory above which to warn.
FULL_SHARE = 0.8
#: Claim and commit take two round trips of a unit that lasts seconds.
LATENCY_MS_MAX = 50.0


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Check:
    """A finding, and what to do."""

    name: str
    level: Level
    text: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The finding in one line."""
        return f"{self.text}: {self.advice}" if self.advice else self.text


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """A server's report about itself. None: not reported."""

    address: str
    version: str | None = None
    policy: str | None = None
    appendonly: bool | None = None
    appendfsync: str | None = None
    persisted: bool | None = None  #: whether its last write to disk succeeded
    role: str | None = None
    clustered: bool | None = None
    used_bytes: int | None = None
    maxmemory_bytes: int | None = None  #: 0: no limit
    latency_ms: float | None = None


def check_server(facts: ServerFacts) -> list[Check]:
    """Return the checks of one server; none for what it does not report."""
    found = [
        _version(facts),
        _policy(facts),
        _persistence(facts),
        _role(facts),
        _memory(facts),
        _latency(facts),
    ]
    return [check for check in found if check is not None]


def warnings_of(checks: Sequence[Check]) -> list[str]:
    """Return a line for each check that is not OK."""
    return [f"Redis: {check.line}" for check in checks if check.level is not Level.OK]


def _version(facts: ServerFacts) -> Check | None:
    if facts.version is None:
        return None
    numbers = tuple(int(part) for part in facts.version.split(".")[:2] if part.isdigit())
    name, text = "version", f"version {facts.version}"
    if numbers < VERSION_MIN:
        return Check(name=name, level=Level.FAIL, text=text, advice="use Redis 7.2 or Valkey")
    return Check(name=name, level=Level.OK, text=text)


def _policy(facts: ServerFacts) -> Check | None:
    if facts.policy is None:
        return None
    name, text = "eviction", f"maxmemory-policy {facts.policy}"
    if facts.policy != "noeviction":
        advice = "keys of jobs may be evicted; set noeviction"
        return Check(name=name, level=Level.WARN, text=text, advice=advice)
    return Check(name=name, level=Level.OK, text=text)


def _persistence(facts: ServerFacts) -> Check | None:
    name = "persistence"
    if facts.persisted is False:
        advice = "it may refuse writes; make room on its disk, and see its log"
        return Check(
            name=name, level=Level.FAIL, text="the last write to disk failed", advice=advice
        )
    if facts.appendonly is None:
        return None
    if not facts.appendonly:
        advice = "a restart loses running jobs; set it to yes, appendfsync to everysec"
        return Check(name=name, level=Level.WARN, text="appendonly no", advice=advice)
    if facts.appendfsync == "no":
        advice = "a crash of the host loses half a minute of jobs; set it to everysec"
        return Check(name=name, level=Level.WARN, text="appendfsync no", advice=advice)
    text = "appendonly yes" + (f", appendfsync {facts.appendfsync}" if facts.appendfsync else "")
    return Check(name=name, level=Level.OK, text=text)


def _role(facts: ServerFacts) -> Check | None:
    if facts.clustered:
        advice = "set a server that is not part of a cluster in broker.url"
        return Check(name="role", level=Level.FAIL, text="a node of a cluster", advice=advice)
    if facts.role is None:
        return None
    if facts.role != "master":
        advice = "it accepts no writes; set its primary in broker.url"
        return Check(name="role", level=Level.FAIL, text="a replica", advice=advice)
    return Check(name="role", level=Level.OK, text="a primary")


def _memory(facts: ServerFacts) -> Check | None:
    if facts.used_bytes is None or facts.maxmemory_bytes is None:
        return None
    used = f"{facts.used_bytes / 2**20:,.0f} MiB used"
    if not facts.maxmemory_bytes:
        return Check(name="memory", level=Level.OK, text=f"{used}, no maxmemory")
    text = f"{used} of {facts.maxmemory_bytes / 2**20:,.0f} MiB"
    if facts.used_bytes > FULL_SHARE * facts.maxmemory_bytes:
        advice = "a full server stops jobs; raise maxmemory"
        return Check(name="memory", level=Level.WARN, text=text, advice=advice)
    return Check(name="memory", level=Level.OK, text=text)


def _latency(facts: ServerFacts) -> Check | None:
    if facts.latency_ms is None:
        return None
    text = f"{facts.latency_ms:.1f} ms for a response"
    if facts.latency_ms > LATENCY_MS_MAX:
        advice = "each unit waits for it twice; use a closer or less busy server"
        return Check(name="latency", level=Level.WARN, text=text, advice=advice)
    return Check(name="latency", level=Level.OK, text=text)
