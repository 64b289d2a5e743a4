"""docs/reference/copy-from.md has a row for each option of the tools that users migrate from, and
names only existing options of ours."""

import re
import shlex

import pytest

from producer.translate.command import translate
from producer.translate.copy_options import COPY_OPTIONS
from producer.translate.setting_names import SHORTCUTS
from producer.translate.settings import HANDLERS, find_group
from producer.translate.translation import Translation
from tests.unit.producer.translate.test_translate import COPY_VALUES, VALUES
from tests.unit.test_docs import COMMANDS, ROOT, documented, options

PAGE = (ROOT / "docs" / "reference" / "copy-from.md").read_text()
_ROW = re.compile(r"^\| (`.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)

COPY_BOTH = (
    "HEADER DELIMITER QUOTE ESCAPE NULL DATETIMEFORMAT ENCODING MAXATTEMPTS REPORTFREQUENCY "
    "DECIMALSEP THOUSANDSSEP BOOLSTYLE NUMPROCESSES CONFIGFILE RATEFILE CONSISTENCY"
)
COPY_FROM = (
    "STDIN CHUNKSIZE INGESTRATE MINBATCHSIZE MAXBATCHSIZE MAXROWS SKIPROWS SKIPCOLS "
    "MAXPARSEERRORS MAXINSERTERRORS ERRFILE PREPAREDSTATEMENTS TTL MAXINFLIGHTMESSAGES "
    "MAXBACKOFFATTEMPTS MAXPENDINGCHUNKS REQUESTTIMEOUT CHILDTIMEOUT"
)
COPY_TO = (
    "STDOUT PAGESIZE PAGETIMEOUT MAXREQUESTS BEGINTOKEN ENDTOKEN MAXOUTPUTSIZE FLOATPRECISION "
    "DOUBLEPRECISION"
)
LOADER = (
    "-k -t -url -m -query queryTimestamp queryTtl nullToUnset allowExtraFields allowMissingFields "
    "preserveTimestamp preserveTtl urlfile recursive fileNamePattern skipRecords maxRecords "
    "nullValue emptyValue newline compression maxCharsPerColumn maxColumns -maxConcurrentFiles "
    "-header -delim -quote -comment -encoding -escape mode -nullStrings --codec.timestamp "
    "--codec.date --codec.time --codec.locale --codec.unit --codec.epoch --codec.timeZone "
    "--codec.booleanStrings --codec.number --codec.binary --codec.overflowStrategy "
    "roundingStrategy --codec.uuidStrategy --codec.geo -maxErrors --executor.maxPerSecond "
    "--executor.maxInFlight --batch.mode -cl -h -port -dc -u -p -b -dryRun --engine.executionId "
    "-g -v -e -from -to -lbp -maxRetries booleanNumbers formatNumbers "
    "--log.checkpoint.* --log.directory --log.verbosity --log.row.* --log.stmt.* "
    "--monitoring.reportRate prometheus jmx csv --driver.* --s3.* -f"
)
TABLES = {
    "COPY FROM, option by option": f"{COPY_BOTH} {COPY_FROM}",
    "COPY TO, option by option": f"{COPY_BOTH} {COPY_TO}",
    "Bulk Loader (`dsbulk load`)": LOADER,
    "Bulk Loader (`dsbulk unload`, `dsbulk count`)": "-url -query -c fileNameFormat -maxRecords "
    "-encoding nullValue compression splits -stats",
}


def rows(title: str) -> list[tuple[str, str, str]]:
    return _ROW.findall(PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0])


@pytest.mark.parametrize("title", TABLES)
def test_each_option_of_theirs_has_a_row(title: str) -> None:
    theirs = " ".join(row[0] for row in rows(title))
    names = set(re.findall(r"[\w.*-]+", theirs))
    names |= {name.rpartition(".")[2] for name in names}
    assert [name for name in TABLES[title].split() if name not in names] == []


@pytest.mark.parametrize("title", TABLES)
def test_each_option_of_ours_exists(title: str) -> None:
    ours = [option for name in COMMANDS for option in options(COMMANDS[name])]
    known = {flag for option in ours for flag in (*option.opts, *option.secondary_opts)}
    assert documented(" ".join(row[1] for row in rows(title))) - known == set()


def rows_of(title: str, names: set[str]) -> list[tuple[str, str, str]]:
    """Return the rows whose first cell has one of the names."""
    return [row for row in rows(title) if names & set(re.findall(r"[\w-]+", row[0]))]


def flags(translation: Translation) -> set[str]:
    return {word for word in translation.words if word.startswith("--")}


@pytest.mark.parametrize("direction", COPY_OPTIONS)
def test_each_option_of_copy_is_documented_as_it_is_translated(direction: str) -> None:
    (bare,) = translate(f"COPY s.t {direction} 'x'")
    for name in COPY_OPTIONS[direction]:
        found_rows = rows_of(f"COPY {direction}, option by option", {name})
        if name == "ERRORSFILE":  # an older name
            continue
        assert found_rows, name
        value = COPY_VALUES.get(name, "1")
        (found,) = translate(f"COPY s.t {direction} 'x' WITH {name} = '{value}'")
        assert flags(found) - flags(bare) <= documented(" ".join(map(" ".join, found_rows))), name


@pytest.mark.parametrize("command", ["load", "unload"])
def test_each_setting_of_bulk_loader_is_documented_as_it_is_translated(command: str) -> None:
    """A setting that both commands have may be in the table of either."""
    shortcuts = {full.replace("csv", "*"): f"-{short}" for short, full in SHORTCUTS.items()}
    titles = ["Bulk Loader (`dsbulk unload`, `dsbulk count`)", "Bulk Loader (`dsbulk load`)"]
    base = f"dsbulk {command} -k s -t t -url x.csv"
    (bare,) = translate(base)
    missing: dict[str, set[str]] = {}
    for name in HANDLERS[command]:
        if (command, name) == ("load", "schema.query"):
            continue  # becomes another command
        names = {name.rpartition(".")[2], shortcuts.get(name, "-")}
        found_rows = [row for title in titles for row in rows_of(title, names)]
        if not found_rows and find_group(name) is None:
            missing[name] = set()
        setting = name.replace("*", "csv")
        (found,) = translate(f"{base} --{setting} {shlex.quote(VALUES.get(name, '1'))}")
        said = documented(" ".join(f"{row[1]} {row[2]}" for row in found_rows))
        if unsaid := flags(found) - flags(bare) - said:
            missing[name] = unsaid
    assert missing == {}
