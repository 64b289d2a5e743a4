"""docs/reference/copy-from.md has a row for each option of the tools that users migrate from, and
names only existing options of ours."""

import re

import pytest

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
