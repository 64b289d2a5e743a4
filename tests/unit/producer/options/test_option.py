"""An option is declared once, as a field of a record."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, FrozenInstanceError, dataclass, fields

import pytest

from producer.options import kinds
from producer.options.groups import Group
from producer.options.option import (
    again,
    argument,
    flags_of,
    inner,
    option,
    options_of,
    record_of,
    settings_of,
)


@dataclass(frozen=True, kw_only=True)
class Base:
    port: int | None = option(
        "--port", kinds.Whole(1), help="Port.", group=Group.CLUSTER, setting="cluster.port"
    )
    quiet: bool = option("-q --quiet", kinds.FLAG, help="Be quiet.", group=Group.DISPLAY)
    words: tuple[str, ...] = option("--word", repeated=True, help="A word.", group=Group.ROWS)


@dataclass(frozen=True, kw_only=True)
class Text:
    header: bool = option(
        "--header/--no-header", kinds.FLAG, True, help="A header.", group=Group.FORMAT
    )
    quote: str = option("-x --quote", default='"', help="Quote.", group=Group.FORMAT, common=True)
    layout: str = option("--layout", default="a", help="JSON: layout.", group=Group.FORMAT)


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    source: str = argument("SOURCE", kinds.PLACE, help="A source.", group=Group.ROWS)
    table: str = option("--table", default=MISSING, help="A table.", group=Group.ROWS)
    port: int | None = again(Base, "port", help="Other port.", default=1)
    only: bool = option("--only", kinds.FLAG, help="Only one.", group=Group.JOB, commands=("copy",))
    values: Text = inner(Text, "in-", group=Group.INPUT, about="Input: ")
    own: str = "no option"


def test_options_come_in_the_order_of_groups_the_records_own_first() -> None:
    assert [one.name for one in options_of(Derived)] == [
        *("source", "table", "words"),
        *("in_header", "in_quote", "in_layout"),
        *("only", "quiet", "port"),
    ]


def test_a_declaration_has_the_name_and_the_default_of_its_field() -> None:
    found = {one.name: one for one in options_of(Derived)}
    assert (found["port"].default, found["port"].help) == (1, "Other port.")
    assert found["port"].setting == "cluster.port"
    assert found["table"].required and found["source"].required
    assert found["source"].flags == () and found["source"].flag == ""
    assert (found["quiet"].default, found["quiet"].flag) == (False, "--quiet")
    assert found["words"].default == () and found["words"].repeated
    assert next(one for one in options_of(Base) if one.name == "port").default is None


def test_the_options_of_an_inner_record_have_a_prefix_and_no_short_names() -> None:
    found = {one.name: one for one in options_of(Derived)}
    assert found["in_header"].flags == ("--in-header/--no-in-header",)
    assert found["in_header"].is_switch and not found["in_quote"].is_switch
    assert found["in_quote"].flags == ("--in-quote",) and found["in_quote"].key == "in-quote"
    assert found["in_quote"].help == "Input: quote."
    assert found["in_layout"].help == "Input: JSON: layout."
    assert found["in_quote"].group is Group.INPUT and not found["in_quote"].common


def test_a_command_may_lack_an_option_of_its_record() -> None:
    names = {command: flags_of(options_of(Derived, command)) for command in ("copy", "move")}
    assert names["copy"] - names["move"] == {"--only"}
    assert "--no-in-header" in names["move"]


def test_a_record_is_made_of_a_commands_parameters() -> None:
    params = {"source": "a", "table": "t", "in_header": False, "in_quote": "'", "words": ("b",)}
    made = record_of(Derived, params, own="text")
    assert made == Derived(
        source="a", table="t", words=("b",), own="text", values=Text(header=False, quote="'")
    )
    with pytest.raises(FrozenInstanceError):
        made.table = "u"
    with pytest.raises(TypeError, match="unknown"):
        record_of(Derived, {**params, "unknown": 1})
    with pytest.raises(TypeError, match="table"):
        record_of(Derived, {"source": "a"})


def test_settings_are_those_that_options_override() -> None:
    assert settings_of(Derived) == {"port": "cluster.port"}


def test_a_field_of_no_record_cannot_be_declared_again() -> None:
    assert {one.name for one in fields(Base)} == {"port", "quiet", "words"}
    with pytest.raises(StopIteration):
        again(Base, "prot")


def test_records_of_options_need_no_click() -> None:
    """Programs that only look at the table start as fast as without it."""
    names = ("load", "verify", "tune", "reads", "statements", "control")
    imports = "; ".join(f"import producer.options.{name}" for name in names)
    check = "import sys; print(sorted({'click', 'rich_click', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}; {check}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
