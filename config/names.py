"""Names of settings: dotted in messages, tables in files, upper case in the environment.

A setting's dotted key is `section.name`, or `name` alone outside the sections.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

ENV_PREFIX = "RINGHAUL_"
#: Variable that names a settings file. All other public variables are settings.
ENV_CONFIG = "RINGHAUL_CONFIG"
#: Variable with the dotted keys, separated by commas, of flags given as empty texts. It is needed
#: because an empty variable counts as not set.
ENV_EMPTY = "_RINGHAUL_EMPTY"


def sections(settings: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the class of each section by its name."""
    return {
        name: field.annotation
        for name, field in settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def setting_fields(settings: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return all settings by dotted key, in the order of declaration."""
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
    """Return the variable of a setting: `RINGHAUL_BROKER_URL` for `broker.url`."""
    return ENV_PREFIX + key.replace(".", "_").upper()


def nearest(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean X?`, or an empty text if no known name is similar.

    Only the part after the section is compared; names of the same section are preferred.
    """
    section, _, last = name.rpartition(".")
    by_last: dict[str, str] = {}
    for known in sorted(names, key=lambda known: known.rpartition(".")[0] == section):
        by_last[known.rpartition(".")[2]] = known  # the same section comes last, and stays
    close = difflib.get_close_matches(last, by_last, n=1)
    return f"; did you mean {by_last[close[0]]}?" if close else ""


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten tables into values by dotted key. An empty table stays, as its name may be wrong."""
    values: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict) and value:
            values |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            values[name] = value
    return values


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Group values by dotted key into tables; the inverse of `flat`."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if section:
            tables.setdefault(section, {})[name] = value
        else:
            tables[name] = value
    return tables
