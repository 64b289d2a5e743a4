"""Judge what the workers report: versions, settings, and what each host gives.

A fleet has many hosts, so a check is one finding: that all are well, or which hosts are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from producer.doctor.finding import WORKERS, Finding, State
from producer.doctor.hosts import WorkerReport
from producer.doctor.machine import Judge, judges
from producer.services.preflight import HOSTS_SHOWN
from producer.text import count_text
from tasks.host.report import HostReport

_SHOWN = 3
#: Settings that this command and the workers must share. The rest is for workers only.
OF_COMMANDS_TOO = frozenset(
    {
        "broker.visibility_timeout_s",
        "broker.key_prefix",
        "query.spill_dir",
        "cluster.port",
        "cluster.tls",
    }
)
_VISIBILITY = "broker.visibility_timeout_s"


def judge_presence(reports: Sequence[WorkerReport], *, embedded: bool) -> list[Finding]:
    """Judge whether workers are up and answer. `embedded`: each command starts its own."""
    slots = sum(one.worker.slots for one in reports)
    if not slots and embedded:
        return [WORKERS.ok("up", "none is needed: each command starts its own")]
    if not slots:
        return [WORKERS.warning("up", "none is up", "start some with `ringhaul worker`")]
    hosts = len({one.worker.host for one in reports})
    processes = count_text(slots, "process", "processes")
    found = [WORKERS.ok("up", f"{processes} on {count_text(hosts, 'host')}")]
    silent = [(one, one.trouble) for one in reports if one.trouble]
    if silent:
        advice = "look at its log; a worker of an earlier version cannot report"
        found.append(WORKERS.warning("reports", _some(silent), advice))
    return found


def judge_versions(mine: Mapping[str, str], reports: Sequence[WorkerReport]) -> Finding | None:
    """Judge whether all workers run the versions that this command runs."""
    answered = _answered(reports)
    if not answered:
        return None
    wrong = []
    for one, report in answered:
        unlike = [
            f"{name} {theirs} (here {mine[name]})"
            for name, theirs in report.versions.items()
            if name in mine and theirs != mine[name]
        ]
        if unlike:
            wrong.append((one, ", ".join(unlike[:_SHOWN])))
    if not wrong:
        text = f"ringhaul {mine['ringhaul']} and the same packages on all"
        return WORKERS.ok("versions", text)
    advice = "install the same versions on every host, and start its worker again"
    return WORKERS.warning("versions", _some(wrong), advice)


def judge_settings(mine: Mapping[str, Any], reports: Sequence[WorkerReport]) -> list[Finding]:
    """Judge whether this command and all workers have the same settings.

    The value that most workers have counts as the right one.
    """
    answered = _answered(reports)
    if not answered:
        return []
    names = sorted({name for _, report in answered for name in report.settings})
    usual = {
        name: _usual([report.settings.get(name) for _, report in answered], mine.get(name))
        for name in names
    }
    timeout = [
        (one, f"{report.settings[_VISIBILITY]} s")
        for one, report in answered
        if report.settings.get(_VISIBILITY, mine[_VISIBILITY]) != mine[_VISIBILITY]
    ]
    wrong = []
    for one, report in answered:
        unlike = [
            f"{name} = {_value(value)} (others {_value(usual[name])})"
            for name, value in report.settings.items()
            if value != usual[name] and name != _VISIBILITY
        ]
        if unlike:
            wrong.append((one, ", ".join(unlike[:_SHOWN])))
    here = [
        f"{name} = {_value(mine[name])} (workers {_value(usual[name])})"
        for name in sorted(OF_COMMANDS_TOO - {_VISIBILITY})
        if name in mine and name in usual and mine[name] != usual[name]
    ]
    texts = [_some(wrong)] * bool(wrong) + [f"this host: {', '.join(here)}"] * bool(here)
    return [_judge_timeout(timeout, mine[_VISIBILITY]), _judge_equal("; ".join(texts))]


def _judge_timeout(unlike: Sequence[tuple[WorkerReport, str]], mine: object) -> Finding:
    check = "visibility"
    if not unlike:
        return WORKERS.ok(check, f"a timeout of {mine} s everywhere")
    text = f"{_some(unlike)}; this host: {mine} s"
    advice = f"set {_VISIBILITY} to one value on every host: the shortest decides for all"
    return WORKERS.warning(check, text, advice)


def _judge_equal(wrong: str) -> Finding:
    if not wrong:
        return WORKERS.ok("settings", "the same on all")
    advice = "give every host the same ringhaul.toml, and start its worker again"
    return WORKERS.warning("settings", wrong, advice)


def judge_clusters(name: str | None, reports: Sequence[WorkerReport]) -> Finding | None:
    """Judge whether every worker's host reaches the cluster. `name`: the cluster's, as this host
    sees it; None: this host does not reach it."""
    answered = [
        (one, report.cluster) for one, report in _answered(reports) if report.cluster is not None
    ]
    if not answered:
        return None
    check = "cluster"
    cut = [(one, view.error) for one, view in answered if view.error]
    if cut:
        advice = "open the way from that host, or correct its settings: it takes units and fails"
        return WORKERS.fault(check, _some(cut), advice)
    expected = name or _usual([view.name for _, view in answered])
    other = [(one, f"connected to {view.name}") for one, view in answered if view.name != expected]
    if other:
        advice = f"set cluster.contact_points of all hosts to {expected}, or use two brokers"
        return WORKERS.fault(check, _some(other), advice)
    silent = [
        (one, f"no answer from {', '.join(blind[:_SHOWN])}")
        for one, view in answered
        if (blind := [node.address for node in view.nodes if node.used and node.error])
    ]
    if silent:
        advice = "open the way to the native protocol's port of every node, or start the node"
        return WORKERS.fault(check, _some(silent), advice)
    return WORKERS.ok(check, f"every worker reaches {expected}")


def judge_rights(reports: Sequence[WorkerReport], advice: str) -> Finding | None:
    """Judge whether every worker's user may run what is needed. `advice`: what to do if not."""
    answered = [
        (one, report.refused) for one, report in _answered(reports) if report.refused is not None
    ]
    if not answered:
        return None
    wrong = [(one, refused) for one, refused in answered if refused]
    if wrong:
        return WORKERS.fault("rights", _some(wrong), advice)
    return WORKERS.ok("rights", "every worker may run the commands that it needs")


