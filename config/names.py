"""The names of settings: dotted in messages, tables in files, capitals in the environment.

A setting's dotted key is `section.name`, or `name` alone outside the sections.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ENV_PREFIX = "RINGHAUL_"
#: Names a settings file; the one variable of ours that is no setting.
ENV_CONFIG = "RINGHAUL_CONFIG"
#: Dotted keys, parted by commas, of flags that were given as empty texts: an empty variable alone
#: counts as not set.
ENV_EMPTY = "_RINGHAUL_EMPTY"


def sections(settings: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """The class of each section, by its name."""
    return {
        name: field.annotation
        for name, field in settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def setting_fields(settings: type[BaseModel]) -> dict[str, FieldInfo]:
    """Every setting by its dotted key, in the order in which they are declared."""
    classes = sections(settings)
    fields: dict[str, FieldInfo] = {}
    for name, field in settings.model_fields.items():
        if name in classes:
            inner = classes[name].model_fields
            fields |= {f"{name}.{key}": inner[key] for key in inner}
        else:
            fields[name] = field
    return fields


def env_name(key: str) -> str:
    """`RINGHAUL_BROKER_URL` of `broker.url`."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing when no known name is near.

    Of `section.name` the names are compared, those of the same section first.
    """
    section, _, last = name.rpartition(".")
    by_last: dict[str, str] = {}
    for known in sorted(names, key=lambda known: known.rpartition(".")[0] == section):
        by_last[known.rpartition(".")[2]] = known  # the same section comes last, and stays
    close = difflib.get_close_matches(last, by_last, n=1)
    return f"; did you mean {by_last[close[0]]}?" if close else ""


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The values of tables by dotted key. An empty table is a value: its name may be wrong."""
    values: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict) and value:
            values |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            values[name] = value
    return values


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of values by dotted key."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:
            tables.setdefault(section, {})[name] = value
        else:
            tables[name] = value
    return tables
