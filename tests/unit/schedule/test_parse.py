"""The schedule file: its keys, and the errors that are reported."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ringhaul.errors import UsageError
from ringhaul.schedule.parse import check_webhook, parse_schedules
from ringhaul.schedule.schedules import CatchUp, Overlap, Schedule
from tests.cases import each

STEPS = 'steps = [["count", "-t", "k.t"]]'
KEYS = (
    *("cron", "every", "timezone", "window", "overlap", "catch_up", "late_max", "retries"),
    *("backoff", "rejects_ok", "steps", "arrive", "settle", "files_max", "notify"),
)
FILES = 'arrive = "/in/*.csv"\nsteps = [["load", "{files}", "-t", "k.t"]]'


def parse(body: str, name: str = "a") -> Schedule:
    (schedule,) = parse_schedules(f"[schedule.{name}]\n{body}\n", "s.toml").values()
    return schedule


def refused(body: str, name: str = "a") -> str:
    with pytest.raises(UsageError) as error:
        parse(body, name)
    assert error.value.exit_code == 2
    return str(error.value)


def test_missing_keys_have_defaults() -> None:
    schedule = parse(f'cron = "0 1 * * *"\n{STEPS}')
    assert schedule.name == "a"
    assert schedule.steps == (("count", "-t", "k.t"),)
    assert schedule.timing.zone == ZoneInfo("UTC")
    assert (schedule.overlap, schedule.catch_up) == (Overlap.SKIP, CatchUp.LATEST)
    assert (schedule.late_max_s, schedule.retries, schedule.backoff_s) == (0, 0, 60)
    assert not schedule.rejects_ok
    assert schedule.notify == ()


def test_every_key() -> None:
    schedule = parse(
        """
        cron = "0 1 * * *"
        timezone = "Europe/Berlin"
        window = "01:00-05:00"
        overlap = "queue"
        catch_up = "all"
        late_max = "6h"
        retries = 3
        backoff = "2m"
        rejects_ok = true
        steps = [["load", "/in/a.csv", "-t", "k.t", "--max-rows", 10], ["count", "-t", "k.t"]]
        [[schedule.a.notify]]
        on = ["success", "failure"]
        command = ["/bin/tell", "me"]
        timeout = "5s"
        [[schedule.a.notify]]
        webhook = "https://host.example/hook"
        authorization_file = "/etc/token"
        """
    )
    assert schedule.timing.text == "0 1 * * * Europe/Berlin 01:00-05:00"
    assert (schedule.overlap, schedule.catch_up) == (Overlap.QUEUE, CatchUp.ALL)
    assert (schedule.late_max_s, schedule.retries, schedule.backoff_s) == (21_600, 3, 120)
    assert schedule.rejects_ok
    assert schedule.steps[0][-1] == "10"  # a number is an argument like any other
    command, webhook = schedule.notify
    assert command.on == {"success", "failure"}
    assert (command.command, command.timeout_s) == (("/bin/tell", "me"), 5)
    assert (webhook.on, webhook.webhook) == ({"failure"}, "https://host.example/hook")
    assert webhook.authorization_file == "/etc/token"


def test_the_keys_of_files_that_arrive() -> None:
    schedule = parse(f'every = "30s"\nsettle = "1m"\nfiles_max = 7\n{FILES}')
    assert schedule.arrive == ("/in/*.csv",)
    assert (schedule.timing.every_s, schedule.settle_s, schedule.files_max) == (30, 60, 7)
    assert parse(FILES).timing.every_s == 10


def test_schedules_keep_the_order_of_the_file() -> None:
    text = "".join(f'[schedule.{name}]\nevery = "1h"\n{STEPS}\n' for name in ("b", "a", "c"))
    assert list(parse_schedules(text, "s.toml")) == ["b", "a", "c"]
    assert parse_schedules("", "s.toml") == {}


def test_pauses_between_tries_double_up_to_an_hour() -> None:
    schedule = parse(f'every = "1h"\nbackoff = "10m"\n{STEPS}')
    assert [schedule.backoff_ms(tries) // 60_000 for tries in (1, 2, 3, 4, 50)] == [
        *(10, 20, 40, 60, 60)
    ]
    assert parse(f'every = "1h"\nbackoff = "2h"\n{STEPS}').backoff_ms(3) == 7_200_000


@each(
    ("body", "message"),
    [
        (f'cron = "x"\n{STEPS}', 'cron = "x": expected five fields'),
        (f"cron = 5\n{STEPS}", "cron = 5: expected a text"),
        (f'every = "2d"\n{STEPS}', 'every = "2d": expected "1s" to "1d"; for more use cron'),
        (f'every = "0s"\n{STEPS}', 'every = "0s"'),
        (f"every = 60\n{STEPS}", 'every = 60: expected a time such as "90s"'),
        (STEPS, "give either cron or every"),
        (f'cron = "0 1 * * *"\nevery = "1h"\n{STEPS}', "give either cron or every"),
        (f'every = "1h"\ntimezone = "Moon"\n{STEPS}', 'timezone = "Moon": expected a time zone'),
        (f'every = "1h"\ntimezone = "../x"\n{STEPS}', 'timezone = "../x"'),
        (f'every = "1h"\nwindow = "1-5"\n{STEPS}', 'window = "1-5": expected two times'),
        (f'every = "3h"\nwindow = "01:00-03:00"\n{STEPS}', "every: longer than the window"),
        (f'cron = "0 6 * * *"\nwindow = "01:00-05:00"\n{STEPS}', "no due time is within"),
        (f'every = "1h"\nlate_max = "0s"\n{STEPS}', 'late_max = "0s": expected "1s" or more'),
        (f'every = "1h"\nlate_max = "0d"\n{STEPS}', "without late_max there is no limit"),
        (f'every = "1h"\noverlap = "both"\n{STEPS}', 'expected "skip" or "queue"'),
        (f'every = "1h"\ncatch_up = true\n{STEPS}', 'expected "latest" or "all"'),
        (f'every = "1h"\nretries = -1\n{STEPS}', "retries = -1: expected a whole number from 0"),
        (f'every = "1h"\nretries = true\n{STEPS}', "retries = True: expected a whole number"),
        (f'every = "1h"\nrejects_ok = "no"\n{STEPS}', "expected true or false"),
        ('every = "1h"', "steps is missing"),
        ('every = "1h"\nsteps = []', "steps = []: expected a list of steps"),
        ('every = "1h"\nsteps = ["count"]', "expected a list of steps, each a list of texts"),
        (
            'every = "1h"\nsteps = [["rm", "x"]]',
            "step 1: expected one of load, verify, unload, count",
        ),
        ('every = "1h"\nsteps = [["count", true]]', "expected texts and numbers"),
        ('every = "1h"\nsteps = [["count", "{deu}"]]', "{deu} is not a template"),
        ('every = "1h"\nsteps = [["load", "{files}"]]', "{files} needs arrive"),
        (f'every = "1h"\nsettle = "1s"\n{STEPS}', "settle applies to files that arrive"),
        (f'evry = "1h"\nevery = "1h"\n{STEPS}', "unknown key evry; did you mean every?"),
        (f'every = "1h"\nsteps_ = 1\n{STEPS}', "unknown key steps_; did you mean steps?"),
        (f'cron = "0 1 * * *"\n{FILES}', "checks at intervals: give every"),
        (f'overlap = "skip"\n{FILES}', "overlap applies to due times"),
        (
            'arrive = "/in"\nsteps = [["load", "/in", "-t", "k.t"]]',
            "expected one load of the files",
        ),
        (
            'arrive = "/in"\nsteps = [["verify", "{files}", "-t", "k.t"], '
            '["load", "{files}", "-t", "k.t"]]',
            "expected one load of the files",
        ),
        (
            'arrive = "/in"\nsteps = [["load", "{files}", "-t", "k.t"], '
            '["load", "{files}", "-t", "k.u"]]',
            "expected one load of the files",
        ),
        (f'arrive = []\nevery = "1h"\n{STEPS}', "arrive = []: expected a list of texts"),
        (f"files_max = 0\n{FILES}", "files_max = 0: expected a whole number from 1 to 1000"),
        (f"notify = 1\n{STEPS}", "notify = 1: expected tables [[schedule.a.notify]]"),
    ],
)
def test_an_error_names_file_schedule_key_and_value(body: str, message: str) -> None:
    text = refused(body if "notify" not in body else f'every = "1h"\n{body}')
    assert text.startswith("s.toml: schedule a: ")
    assert message in text


@each(
    ("keys", "message"),
    [
        ('on = "never"\ncommand = "x"', 'on = "never": expected "success", "failure"'),
        ("", "give one of command, webhook and webhook_file"),
        ('command = "x"\nwebhook = "https://h/"', "give one of command, webhook"),
        ('webhook = "ftp://h/"', "begins with https:// or http://"),
        ('webhook = "https:///x"', "begins with https:// or http://"),
        ('webhook = "https://user:pw@h/"', "give authorization_file"),
        ('webhook_file = "token"', "expected a path that begins with /"),
        ('command = "x"\nauthorization_file = "/t"', "authorization_file is only for webhooks"),
        ('command = "x"\ntimeout = "2m"', 'timeout = "2m": expected "1s" to "60s"'),
        ('comand = "x"', "unknown key comand; did you mean command?"),
    ],
)
def test_errors_in_a_notification(keys: str, message: str) -> None:
    text = refused(f'every = "1h"\n{STEPS}\n[[schedule.a.notify]]\n{keys}')
    assert text.startswith("s.toml: schedule a, notify: ")
    assert message in text


@pytest.mark.parametrize("name", ['"a b"', '""', "-a", '"ä"', "a" * 33, '"a}"'])
def test_a_name_that_cannot_be_part_of_a_job_id_is_refused(name: str) -> None:
    assert "a name has letters, digits" in refused(f'every = "1h"\n{STEPS}', name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[schedule.a\n", "s.toml is not valid TOML: .*line 1"),
        ("[schedules.a]\n", "unknown key schedules: expected tables \\[schedule.NAME\\]"),
        ("schedule = 1\n", "schedule: expected tables"),
        ("[schedule]\na = 1\n", "s.toml: schedule a: expected a table"),
        ("[schedule.a]\nretries = " + "9" * 5000, "s.toml, line 2: a number has thousands of"),
        ("a = " + "[" * 3000, "s.toml: brackets or braces are nested hundreds deep"),
    ],
)
def test_an_invalid_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_schedules(text, "s.toml")


@pytest.mark.parametrize(
    "shift", ["-800000d", "+2900000d"]
)  # the second fails only from some day on
def test_a_date_beyond_the_calendar_is_refused_with_its_place(shift: str) -> None:
    steps = f'steps = [["load", "/x/{{due{shift}:%Y}}.csv", "-t", "k.t"]]'
    text = refused(f'every = "1h"\n{steps}')
    assert text.startswith(
        f"s.toml: schedule a: steps: {{due{shift}:%Y}}: the date is outside the years"
    )


def test_the_address_of_a_webhook_is_not_in_messages() -> None:
    with pytest.raises(ValueError) as error:
        check_webhook("https://u:secret@host/secret")
    assert "secret" not in str(error.value)


def test_the_longest_name_gives_a_valid_job_id() -> None:
    from ringhaul.ledger.keys import job_key
    from ringhaul.schedule.runs import new_run

    schedule = parse(f'every = "1h"\n{STEPS}', "n" * 32)
    run = new_run(schedule, 253_402_300_799_000, 0)  # the last second of the year 9999
    assert job_key(run.steps[0].job, "meta")


def test_values_of_all_kinds_are_refused_with_a_message() -> None:
    """No TOML value causes a traceback."""
    huge = "0x" + "f" * 5000
    values: list[Any] = [huge, f"[[{huge}]]", f'[["count", {huge}]]', f"{{{'a.' * 5000}a = 1}}"]
    values += ["1", "-1", "1.5", "true", '"x"', "[]", "[1]", "{}", "[[1]]", "1979-05-27"]
    for key in KEYS:
        for value in values:
            base = "" if key in ("cron", "every", "arrive") else 'every = "1h"\n'
            steps = "" if key == "steps" else STEPS + "\n"
            try:
                parse(f"{base}{steps}{key} = {value}")
            except UsageError as error:
                assert str(error).startswith("s.toml: schedule a")


def test_files_that_were_loaded_may_be_verified() -> None:
    steps = '[["load", "{files}", "-t", "k.t"], ["verify", "{files}", "-t", "k.t"], ["count"]]'
    found = parse_schedules(f'[schedule.a]\narrive = "/in/*.csv"\nsteps = {steps}', "s.toml")
    assert found["a"].arguments(0, ("/in/a.csv", "/in/b.csv"))[:2] == [
        ["load", "/in/a.csv", "/in/b.csv", "-t", "k.t"],
        ["verify", "/in/a.csv", "/in/b.csv", "-t", "k.t"],
    ]
