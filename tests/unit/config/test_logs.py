import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest

from config.logs import set_log_facts, set_up_logging
from config.sections import LoggingSettings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(stream: io.StringIO, **settings: str) -> str:
    set_up_logging(LoggingSettings.model_validate(settings), stream)
    log = logging.getLogger("ringhaul.test")
    log.debug("Not shown.")
    log.info("Opened %s.", "redis://u:pw@h", extra={"action": "opened", "unit": 7})
    return stream.getvalue()


def test_json_lines_without_a_terminal() -> None:
    record = json.loads(logged(io.StringIO()))
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "level": "info",
        "logger": "ringhaul.test",
        "message": "Opened redis://u:***@h.",
        "action": "opened",
        "unit": 7,
    }


def test_console_on_a_terminal() -> None:
    text = logged(Terminal())
    assert text.count("\n") == 1
    assert "Opened redis://u:***@h." in text
    with pytest.raises(ValueError):
        json.loads(text)


def test_the_form_can_be_given() -> None:
    assert "action=opened" in logged(io.StringIO(), format="console")
    assert json.loads(logged(Terminal(), format="json"))["action"] == "opened"


@pytest.mark.parametrize("form", ["json", "console"])
def test_passwords_are_masked_in_fields_and_tracebacks(form: str) -> None:
    stream = io.StringIO()
    set_up_logging(LoggingSettings.model_validate({"format": form}), stream)
    urls = {"urls": ["redis://:S3cret@h"], "error": OSError("redis://u:S3cret@h")}
    try:
        raise ValueError("redis://u:S3cret@h")
    except ValueError:
        logging.getLogger("kombu").exception("Lost.", extra={"deep": urls, "flat": (urls,)})
    assert stream.getvalue().count("***") == 6  # twice two fields, and the traceback's two lines
    assert "S3cret" not in stream.getvalue()
    assert "ValueError" in stream.getvalue()


def test_setting_up_again_replaces_the_handler() -> None:
    first, second = io.StringIO(), io.StringIO()
    logged(first)
    assert logged(second, level="warning") == ""
    assert first.getvalue().count("\n") == 1


def test_libraries_are_quiet_below_warning() -> None:
    stream = io.StringIO()
    set_up_logging(LoggingSettings(level="DEBUG"), stream)
    logging.getLogger("cassandra.cluster").info("chatter")
    logging.getLogger("cassandra.cluster").warning("node is down")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == [
        "node is down"
    ]


@pytest.fixture
def working_on_a_unit() -> Iterator[None]:
    set_log_facts(job="ld-1", unit=3)
    yield
    set_log_facts()


def test_each_line_of_a_process_names_its_unit(working_on_a_unit: None) -> None:
    stream = io.StringIO()
    set_up_logging(LoggingSettings(format="json"), stream)
    thread = threading.Thread(target=logging.getLogger("cassandra").warning, args=("Lost.",))
    thread.start()
    thread.join()
    logging.getLogger("ringhaul").info("Of another.", extra={"job": "ld-2", "unit": None})
    set_log_facts()
    logging.getLogger("ringhaul").info("Idle.")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert (first["job"], first["unit"]) == ("ld-1", 3)
    assert (second["job"], second["unit"]) == ("ld-2", None), "the line itself wins"
    assert not {"job", "unit"} & third.keys()


def test_the_console_names_the_unit_too(working_on_a_unit: None) -> None:
    text = logged(io.StringIO(), format="console")
    assert "job=ld-1" in text and "unit=7" in text


@pytest.mark.parametrize(
    ("kwargs", "unit"),
    [
        ("{'job': 'ld-7f3a9c', 'unit': 12}", 12),
        ("{'job': 'ld-7f3a9c', 'unit': 12, 'epoch': 1}", 12),
        ("{'job': 'ld-7f3a9c', 'unit': x}", None),
        ("{'job': 'ld-7f3a9c\\n', 'unit': 12}", None),
        (None, None),
    ],
)
def test_lines_of_celery_about_a_task_name_its_unit(kwargs: str | None, unit: int | None) -> None:
    stream = io.StringIO()
    set_up_logging(LoggingSettings(format="json"), stream)
    logging.getLogger("celery").info("Task received", extra={"data": {"kwargs": kwargs}})
    line = json.loads(stream.getvalue())
    assert line.get("unit") == unit
    assert line.get("job") == (None if unit is None else "ld-7f3a9c")
