"""The set-up of shells in docs/how-to/install.md, and what they are answered."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rich_click as click

from producer.commands.completion import complete_paths
from producer.commands.registry import COMMANDS, find_command
from tests.arrows import ROOT
from tests.cases import each

RINGHAUL = Path(sys.executable).with_name("ringhaul")
PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text()
#: Shell -> the blocks of the page that set it up.
BLOCKS = {
    shell: re.findall(rf"^```{shell}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for shell in ("bash", "zsh", "fish")
}


def run(argv: list[object], folder: Path, **env: str) -> str:
    """Run a program in a home folder, with the command on the PATH; return its output."""
    done = subprocess.run(
        list(map(str, argv)),
        cwd=folder,
        env=os.environ | {"HOME": str(folder), "PATH": f"{RINGHAUL.parent}:/usr/bin:/bin"} | env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def answer(shell: str, words: str, folder: Path) -> list[str]:
    """Return what the command answers the shell for the last word of a command line."""
    count = {"fish": words.split(" ")[-1]}.get(shell, str(len(words.split(" ")) - 1))
    env = {"_RINGHAUL_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    return run([RINGHAUL], folder, **env).splitlines()


@pytest.mark.parametrize("block", BLOCKS["bash"], ids=["with bash-completion", "without"])
def test_bash_completes_after_its_set_up(block: str, tmp_path: Path) -> None:
    """A new shell completes a command, an option, a value and, by itself, names of files."""
    run(["bash", "-euc", block], tmp_path)
    (script,) = (path for path in tmp_path.rglob("*") if path.is_file())
    # bash-completion reads the file that is named like the command.
    assert script.name in ("ringhaul", ".bashrc")
    complete = r"""
        source "$1"
        answers() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _ringhaul_completion ringhaul 2> said
            echo "${COMPREPLY[*]}$(grep -o 'not currently executing completion function' said)"
        }
        complete -p ringhaul
        answers ringhaul lo
        answers ringhaul load --encod
        answers ringhaul load --format js
        answers ringhaul load ord
    """
    said = run(["bash", "--norc", "-c", complete, "bash", script], tmp_path).splitlines()
    assert said == [
        "complete -o nosort -F _ringhaul_completion ringhaul",
        "load lookup local",
        "--encoding",
        "jsonl",
        # `compopt -o default`, for files: it works in a completion only.
        "not currently executing completion function",
    ]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_their_script_and_answers(shell: str, tmp_path: Path) -> None:
    (block,) = BLOCKS[shell]
    assert f"_RINGHAUL_COMPLETE={shell}_source ringhaul" in block
    script = run([RINGHAUL], tmp_path, _RINGHAUL_COMPLETE=f"{shell}_source")
    assert f"_RINGHAUL_COMPLETE={shell}_complete" in script and "ringhaul" in script
    (tmp_path / "script").write_text(script)
    if program := shutil.which(shell):
        run([program, "-n", "script"], tmp_path)
    told = answer(shell, "ringhaul lo", tmp_path)
    assert [line for line in told if line in ("load", "lookup", "local")] or (
        [line.partition("\t")[0] for line in told] == ["plain,load", "plain,lookup", "plain,local"]
    )
    assert any("file" in line for line in answer(shell, "ringhaul load ord", tmp_path))


@each("name", COMMANDS)
def test_whatever_may_be_a_file_is_completed(name: str) -> None:
    found = find_command(name)
    assert found is not None
    # A copy: other tests of this process read the same options.
    command = click.Command(name, params=[copy.copy(parameter) for parameter in found.params])
    complete_paths(command)
    for before, after in zip(found.params, command.params, strict=True):
        items = after.type.shell_complete(click.Context(command), after, "x")
        if re.search("FILE|DIR|FOLDER|PATH|SOURCE", before.metavar or ""):
            assert {item.type for item in items} <= {"file", "dir"} and items, before.name
        else:
            assert after.type is before.type
