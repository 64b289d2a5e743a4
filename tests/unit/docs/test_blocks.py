"""Every block of code in the manual is checked: it is run by a test, or read by what would read it.

`ringhaul` commands in blocks of all pages are parsed by tests/unit/test_docs.py.
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from config.errors import ConfigError
from config.settings import load_settings
from manual.site import ROOT
from producer.schedule.file import read_schedule_file
from ringhaul.errors import UsageError
from tests.cases import each
from tests.manual_pages import Block, blocks_of, name_of, text_of
from tests.unit.docs.test_language import PAGES
from tests.unit.test_docs import shell_lines

_ANY_FENCE = re.compile(r"^ *```", re.MULTILINE)
#: Page, or its folder -> the test that runs its commands.
RUN_BY = {
    "docs/tutorial.md": "tests/acceptance/test_tutorial.py",
    "docs/how-to/hosts.md": "tests/hosts/test_hosts_page.py",
    "docs/how-to/read-exports.md": "tests/acceptance/test_other_readers.py",
    "docs/how-to": "tests/acceptance/test_how_to.py",
    "docs/reference/answers.md": "tests/acceptance/test_documented_reads.py",
    "docs/reference/select.md": "tests/acceptance/test_documented_reads.py",
    "docs/reference/values.md": "tests/acceptance/test_documented_reads.py",
    "docs/reference/records.md": "tests/acceptance/test_documented_commands.py",
    "docs/reference/spelling.md": "tests/acceptance/test_documented_commands.py",
    "docs/reference/mapping.md": "tests/acceptance/test_documented_commands.py",
    "docs/reference/job-options.md": "tests/acceptance/test_documented_options.py",
    "docs/reference/copy-from.md": "tests/acceptance/test_documented_commands.py",
    "docs/reference/formats.md": "tests/acceptance/test_load_writes.py",
    "docs/reference/commands": "tests/acceptance/test_documented_commands.py",
    **{
        f"docs/reference/commands/{name}.md": "tests/acceptance/test_documented_reads.py"
        for name in ("unload", "count", "query", "peek", "lookup", "exec")
    },
}
#: Pages whose commands need other programs, root, a cluster of containers, or names that a test
#: must not use; and what is tested instead.
PARSED_ONLY = {
    "CONTRIBUTING.md": "targets of make exist (tests/unit/test_docs.py)",
    "README.md": "the same commands: tests/acceptance/test_tutorial.py",
    "docs/how-to/install.md": "tests/acceptance/test_installed.py, test_completion.py",
    "docs/how-to/monitoring.md": "tests/acceptance/test_flower_pages.py, test_prometheus.py",
    "docs/how-to/nightly-etl.md": "its schedule: tests/acceptance/test_how_to.py",
    "docs/how-to/operations.md": "tests/acceptance/test_doctor.py",
    "docs/how-to/profile.md": "tests/acceptance/test_profile.py",
    "docs/how-to/schedules.md": "tests/acceptance/test_schedules.py",
    "docs/how-to/transforms.md": "tests/acceptance/test_transform.py",
    "docs/how-to/tune.md": "tests/acceptance/test_tune.py, test_profile.py",
    "docs/reference/commands/beat.md": "runs on: tests/acceptance/test_schedules.py",
    "docs/reference/commands/doctor.md": "other stores: tests/acceptance/test_doctor.py",
    "docs/reference/commands/flower.md": "tests/acceptance/test_flower_pages.py",
    "docs/reference/commands/local.md": "the user's own stack: tests/integration/local",
    "docs/reference/commands/metrics.md": "tests/acceptance/test_prometheus.py",
    "docs/reference/commands/resume.md": "tests/acceptance/test_resume.py",
    "docs/reference/commands/schedule.md": "own file: tests/acceptance/test_schedules.py",
    "docs/reference/commands/tune.md": "minutes of trials: tests/acceptance/test_tune.py",
    "docs/reference/commands/worker.md": "every test of a fleet",
    "docs/how-to/orchestrators.md": "installs packages; recipes: tests/acceptance/test_recipes.py",
    "deploy/README.md": "names of services and variables (tests/unit/test_deploy.py)",
    "deploy/k8s/README.md": "tests/unit/test_deploy_k8s.py",
    "deploy/systemd/README.md": "tests/unit/test_deploy_systemd.py",
}


def read_toml(body: str, folder: Path) -> None:
    """Read it as the schedule file or the settings that it is."""
    found = tomllib.loads(body)
    if any(isinstance(part, dict) for part in found.get("schedule", {}).values()):
        path = folder / "schedule.toml"
        path.write_text(body)
        assert read_schedule_file(path)
    else:
        path = folder / "ringhaul.toml"
        path.write_text(body)
        load_settings(config_file=path)


def read_ini(body: str, folder: Path) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string("[variables]\n" + body)
    assert parser["variables"]


def read_json(body: str, folder: Path) -> None:
    for line in body.splitlines() if body.startswith('{"') else [body]:
        json.loads(line)


def read_yaml(body: str, folder: Path) -> None:
    assert list(yaml.safe_load_all(body))


def read_python(body: str, folder: Path) -> None:
    compile(body, "page", "exec")


def read_shell(body: str, folder: Path) -> None:
    """Find commands in it; test_docs.py parses those of a shell."""
    assert body.startswith("cqlsh> ") or list(shell_lines(f"```console\n{body}```\n"))


def read_script(body: str, folder: Path) -> None:
    """Parse it as a shell does; these of zsh and fish are valid for bash, too."""
    subprocess.run(["bash", "-n"], input=body, text=True, check=True)


def show(body: str, folder: Path) -> None:
    """What a program shows, or a picture: text."""
    assert body.strip()


READERS: dict[str, Callable[[str, Path], None]] = {
    "bash": read_script,
    "console": read_shell,
    "fish": read_script,
    "ini": read_ini,
    "json": read_json,
    "mermaid": show,  # compared with the imports by tests/unit/test_arrows.py
    "python": read_python,
    "text": show,
    "toml": read_toml,
    "yaml": read_yaml,
    "zsh": read_script,
}


@each("page, block", [(page, block) for page in PAGES for block in blocks_of(page)])
def test_a_block_can_be_read(page: Path, block: Block, tmp_path: Path) -> None:
    assert block.language in READERS, f"{page.name}: say what kind of block this is"
    READERS[block.language](block.body, tmp_path)


@each("page", PAGES, ids=name_of)
def test_no_block_is_left_open(page: Path) -> None:
    text = text_of(page)
    assert len(_ANY_FENCE.findall(text)) == 2 * len(blocks_of(page))


@each("page", PAGES, ids=name_of)
def test_commands_of_a_page_are_run_or_said_not_to_be(page: Path) -> None:
    name = name_of(page)
    if not list(shell_lines(text_of(page))) or name in PARSED_ONLY:
        return
    run_by = RUN_BY.get(name) or RUN_BY.get(str(page.parent.relative_to(ROOT)))
    assert run_by, f"no test runs the commands of {name}: write one, and name it in RUN_BY"
    assert (ROOT / run_by).is_file()


@each(
    ("language", "body"),
    [
        ("toml", "[load]\nblock_byte = 1\n"),
        ("toml", "[schedule.x]\nsteps = [['load', '-t', 'a.b']]\n"),
        ("json", '{"a": 1,}'),
        ("python", "def"),
        ("yaml", "a: [1"),
        ("ini", "[x"),
        ("console", "output only\n"),
        ("bash", 'echo "not closed\n'),
    ],
)
def test_a_wrong_block_fails(language: str, body: str, tmp_path: Path) -> None:
    wrong = (ValueError, SyntaxError, AssertionError, UsageError, yaml.YAMLError)
    of_parsers = (configparser.Error, subprocess.CalledProcessError, ConfigError)
    with pytest.raises((*wrong, *of_parsers)):
        READERS[language](body, tmp_path)
