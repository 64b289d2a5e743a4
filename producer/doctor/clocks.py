"""Judge how far the clocks of hosts, nodes and broker are apart.

They matter because rows get their write timestamps from clocks: a load's rows from the clock of the
command's host, other programs' rows from their hosts' clocks or a node's. Of two writes the later
timestamp wins, so a clock that is behind loses its writes, and a clock that is ahead hides the
writes that follow.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from producer.doctor.finding import MACHINE, Finding
from producer.doctor.hosts import WorkerReport
from tasks.host.clock import Offset, combine
from tasks.host.report import HostView, Machine

#: Far above what a time service leaves (milliseconds), and about the pause between two programs
#: that write the same row one after the other.
APART_MS_WARN = 200.0
APART_MS_FAULT = 2000.0
_SHOWN = 5
_ADVICE = (
    "set the clocks by NTP (chrony, systemd-timesyncd) before the next load: of two writes to a "
    "row, the one with the later timestamp stays"
)


_CHECK = "clocks"


def relative_clocks(
    broker: Offset | None, cluster: HostView | None, reports: Sequence[WorkerReport]
) -> dict[str, Offset]:
    """Return how far each clock is ahead of this host's, by its owner, as narrow as known.

    `broker`: relative to this host. Workers measured the broker and the nodes relative to theirs.
    """
    found: dict[str, list[Offset]] = {"this host": [Offset(0.0, 0.0)]}
    if broker is not None:
        found["the broker"] = [broker]
    for node in () if cluster is None else cluster.nodes:
        if node.clock is not None:
            found.setdefault(f"node {node.address}", []).append(node.clock)
    for one in reports:
        if broker is None or one.report is None or one.report.broker_clock is None:
            continue
        host = broker.minus(one.report.broker_clock)
        found.setdefault(one.worker.host, []).append(host)
        for node in () if one.report.cluster is None else one.report.cluster.nodes:
            if node.clock is not None:
                found.setdefault(f"node {node.address}", []).append(node.clock.plus(host))
    return {owner: known for owner, some in found.items() if (known := combine(some)) is not None}


def one_clock(
    machine: Machine | None, addresses: Sequence[str], reports: Sequence[WorkerReport]
) -> bool:
    """Return whether this host's kernel has the only clock that jobs use. `addresses`: addresses of
    the broker and the nodes."""
    boots = {one.report.machine.boot for one in reports if one.report and one.report.machine}
    if machine is None or not machine.boot or boots - {machine.boot}:
        return False
    return all(map(_is_here, addresses))


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def judge_clocks(clocks: Mapping[str, Offset]) -> Finding:
    """Judge clocks by their owners. All offsets are relative to the same clock.

    Only differences that the measured bounds leave no doubt about count. The clock in the middle
    is taken as right.
    """
    if len(clocks) < 2:
        return MACHINE.unchecked(_CHECK, "no other clock could be read")
    right_ms = statistics.median_low(sorted(one.middle_ms for one in clocks.values()))
    right = Offset(right_ms, right_ms)
    apart = {owner: clock.minus(right) for owner, clock in clocks.items()}
    wrong = {owner: one for owner, one in apart.items() if one.surely_ms > APART_MS_WARN}
    if wrong:
        worst = sorted(wrong.items(), key=lambda item: -item[1].surely_ms)
        texts = [f"{owner} is {_difference(one)}" for owner, one in worst[:_SHOWN]]
        more = f", and {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
        text = f"{', '.join(texts)}{more}, compared with the others"
        if worst[0][1].surely_ms > APART_MS_FAULT:
            return MACHINE.fault(_CHECK, text, _ADVICE)
        return MACHINE.warning(_CHECK, text, _ADVICE)
    vague = {owner: one for owner, one in apart.items() if one.width_ms > 2 * APART_MS_WARN}
    if vague:
        owner, widest = max(vague.items(), key=lambda item: item[1].width_ms)
        return MACHINE.unchecked(
            _CHECK, f"{owner} is too slow to tell: within {widest.width_ms / 2:,.0f} ms"
        )
    most = max(max(abs(one.low_ms), abs(one.high_ms)) for one in apart.values())
    return MACHINE.ok(_CHECK, f"{len(clocks)} clocks are within {max(most, 1):,.0f} ms")


def _difference(offset: Offset) -> str:
    where = "ahead" if offset.low_ms > 0 else "behind"
    return f"{abs(offset.middle_ms) / 1000:,.1f} s {where}"
