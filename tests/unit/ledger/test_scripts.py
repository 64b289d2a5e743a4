"""Scripts and keys: each is loaded, documented and listed."""

import re
from pathlib import Path

import pytest

import ringhaul.ledger
from ringhaul.errors import UsageError
from ringhaul.ledger import keys
from ringhaul.ledger.history import EventKind
from ringhaul.ledger.scripts import JOB_SCRIPTS, SHARED_SCRIPTS, read_scripts
from tests.cases import each

FOLDER = Path(ringhaul.ledger.__path__[0])


def test_every_lua_file_is_a_script() -> None:
    files = {path.stem for path in FOLDER.glob("*.lua")}
    parts = {"common", "history", "turns"}
    assert files == {*JOB_SCRIPTS, *SHARED_SCRIPTS} | parts
    assert set(read_scripts()) == files - parts


@each("path", sorted(FOLDER.glob("*.lua")), ids=lambda path: path.stem)
def test_every_script_opens_with_what_it_does(path: Path) -> None:
    first_code = re.search(r"^(?!--).", path.read_text(), re.MULTILINE)
    assert first_code is not None
    assert path.read_text()[: first_code.start()].count("\n--") >= 1


@each("name", JOB_SCRIPTS)
def test_scripts_name_only_listed_keys(name: str) -> None:
    text = read_scripts()[name]
    used = set(re.findall(r"JOB \.\. '(\w+)'", text)) | set(re.findall(r"bucket\('(\w+)'", text))
    assert used <= {*keys.SINGLE, *keys.BUCKETED, "rate"}


def test_every_listed_key_is_documented_with_its_type() -> None:
    for part in (*keys.SINGLE, *keys.BUCKETED, "rate"):
        line = rf"^    ringhaul:\{{job\}}:{part}(:<b>)? +(hash|zset|string|bitmap|list) "
        assert keys.__doc__ is not None
        assert re.search(line, keys.__doc__, re.MULTILINE), part


def test_keys_of_a_job_share_its_hash_tag() -> None:
    assert keys.job_key("ld-7f3a9c", "meta") == "ringhaul:{ld-7f3a9c}:meta"
    assert keys.bucket_key("ld-7f3a9c", "units", 255) == "ringhaul:{ld-7f3a9c}:units:0"
    assert keys.bucket_key("ld-7f3a9c", "units", 256) == "ringhaul:{ld-7f3a9c}:units:1"


@pytest.mark.parametrize("job", ["", "a}b", "a b", "{a}", "-a", "a" * 65, "ä"])
def test_a_job_id_that_could_break_its_key_is_refused(job: str) -> None:
    with pytest.raises(UsageError, match="job ids look like"):
        keys.job_key(job, "meta")


def test_events_of_scripts_are_of_known_kinds() -> None:
    texts = [path.read_text() for path in FOLDER.glob("*.lua")]
    calls = [kind for text in texts for kind in re.findall(r"note_\w+\('([^']*)'", text)]
    assert {"created", "ended", "host lost"} <= set(calls) <= set(EventKind)
    of_history = (FOLDER / "history.lua").read_text()
    repeated = re.search(r"REPEATED = (\{.*?\})", of_history, re.DOTALL)
    assert repeated is not None
    assert set(re.findall(r"\['([^']*)'\]", repeated[1])) < set(EventKind)
