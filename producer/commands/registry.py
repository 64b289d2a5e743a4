"""Where each command is. Names only: `ringhaul --help` imports none of them."""

from __future__ import annotations

import importlib

import rich_click as click

#: Command -> the module and the click command in it, imported when it is used.
COMMANDS = {
    "load": "producer.commands.load:load_command",
    "verify": "producer.commands.verify:verify_command",
    "unload": "producer.commands.unload:unload_command",
    "count": "producer.commands.query:count_command",
    "query": "producer.commands.query:query_command",
    "lookup": "producer.commands.statements:lookup_command",
    "exec": "producer.commands.statements:exec_command",
    "status": "producer.commands.status:status_command",
    "errors": "producer.commands.errors:errors_command",
    "top": "producer.commands.top:top_command",
    "pause": "producer.commands.control:pause_command",
    "resume": "producer.commands.control:resume_command",
    "throttle": "producer.commands.control:throttle_command",
    "cancel": "producer.commands.control:cancel_command",
    "schedule": "producer.schedule.commands:schedule",
    "worker": "producer.commands.celery_commands:worker_command",
    "beat": "producer.schedule.commands:beat_command",
    "flower": "producer.commands.celery_commands:flower_command",
    "local": "producer.commands.local:local",
    "config": "producer.commands.config:config_command",
    "doctor": "producer.commands.doctor:doctor_command",
    "demo": "producer.commands.demo:demo_command",
}


def find_command(name: str) -> click.Command | None:
    """The click command of this name; None if there is none."""
    place = COMMANDS.get(name)
    if place is None:
        return None
    module, _, attribute = place.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command
