"""Run all checks at once, each with a time limit, and combine what they found.

A dead broker, a node behind a firewall that drops packets, or a mount whose server is gone holds up
only its own check: each runs in a thread that is left behind when its time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from config.secrets import mask
from config.settings import Loaded
from producer.doctor.broker import Broker, open_broker, rights_advice
from producer.doctor.clocks import judge_clocks, one_clock, relative_clocks
from producer.doctor.cluster import Cluster, open_cluster
from producer.doctor.finding import (
    BROKER,
    CLUSTER,
    FILES,
    MACHINE,
    SECTIONS,
    WORKERS,
    Finding,
)
from producer.doctor.hosts import WorkerReport, read_reports
from producer.doctor.machine import judges
from producer.doctor.measurement import Timed
from producer.doctor.workers import judge_presence, judge_reports
from ringhaul.ledger.ledger import Ledger
from tasks.host.machine import comparable_settings, measure_machine, versions
from tasks.host.report import Machine

#: Time limits. A broker is tried for 2 s, in which one connection may take 5 s.
MACHINE_S = 4.0
BROKER_S = 8.0
CLUSTER_S = 12.0
#: A worker's report may take 10 s, after the broker is open.
REPORTS_S = 19.0
#: Workers check URLs for up to 12 s, after this host has looked at them.
FILES_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is examined beside the settings."""

    keyspace: str | None = None  #: keyspace of the jobs; None: all
    inputs: Sequence[str] = ()
    output: str = ""  #: empty: none


def examine(loaded: Loaded, subject: Subject) -> list[Finding]:
    """Run all checks and return their findings, by section."""
    settings = loaded.settings
    has_broker = bool(settings.broker.url)  # the local stack's, if none is configured
    if subject.inputs or subject.output:  # readers of files: slow to import, and not in a thread
        from producer.doctor.files import check_files
    machine = Timed(MACHINE, "disks", MACHINE_S, lambda: measure_machine(settings))
    broker: Timed[Broker | None] = Timed(
        BROKER, "address", BROKER_S, lambda: open_broker(settings) if has_broker else None
    )

    def read_workers() -> list[WorkerReport]:
        opened = broker.value()
        return [] if opened is None else read_reports(opened.caller)

    def look_at_files() -> list[Finding]:
        if not (subject.inputs or subject.output):
            return []
        opened = broker.value()
        ledger = None if opened is None else Ledger(opened.caller.client)
        return check_files(subject.inputs, subject.output, ledger)

    workers = Timed(WORKERS, "reports", REPORTS_S, read_workers)
    cluster = Timed(CLUSTER, "address", CLUSTER_S, lambda: open_cluster(settings, subject.keyspace))
    files = Timed(FILES, "inputs", FILES_S, look_at_files)
    found = [
        *_of_broker(broker.value(), has_broker=has_broker),
        *_of_all(loaded, machine.value(), broker.value(), cluster.value(), workers.value()),
        *(files.value() or ()),
    ]
    for check in (machine, broker, workers, cluster, files):
        found += check.troubles()
    if broker.value() is None and has_broker:
        found.append(WORKERS.unchecked("up", "not known without the broker"))
    order = [section.about for section in SECTIONS]
    masked = [replace(one, text=mask(one.text), advice=mask(one.advice)) for one in found]
    return sorted(masked, key=lambda finding: order.index(finding.about))


def _of_broker(broker: Broker | None, *, has_broker: bool) -> Sequence[Finding]:
    if not has_broker:
        text = "none is configured: each command starts its own, and workers"
        return [BROKER.ok("address", text)]
    return [] if broker is None else broker.findings


def _of_all(
    loaded: Loaded,
    machine: Machine | None,
    broker: Broker | None,
    cluster: Cluster | None,
    workers: Sequence[WorkerReport] | None,
) -> list[Finding]:
    """Judge what takes several of the measurements."""
    view = None if cluster is None else cluster.view
    clock = None if broker is None else broker.clock
    reports = workers or []
    if view is not None:
        nodes = view.addresses
    elif bundle := loaded.settings.cluster.secure_connect_bundle:
        nodes = (str(bundle),)  # somewhere else
    else:
        nodes = loaded.settings.cluster.contact_points
    brokers = [broker.host] if broker is not None and broker.host else []
    same = one_clock(machine, [*brokers, *nodes], reports)
    found: list[Finding] = []
    if machine is not None:
        for check, judge in judges(one_clock=same):
            result = judge(machine)
            found.append(
                Finding(
                    about=MACHINE.about,
                    check=check,
                    state=result.state,
                    text=result.text,
                    advice=result.advice,
                )
            )
    found.append(judge_clocks(relative_clocks(clock, view, reports)))
    found += () if cluster is None else cluster.findings
    if workers is not None and broker is not None:
        found += judge_presence(reports, embedded=loaded.is_embedded)
        found += judge_reports(
            reports,
            versions=versions(),
            settings=comparable_settings(loaded),
            cluster_name=None if view is None else view.name,
            one_clock=same,
            rights_advice=rights_advice(loaded.settings.broker.key_prefix),
        )
    return found
