"""The schedule file: its steps are checked against the commands that they name; and the
shipped example."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.settings import load_settings
from producer.schedule.file import find_schedule_file, read_schedule_file
from ringhaul.errors import UsageError
from ringhaul.schedule.parse import parse_schedules

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "config" / "schedule.example.toml"


FULL = "the second run would find this folder full"


def write(folder: Path, steps: str, more: str = "") -> Path:
    path = folder / "schedule.toml"
    path.write_text(f'[schedule.a]\nevery = "1h"\nsteps = [{steps}]\n{more}')
    return path


def test_the_shipped_example_is_valid() -> None:
    found = read_schedule_file(EXAMPLE)
    assert list(found.schedules) == ["nightly", "totals", "drop-box"]
    assert [step[0] for step in found.schedules["nightly"].steps] == ["load", "verify", "unload"]
    assert len(found.schedules["nightly"].notify) == 2
    assert found.schedules["drop-box"].arrive
    assert found.folder == EXAMPLE.parent


@pytest.mark.parametrize(
    "step",
    [
        '["load", "/in/{due:%Y}/*.csv", "-t", "k.t", "--max-errors", "0.1%", "--max-rows", 5]',
        '["exec", "UPDATE k.t SET a = 1 WHERE d = ?", "--params", "p.csv"]',
        # The step's own folder, which may differ from the current one
        '["count", "-t", "k.t", "--where", "a > 1", "--summary", "no/{due}/sum.json"]',
        '["load", "a.csv", "-t", "k.t", "--report", "no/reports/"]',
        '["verify", "/in/{due:%Y}/*.csv", "-t", "k.t", "--nulls", "unset"]',
        '["unload", "-t", "k.t", "-o", "s3://b/{due}", "--format", "parquet"]',
        '["count", "-t", "k.t", "--where", "a > 1"]',
        '["query", "SELECT count(*) FROM k.t", "-o", "/out/n.csv"]',
        '["lookup", "-t", "k.t", "--keys", "/in/k.csv", "-o", "/out/{due}"]',
        '["exec", "DELETE FROM k.t WHERE d = ?", "--range", "d:{due-30d:%Y-%m-%d}..2026-01-01"]',
        '["exec", "SELECT a FROM k.t WHERE d = ?", "--params", "/in/p.csv", "-o", "/out/{due}"]',
        '["unload", "-t", "k.t", "--output=/out/{due:%Y-%m-%dT%H}"]',
    ],
)
def test_valid_steps_are_accepted(tmp_path: Path, step: str) -> None:
    found = read_schedule_file(write(tmp_path, step))
    assert len(found.schedules["a"].steps) == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ('["load", "a.csv", "-t", "k.t", "--no-such"]', "No such option"),
        ('["load", "-t", "k.t"]', "Missing argument 'SOURCE...'. Give one, or --urlfile FILE"),
        ('["load", "a.csv"]', "Missing option"),
        ('["load", "a.csv", "-t", "k.t", "--max-rows", "x"]', "'x' is not a valid integer"),
        ('["count", "--help"]', "--help is not allowed in a step"),
        ('["load", "a.csv", "-t", "k.t", "--detach"]', "--detach: a step ends with its job"),
        ('["load", "a.csv", "-t", "k.t", "--dry-run"]', "--dry-run: a step has to do its work"),
        ('["count", "-t", "k.t", "--job-id", "x"]', "--job-id: the id follows from"),
        ('["count", "-t", "k.t", "--on-interrupt", "cancel"]', "--on-interrupt: "),
        ('["count", "-t", "k.t", "--config", "x"]', "--config: the settings are beat's own"),
        ('["count", "-t", "k.t", "--broker", "redis://h"]', "--broker: the broker is beat's"),
        ('["load", "a.csv", "-t", "k.t", "-c", "2"]', "--workers: it applies to embedded workers"),
        ('["load", "a.csv", "-t", "k.t", "--create-table"]', "--create-table: a step loads into a"),
        ('["load", "-", "-t", "k.t"]', "-: a step has no standard input"),
        ('["verify", "-", "-t", "k.t"]', "-: a step has no standard input"),
        ('["verify", "a.csv", "-t", "k.t", "--detach"]', "--detach: a step ends with its job"),
        ('["verify", "a.csv", "-t", "t"]', "no keyspace: give --keyspace"),
        ('["verify", "a.csv", "-t", "k.t", "--max-errors", "x"]', "max_errors"),
        ('["load", "--urlfile", "-", "-t", "k.t"]', "-: a step has no standard input"),
        ('["lookup", "-t", "k.t", "--keys", "-", "-o", "/x/{due}"]', "no standard input"),
        ('["exec", "DELETE FROM k.t WHERE d = ?", "--params", "-"]', "no standard input"),
        ('["unload", "-t", "k.t", "-o", "-"]', "not to standard output"),
        # Whether the condition held is an answer
        (
            '["exec", "UPDATE k.t SET a = 1 WHERE d = ? IF a = 0", "--params", "p.csv"]',
            "not to standard output",
        ),
        ('["lookup", "-t", "k.t", "--keys", "a.csv"]', "not to standard output"),
        ('["unload", "-t", "k.t", "-o", "/out"]', FULL),
        # Only another argument differs, or the same value stays from one hour to the next
        ('["unload", "-t", "k.t", "-o", "/out", "--where", "d < \'{due:%Y-%m-%d}\'"]', FULL),
        ('["unload", "-t", "k.t", "-o", "/out/{due:%Y-%m-%d}"]', FULL),
        ('["lookup", "-t", "k.t", "--keys", "/in/{due}.csv", "-o", "/out"]', FULL),
        ('["exec", "SELECT a FROM k.t WHERE d = ?", "--range", "d:1..9", "-o", "/out"]', FULL),
        (
            '["exec", "/* all */ SELECT a FROM k.t WHERE d = ?", "--range", "d:1..9"]',
            "not to standard output",
        ),
    ],
)
def test_a_step_that_would_fail_at_night_is_refused_now(
    tmp_path: Path, step: str, message: str
) -> None:
    path = write(tmp_path, f'["count", "-t", "k.t"], {step}')
    with pytest.raises(UsageError) as error:
        read_schedule_file(path)
    assert str(error.value).startswith(f"{path}: schedule a: steps, step 2 (")
    assert message in str(error.value)


LOAD = '"load", "a.csv", "-t", "k.t"'
UNLOAD = '"unload", "-t", "k.t", "-o", "/out/{due}"'
LOOKUP = '"lookup", "-t", "k.t", "--keys", "/in/k.csv", "-o", "/out/{due}"'
VALUES = {
    f'{LOAD}, "--format", "xml"': "'--format': 'xml' is not one of 'auto', 'csv'",
    f'{LOAD}, "--max-errors", "many"': 'load.max_errors = "many" (--max-errors): expected a number',
    f'{LOAD}, "--consistency", "SOME"': 'cluster.consistency = "SOME" (--consistency): expected',
    f'{LOAD}, "--unit-size", "1X"': 'load.unit_bytes = "1X" (--unit-size): expected a size',
    f'{LOAD}, "--delimiter", "colons"': "--delimiter: 'colons' is not a name",
    f'{LOAD}, "--encoding", "utf9"': "--encoding: 'utf9' is not known",
    f'{LOAD}, "--timezone", "Mars/Olympus"': "Mars/Olympus",
    f'{LOAD}, "--mapping", "id,a=b"': "--mapping 'id': expected FIELD=COLUMN",
    f'{LOAD}, "--ttl", -5': "--ttl -5: give 0 to 630720000 seconds",
    f'{LOAD}, "--timestamp", "yesterday"': "--timestamp 'yesterday': give microseconds",
    f'{LOAD}, "--where", "a >"': "--where: cannot read the query",
    f'{LOAD}, "--to-sstables", "/out", "--consistency", "ONE"': "--consistency says how rows",
    f'{LOAD}, "--transform", "etl"': "--transform etl: give MODULE:FUNCTION",
    '"load", "a.csv", "-t", "t"': "no keyspace: give --keyspace, or --table",
    f'{UNLOAD}, "--max-errors", "5"': "--max-errors applies to transforms",
    f'{UNLOAD}, "--max-errors", "x", "--transform", "a:b"': '"x" (--max-errors): expected a number',
    f'{UNLOAD}, "--compression", "lzo"': "--compression: csv can have",
    f'{UNLOAD}, "--format", "parquet", "--null", "x"': "--null: applies only to CSV",
    f'{UNLOAD}, "--max-file-size", "1X"': "--max-file-size '1X': expected a size",
    f'{UNLOAD}, "--where", "a = 1 LIMIT 1"': '--where: "a = 1 LIMIT 1" is more than a condition',
    f'{UNLOAD}, "--where", "a = :b"': "--where: :b: parameters cannot be used here",
    f'{UNLOAD}, "--columns", "a,(b"': "--columns: cannot read the query",
    f'{UNLOAD}, "--query", "SELECT a FROM k.t"': "--query is a complete SELECT: leave --table out",
    '"unload", "-o", "/out/{due}", "--query", "DELETE FROM k.t"': "--query: only SELECT can be",
    '"unload", "-t", "k.t", "-o", "/a.csv", "--max-file-size", "1M"': "you want one",
    '"count", "-t", "k.t", "--where", "a ="': "--where: cannot read the query",
    '"count", "-t", "t"': "no keyspace: give --keyspace",
    '"count", "-t", "k.t", "--top", "3", "--by", "host"': "--top and --by are two different counts",
    '"count", "-t", "k.t", "--json"': "the result and --json both want standard output",
    '"query", "SELECT count(*) FROM t"': "SELECT: FROM t: name the table as keyspace.table",
    '"query", "SELECT * FROM k.t LIMIT 5"': "this SELECT returns rows: use unload --query",
    '"load", "a.csv", "-t", "k.t", "--yes"': "--yes needs --create-table",
    '"lookup", "-t", "t", "--keys", "/in/k.csv", "-o", "/out/{due}"': "no keyspace: give",
    f'{LOOKUP}, "--compression", "lzo"': "--compression: csv can have",
    f'{LOOKUP}, "--values-delimiter", "colons"': "--values-delimiter: 'colons' is not a name",
    f"{LOOKUP}, '--columns', 'a\"'": '--columns a": double quotes must enclose a complete name',
    '"exec", "DELETE FROM k.t WHERE d = ?"': "give --params FILE, or one --range",
    '"exec", "DELETE FROM k.t WHERE d = ?", "--range", "d:9..1"': "it ends before it begins",
    (
        '"exec", "DELETE FROM k.t WHERE d = ?", "--range", "d:1..9", "--values-quote", "x"'
    ): "the --values options and --nulls apply to a file",
}


@pytest.mark.parametrize("step", VALUES)
def test_a_value_that_the_command_would_refuse_is_reported_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(tmp_path, f'["count", "-t", "k.t"], [{step}]')
    with pytest.raises(UsageError) as error:
        read_schedule_file(path)
    assert str(error.value).startswith(f"{path}: schedule a: steps, step 2 (")
    assert VALUES[step] in str(error.value)


#: Options with which a step would log in elsewhere, as somebody else, or with other secrets.
ELSEWHERE = {
    '"--contact-points", "h"': "--contact-points",
    '"--contact-points=h"': "--contact-points",
    '"--port", "9043"': "--port",
    '"--secure-connect-bundle", "b.zip"': "--secure-connect-bundle",
    '"--user", "u"': "--user",
    '"-u", "u"': "--user",
    '"-uu"': "--user",
    '"--password-file", "/etc/shadow"': "--password-file",
    '"-p"': "--password",
    '"--cqlshrc", "c"': "--cqlshrc",
    '"--broker", "redis://h"': "--broker",
    '"--config", "c.toml"': "--config",
}


@pytest.mark.parametrize("words", ELSEWHERE)
@pytest.mark.parametrize(
    "command",
    ['"count", "-t", "k.t"', '"load", "a.csv", "-t", "k.t"', '"query", "SELECT * FROM t"'],
)
def test_a_step_names_no_other_cluster(tmp_path: Path, command: str, words: str) -> None:
    (tmp_path / "c").touch()
    (tmp_path / "c.toml").touch()
    path = write(tmp_path, f"[{command}, {words}]")
    with pytest.raises(UsageError, match=f"{ELSEWHERE[words]}: the .* beat's (own|settings)"):
        read_schedule_file(path)


def test_a_step_may_name_its_data_centre(tmp_path: Path) -> None:
    path = write(tmp_path, '["count", "-t", "k.t", "--local-dc", "dc2"]')
    assert read_schedule_file(path).schedules


@pytest.mark.parametrize("range_", ["d:2026-01-01..{due:%Y-%m-%d}", "d:{due:%Y-%m-%d}..2026-01-01"])
def test_a_step_that_is_wrong_only_on_some_days_is_accepted(tmp_path: Path, range_: str) -> None:
    step = f'["exec", "DELETE FROM k.t WHERE d = ?", "--range", "{range_}"]'
    assert read_schedule_file(write(tmp_path, step)).schedules


def test_an_output_is_below_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "out").touch()
    monkeypatch.chdir(tmp_path / "here")
    step = '["unload", "-t", "k.t", "-o", "out/{due}"]'
    assert read_schedule_file(write(tmp_path, step)).schedules
    with pytest.raises(UsageError, match=f"{tmp_path}/here/out is not a folder"):
        read_schedule_file(write(tmp_path / "here", step))


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, '["count", "-t", "k.t"]')
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert list(read_schedule_file(path).schedules) == ["a"]


@pytest.mark.parametrize(
    ("when", "form"),
    [
        ('every = "1h"\ntimezone = "Europe/Berlin"', "%Y-%m-%dT%H"),
        ('cron = "5 * * * *"\ntimezone = "America/New_York"', "%Y-%m-%dT%H"),
        ('cron = "0 1 * * mon"', "%a"),
        ('every = "1h"', "%Y-%m-%d"),
    ],
)
def test_an_output_that_the_next_run_finds_full_is_refused(
    tmp_path: Path, when: str, form: str
) -> None:
    path = tmp_path / "schedule.toml"
    steps = f'steps = [["unload", "-t", "k.t", "-o", "/out/{{due:{form}}}"]]'
    path.write_text(f"[schedule.a]\n{when}\n{steps}")
    a_due = r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:00[-+]\d\d:00"
    with pytest.raises(
        UsageError, match=rf"-o /out/.*: {FULL} \(the run of {a_due} after the run of"
    ):
        read_schedule_file(path)
    # but an output with the year and the offset is accepted
    path.write_text(path.read_text().replace(form, "%Y-%m-%dT%H%M%z"))
    assert read_schedule_file(path).warnings == {"a": []}


@pytest.mark.parametrize(
    ("when", "output", "after"),
    [
        ('cron = "0 1 * * *"', '"-o", "/out/{due:%a}"', "7d00h"),
        # The closest two of the next two months, a change of the clocks may be among them
        (
            'cron = "0 1 * * *"\ntimezone = "America/New_York"',
            '"-o/out/{due:%a}"',
            "(?:6d23h|7d00h)",
        ),
        (
            'cron = "0 1 * * *"',
            '"--output", "/no", "--output=/out/{due:%d}"',
            r"(?:2[89]|3[01])d00h",
        ),
        ('cron = "0 1 * * *"', '"-o", "s3://b/{name}/{due:%m-%d}"', "36[56]d00h"),
        ('every = "1h"', '"-o", "/out/{due:%H}", "--where", "h = {due:%H}"', "1d00h"),
    ],
)
def test_an_output_that_repeats_later_gives_a_warning(
    tmp_path: Path, when: str, output: str, after: str
) -> None:
    step = f'["unload", "-t", "k.t", {output}]'
    path = write(tmp_path, f'["count", "-t", "k.t"], {step}')
    path.write_text(path.read_text().replace('every = "1h"', when))
    (warning,) = read_schedule_file(path).warnings["a"]
    assert warning.startswith(f"{path}: schedule a: steps, step 2 (unload): -o ")
    found = re.search(
        rf" repeats after {after}: the run of (\S+) fails if .* the run of (\S+) ", warning
    )
    assert found is not None, warning
    again, first = (datetime.fromisoformat(text) for text in found.groups())
    now = datetime.now(UTC)
    assert now < first < again and first < now + timedelta(days=70), "due times in the future"
    if "New_York" in when:
        assert {again.hour, first.hour} == {1} and first.utcoffset()
    assert "empty or move the folder before, or put {due} into it" in warning


def test_a_notification_that_cannot_be_sent_gives_a_warning(tmp_path: Path) -> None:
    notify = f'[[schedule.a.notify]]\nwebhook_file = "{tmp_path}/webhook"\n'
    notify += '[[schedule.a.notify]]\ncommand = "/no/such"\n'
    path = write(tmp_path, '["count", "-t", "k.t"]', notify)
    missing, command = read_schedule_file(path).warnings["a"]
    place = f"{path}: schedule a, notify: "
    assert missing.startswith(f"{place}webhook_file: cannot read {tmp_path}/webhook: No such file")
    assert command.startswith(f"{place}command /no/such: not found")
    assert missing.endswith("; this host would send no notification")
    (tmp_path / "webhook").write_text("https://h/s3cret")
    path.write_text(path.read_text().replace("/no/such", "/bin/sh"))
    assert read_schedule_file(path).warnings == {"a": []}


def test_a_file_url_of_another_host_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "schedule.toml"
    text = '[schedule.a]\narrive = "file://HOST/in/"\nsteps = [["load", "{files}", "-t", "k.t"]]'
    path.write_text(text.replace("HOST", "other"))
    with pytest.raises(UsageError, match=r"schedule a: arrive: file://other/in/: .* of this host"):
        read_schedule_file(path)
    path.write_text(text.replace("HOST", ""))
    assert read_schedule_file(path).schedules


def test_files_that_arrive_on_different_days_have_different_folders(tmp_path: Path) -> None:
    path = tmp_path / "schedule.toml"
    steps = '["load", "{files}", "-t", "k.t"], ["unload", "-t", "k.t", "-o", "/out/{due:%m-%d}"]'
    path.write_text(f'[schedule.a]\narrive = "/in"\nsteps = [{steps}]')
    (warning,) = read_schedule_file(path).warnings["a"]
    assert "-o /out/{due:%m-%d} is the same for files that arrive within an hour" in warning
    named = path.read_text()
    path.write_text(named.replace("{due:%m-%d}", "{due}"))
    assert not read_schedule_file(path).warnings.get("a")
    path.write_text(named.replace("{due:%m-%d}", "{name}"))
    with pytest.raises(UsageError, match=FULL):
        read_schedule_file(path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none.toml: No such file"):
        read_schedule_file(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError, match=r"is not UTF-8 text \(byte 0\)"):
        read_schedule_file(tmp_path / "bytes.toml")


def test_where_the_file_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("RINGHAUL_STATE_DIR", str(tmp_path / "state"))

    def found() -> Path | None:
        return find_schedule_file(load_settings().settings)

    assert found() is None
    for name in ("xdg/ringhaul", "config"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "schedule.toml").touch()
        assert found() == tmp_path / name / "schedule.toml"
    monkeypatch.setenv("RINGHAUL_SCHEDULE_FILE", "other.toml")
    with pytest.raises(UsageError, match=r"no such schedule file: .*other\.toml"):
        found()
    (tmp_path / "other.toml").touch()
    assert found() == tmp_path / "other.toml"


def test_the_docs_have_every_key_and_valid_examples(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "schedules.md").read_text()
    source = (ROOT / "ringhaul" / "schedule" / "parse.py").read_text()
    keys = set(re.findall(r'table\.take\("(\w+)"', source))
    assert len(keys) > 15
    assert {key for key in keys if f"| `{key}` |" not in page} == set()
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 5
    named = set()
    for example in examples:
        path = tmp_path / "schedule.toml"
        path.write_text(example)
        read_schedule_file(path)
        named |= {
            key for key in keys if re.search(rf"(?:^ *|[{{,] ){key} = ", example, re.MULTILINE)
        }
        named |= {"notify"} if ".notify]]" in example else set()
    assert keys - named == set(), "each key has an example"
    assert parse_schedules(examples[0], "docs")
