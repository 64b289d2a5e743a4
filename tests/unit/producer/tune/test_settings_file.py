"""Settings are put into a `ringhaul.toml` without a change of anything else in it."""

from __future__ import annotations

import tomllib

import pytest

from producer.tune.settings_file import edited, section_text
from ringhaul.errors import UsageError

VALUES = {"load.strategy": "single", "load.unit_bytes": 1024, "worker.concurrency": 3}
COMMENTS = {"load": ["made today", "because"]}


def test_an_empty_file_gets_the_sections() -> None:
    assert edited("", VALUES, COMMENTS) == (
        "[load]\n# tune: made today\n# tune: because\n"
        'strategy = "single"\nunit_bytes = 1024\n'
        "\n[worker]\nconcurrency = 3\n"
    )


def test_comments_other_settings_and_their_order_stay() -> None:
    before = (
        "# top\n"
        'state_dir = "s"\n'
        "\n"
        "[worker]  # hosts\n"
        "lease_s = 30.0  # short\n"
        "\n"
        "# of loads\n"
        "[ load ]\n"
        "unit_bytes = 7\n"
        'max_errors = "1"\n'
        "\n"
        "[logging]\n"
        'level = "DEBUG"\n'
    )
    assert edited(before, VALUES, COMMENTS) == (
        "# top\n"
        'state_dir = "s"\n'
        "\n"
        "[worker]  # hosts\n"
        "lease_s = 30.0  # short\n"
        "concurrency = 3\n"
        "\n"
        "# of loads\n"
        "[ load ]\n"
        "# tune: made today\n"
        "# tune: because\n"
        "unit_bytes = 1024\n"
        'max_errors = "1"\n'
        'strategy = "single"\n'
        "\n"
        "[logging]\n"
        'level = "DEBUG"\n'
    )


def test_a_second_run_replaces_the_first() -> None:
    once = edited('[load]\nmax_errors = "1"\n', VALUES, COMMENTS)
    twice = edited(once, {**VALUES, "load.strategy": "pipeline"}, {"load": ["another day"]})
    assert twice.count("# tune:") == 1 and "another day" in twice
    assert tomllib.loads(twice)["load"] == {
        "max_errors": "1",
        "strategy": "pipeline",
        "unit_bytes": 1024,
    }


@pytest.mark.parametrize(
    "text",
    [
        'load = { strategy = "pipeline" }\n',
        'load.strategy = "pipeline"\n',
        '[load]\n"strategy" = "pipeline"\n',
        'note = """\n[load]\n"""\n[load]\nunit_bytes = 1\n',
        "[load\n",
        "[load]\nunit_bytes = [\n 1,\n]\n",
    ],
)
def test_what_is_not_understood_is_refused_with_the_lines_to_write(text: str) -> None:
    with pytest.raises(UsageError, match='strategy = "single"'):
        edited(text, VALUES, COMMENTS)


def test_the_lines_are_toml() -> None:
    assert tomllib.loads(section_text(VALUES)) == {
        "load": {"strategy": "single", "unit_bytes": 1024},
        "worker": {"concurrency": 3},
    }
