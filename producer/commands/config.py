"""`ringhaul config show`: every setting, and where its value came from."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from producer.commands.options import config_option
from producer.outputs.stdout import json_text


@click.group("config")
def config_command() -> None:
    """Show the settings, and where each comes from.

    flags > environment > ringhaul.toml > the running local stack > defaults."""


@config_command.command("show")
@click.option("--origin", is_flag=True, help="Also where each value came from.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@config_option
def show(origin: bool, as_json: bool, config_file: Path | None) -> None:
    """All settings; passwords are shown as ***."""
    from config.settings import load_settings

    described = load_settings(config_file=config_file).describe()
    if as_json:
        print(json_text([setting._asdict() for setting in described], indent=2))
        return
    width = max(len(setting.key) for setting in described)
    for setting in described:
        where = f"   # {setting.origin}" if origin else ""
        print(f"{setting.key:<{width}} = {json_text(setting.value)}{where}")
