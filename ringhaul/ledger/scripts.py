"""The Lua scripts in the form that is sent to Redis.

A script about a job is `constants` (generated here, so that `keys` and `limits` remain the single
source) + `common.lua` + `history.lua` + its own file. Scripts that belong to no job stand alone.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from ringhaul.ledger import keys, limits
from ringhaul.ledger.pace import DRAW_S, TURNS_ENOUGH

#: Scripts about one job: KEYS[1] is the job's meta key, the others follow from it.
JOB_SCRIPTS = (
    "create",
    "add_units",
    "seal",
    "issue",
    "claim",
    "decline",
    "renew",
    "checkpoint",
    "reserve",
    "commit",
    "release",
    "stop",
    "lost",
    "sweep",
    "end",
    "resume",
    "pause",
    "unpause",
    "throttle",
    "priority",
    "note",
    "sample",
    "publish",
    "published",
    "audit",
)
#: Scripts about things that all jobs share; each documents its keys.
SHARED_SCRIPTS = (
    "heartbeat",
    "slots",
    "opening",
    "bucket",
    "fleet",
    "open_units",
    "forget",
    "heads",
    "job_states",
    "schedule_claim",
    "schedule_gone",
    "schedule_keep",
    "schedule_look",
    "schedule_pass",
    "schedule_take",
)


@cache
def read_scripts() -> Mapping[str, str]:
    """Return the text of every script by name."""
    prelude = _constants() + _read("common") + _read("history")
    texts = {name: prelude + _read(name) for name in JOB_SCRIPTS}
    texts |= {name: _read(name) for name in SHARED_SCRIPTS}
    texts["claim"] = prelude + _turns() + _read("claim")
    texts["fleet"] = _turns() + _read("fleet")
    return texts


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.lua").read_text(encoding="utf-8")


def _turns() -> str:
    return f"local DRAW_S, TURNS_ENOUGH = {DRAW_S}, {TURNS_ENOUGH}\n{_read('turns')}"


def _constants() -> str:
    """Return Lua locals for Python's constants."""

    def table(names: tuple[str, ...]) -> str:
        return "{" + ", ".join(f"'{name}'" for name in names) + "}"

    return (
        f"local UNITS_PER_BUCKET = {keys.UNITS_PER_BUCKET}\n"
        f"local JOB_TTL_S = {keys.JOB_TTL_S}\n"
        f"local ENOUGH_DELAY_MS = {keys.ENOUGH_DELAY_MS}\n"
        f"local LOSSES_BYTES_MAX = {keys.LOSSES_BYTES_MAX}\n"
        f"local SAMPLES_MAX = {keys.SAMPLES_MAX}\n"
        f"local SAMPLE_EVERY_MS = {keys.SAMPLE_EVERY_MS}\n"
        f"local EVENTS_MAX = {keys.EVENTS_MAX}\n"
        f"local EVENTS_FIRST = {keys.EVENTS_FIRST}\n"
        f"local EVENTS_COMPARED = {keys.EVENTS_COMPARED}\n"
        f"local EVENT_TEXT_BYTES_MAX = {keys.EVENT_TEXT_BYTES_MAX}\n"
        f"local PERCENT_RECORDS_MIN = {limits.PERCENT_RECORDS_MIN}\n"
        f"local TOTALS = '{keys.TOTALS}'\n"
        f"local SINGLE_KEYS = {table(keys.SINGLE)}\n"
        f"local BUCKETED_KEYS = {table(keys.BUCKETED)}\n"
    )
