"""The engine names options by what they set; the command line spells them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ringhaul.ledger.kinds import JobKind
from ringhaul.option_names import input_option, job_option
from tasks.command_line import VALUES_PREFIX, option_name, spell_as, spelled_as, spelled_with
from tests.arrows import ROOT

#: Places of the engine that write out an option, and why.
SPELLED = {
    "ringhaul/causes.py": 1,  # the manual and the client quote it
    "ringhaul/imports/command.py": 1,  # an option of the JVM
    "ringhaul/storage/web.py": 1,  # an option of curl
}
_OPTION = re.compile(r"--[a-z][a-z-]+")


def test_the_engine_spells_no_option() -> None:
    found = {}
    for path in sorted((ROOT / "ringhaul").rglob("*.py")):
        if "client" not in path.relative_to(ROOT).parts:
            lines = path.read_text(encoding="utf-8").splitlines()
            if count := sum(bool(_OPTION.search(line)) for line in lines):
                found[path.relative_to(ROOT).as_posix()] = count
    assert found == SPELLED


def test_options_of_input_have_the_names_of_their_command() -> None:
    for kind in JobKind:
        with spelled_as(kind):
            assert job_option("null") == "--null"
            values = kind in (JobKind.LOOKUP, JobKind.EXEC)
            assert input_option("null") == ("--values-null" if values else "--null")
            assert input_option("no-header") == ("--no-values-header" if values else "--no-header")
    with spelled_with(VALUES_PREFIX), spelled_as(None):
        assert input_option("null") == option_name("null") == "--null"


def test_a_block_ends_its_spelling_even_with_an_error() -> None:
    spell_as(JobKind.EXEC)
    with pytest.raises(ZeroDivisionError), spelled_as(None):
        raise ZeroDivisionError
    assert input_option("null") == "--values-null"


@pytest.mark.parametrize(
    ("start", "spelled"),
    [
        ("", "null"),  # the engine alone
        ("import producer.__main__", "--null"),
        ("import ringhaul.__main__", "--null"),
        ("import tasks.application", "--null"),
    ],
)
def test_every_process_of_a_command_or_a_worker_spells_them(start: str, spelled: str) -> None:
    script = f"{start}\nfrom ringhaul.option_names import input_option\nprint(input_option('null'))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{spelled}\n"
