"""Options of Celery's commands that Celery itself would meet with a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from producer.commands.passed_on import check_passed_on
from ringhaul.errors import UsageError
from tests.cases import each


@each(
    ("words", "why"),
    [
        ("--pidfile /nonexistent/x", "--pidfile: there is no folder /nonexistent"),
        ("--pidfile=/nonexistent/x", "--pidfile: there is no folder /nonexistent"),
        ("--pidfile=/tmp", "--pidfile: /tmp is a folder"),
        ("--loglevel INFO --logfile /nonexistent/x", "--logfile: there is no folder /nonexistent"),
        ("-f /nonexistent/x", "-f: there is no folder /nonexistent"),
        ("-f/nonexistent/x", "-f: there is no folder /nonexistent"),
        ("--uid nosuchuser", "--uid: this host has no user nosuchuser"),
        ("--gid nosuchgroup", "--gid: this host has no group nosuchgroup"),
        ("-S nosuch", "-S: there is no scheduler nosuch"),
        ("-S celery.beat:Nosuch", "-S: there is no scheduler celery.beat:Nosuch"),
        (
            "--scheduler nosuch.module:Class",
            "--scheduler: there is no scheduler nosuch.module:Class",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(words: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        check_passed_on(words.split())
    assert str(error.value).startswith(why)


def test_others_are_passed_on(tmp_path: Path) -> None:
    check_passed_on([])
    words = (
        f"-c 2 --pidfile {tmp_path}/pid --logfile={tmp_path}/log --uid 0 --gid root --pidfile= -E"
    )
    check_passed_on([*words.split(), "-S", "celery.beat:PersistentScheduler", "--nosuch"])
