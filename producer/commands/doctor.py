"""`ringhaul doctor`: check that broker, cluster and workers are ready for jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from producer.commands.options import ledger_options
from producer.outputs.stdout import json_text

if TYPE_CHECKING:
    from config.settings import Settings
    from ringhaul.ledger.server_checks import Check


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@ledger_options
def doctor_command(as_json: bool, config_file: Path | None) -> int:
    """Check broker, cluster and workers, and say what to do.

    Changes nothing."""
    from producer.request.settings import is_embedded, settle
    from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, EXIT_REJECTS
    from ringhaul.ledger.server_checks import Check, Level

    loaded = settle({}, config_file)
    if is_embedded(loaded):
        text = "none is configured: each command starts its own, and workers"
        checks = {"broker": [Check(name="address", level=Level.OK, text=text)]}
    else:
        checks = _broker(loaded.settings)
    checks["cluster"] = _cluster(loaded.settings)
    levels = {check.level for found in checks.values() for check in found}
    code = EXIT_COMPLETE
    if levels & {Level.WARN, Level.FAIL}:
        code = EXIT_FATAL if Level.FAIL in levels else EXIT_REJECTS
    rows = [(about, check) for about, found in checks.items() for check in found]
    if as_json:
        listed = [
            {
                "about": about,
                "check": check.name,
                "level": check.level.value,
                "text": check.text,
                "advice": check.advice,
            }
            for about, check in rows
        ]
        print(json_text({"exit_code": code, "checks": listed}, indent=2))
        return code
    for about, check in rows:
        print(f" {check.level.value:<4}  {about:<7}  {check.name:<11}  {check.line}")
    return code


def _broker(settings: Settings) -> dict[str, list[Check]]:
    from producer.services.ledger import READ_PATIENCE_MS
    from ringhaul.errors import RinghaulError
    from ringhaul.ledger.server import read_server
    from ringhaul.ledger.server_checks import Check, Level, check_server
    from ringhaul.ledger.workers import Workers
    from tasks.connect import open_ledger

    try:
        caller = open_ledger(settings, READ_PATIENCE_MS).caller
        facts = read_server(caller, timed=True)
        alive = Workers(caller).alive()
    except RinghaulError as error:
        return {"broker": [Check(name="address", level=Level.FAIL, text=str(error))]}
    slots, hosts = sum(worker.slots for worker in alive), len({worker.host for worker in alive})
    if slots:
        up = Check(name="up", level=Level.OK, text=f"{slots:,} on hosts: {hosts:,}")
    else:
        advice = "start some with `ringhaul worker`"
        up = Check(name="up", level=Level.WARN, text="none is up", advice=advice)
    found = [Check(name="address", level=Level.OK, text=f"{facts.address} answers")]
    return {"broker": found + check_server(facts), "workers": [up]}


def _cluster(settings: Settings) -> list[Check]:
    from cassandra import DriverException

    from ringhaul.cluster.connect import close_session, open_session
    from ringhaul.errors import RinghaulError
    from ringhaul.ledger.server_checks import Check, Level
    from tasks.connect import cluster_config

    try:
        session = open_session(cluster_config(settings))
    except RinghaulError as error:
        return [Check(name="address", level=Level.FAIL, text=str(error))]
    try:
        local = session.execute(
            "SELECT cluster_name, release_version, schema_version FROM system.local"
        ).one()
        peers = session.execute("SELECT schema_version FROM system.peers")
        schemas = {local.schema_version, *(peer.schema_version for peer in peers)} - {None}
        hosts = session.cluster.metadata.all_hosts()
    except DriverException as error:
        return [Check(name="address", level=Level.FAIL, text=f"it does not answer: {error}")]
    finally:
        close_session(session)
    down = sorted(str(host.address) for host in hosts if host.is_up is False)
    found = [
        Check(name="address", level=Level.OK, text=f"{local.cluster_name} answers"),
        Check(name="version", level=Level.OK, text=f"Cassandra {local.release_version}"),
    ]
    if down:
        advice = "start them, or expect retries"
        text = f"{len(down)} of {len(hosts)} nodes down ({', '.join(down[:5])})"
        found.append(Check(name="nodes", level=Level.WARN, text=text, advice=advice))
    else:
        found.append(Check(name="nodes", level=Level.OK, text=f"{len(hosts)} up"))
    if len(schemas) > 1:
        advice = "wait until its nodes agree, and see `nodetool describecluster`"
        text = f"{len(schemas)} versions"
        found.append(Check(name="schema", level=Level.WARN, text=text, advice=advice))
    else:
        found.append(Check(name="schema", level=Level.OK, text="its nodes agree"))
    return found