def judge_hosts(reports: Sequence[WorkerReport], *, one_clock: bool) -> list[Finding]:
    """Judge what each worker's host gives to processes, as `doctor.machine` does for this one."""
    return [
        finding
        for check, judge in judges(one_clock=one_clock)
        if (finding := _judge_each(check, judge, reports)) is not None
    ]


def _judge_each(check: str, judge: Judge, reports: Sequence[WorkerReport]) -> Finding | None:
    judged = [
        (one, judge(report.machine))
        for one, report in _answered(reports)
        if report.machine is not None
    ]
    for state, make in _WORST_FIRST.items():
        found = [(one, result) for one, result in judged if result.state is state]
        if found:
            advices = dict.fromkeys(result.advice for _, result in found if result.advice)
            texts = [(one, result.text) for one, result in found]
            return make(check, _some(texts), "; ".join(advices))
    if not judged:
        return None
    texts = [(one, result.text) for one, result in judged]
    alike = len({text for _, text in texts}) == 1
    return WORKERS.ok(check, texts[0][1] if alike else _some(texts))


_WORST_FIRST: Mapping[State, Callable[[str, str, str], Finding]] = {
    State.FAULT: WORKERS.fault,
    State.WARNING: WORKERS.warning,
    State.UNCHECKED: WORKERS.unchecked,
}


def judge_reports(
    reports: Sequence[WorkerReport],
    *,
    versions: Mapping[str, str],
    settings: Mapping[str, Any],
    cluster_name: str | None,
    one_clock: bool,
    rights_advice: str,
) -> list[Finding]:
    """Judge all reports. `versions`, `settings`: this command's. See the other functions of this
    module for the rest."""
    found = [
        judge_versions(versions, reports),
        *judge_settings(settings, reports),
        judge_clusters(cluster_name, reports),
        judge_rights(reports, rights_advice),
        *judge_hosts(reports, one_clock=one_clock),
        judge_missing_parts(reports),
    ]
    return [finding for finding in found if finding is not None]


def judge_missing_parts(reports: Sequence[WorkerReport]) -> Finding | None:
    """Return which parts of reports did not end in time."""
    parts = ("machine", "broker_clock", "cluster")
    missing = [
        (one, ", ".join(name.replace("_", " ") for name in gone))
        for one, report in _answered(reports)
        if (gone := [name for name in parts if getattr(report, name) is None])
    ]
    if not missing:
        return None
    advice = "look for a mount or an address on that host that does not answer"
    return WORKERS.unchecked("reports", f"not in time from {_some(missing)}", advice)


def _answered(reports: Sequence[WorkerReport]) -> list[tuple[WorkerReport, HostReport]]:
    return [(one, one.report) for one in reports if one.report is not None]


def _usual(values: Sequence[Any], mine: Any = None) -> Any:
    """Return the most frequent value; of several, this command's, or the first."""
    counts = Counter(map(repr, values))
    return max(values, key=lambda value: (counts[repr(value)], value == mine))


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "nothing"
    return "nothing" if value in (None, "") else str(value)


def _some(seen: Sequence[tuple[WorkerReport, str]]) -> str:
    """Return `HOSTS: TEXT` for the first different texts."""
    hosts: dict[str, dict[str, None]] = {}
    for one, text in seen:
        hosts.setdefault(text, {})[one.worker.host] = None
    texts = [f"{_listed(list(names))}: {text}" for text, names in hosts.items()]
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def _listed(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - HOSTS_SHOWN} more" if len(hosts) > HOSTS_SHOWN else ""
    return ", ".join(hosts[:HOSTS_SHOWN]) + more
