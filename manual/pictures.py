"""Make the terminal pictures of the manual, docs/pictures/*.svg, from real runs.

`ringhaul local up`, then `python -m manual.pictures [NAME...]`. With `--text COLUMNS` the screens
are printed instead, to look at them at another width. The keyspace `shop` of the local stack is
dropped and created again.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from manual.site import ROOT
from manual.terminal import Screen, run

PICTURES = ROOT / "docs" / "pictures"
COLUMNS = 88
ROWS = 300_000
#: Without the fonts that `rich` would have the browser fetch from elsewhere.
SVG_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


@dataclass(frozen=True)
class Shot:
    """One picture: a command, and when its screen is taken."""

    line: str
    #: Pattern of the screen that is wanted; empty: the one at the end.
    until: str = ""
    #: Runs beside it.
    beside: str = ""
    #: Without the prompt and the command.
    bare: bool = False


SHOTS = {
    "help": Shot("ringhaul --help", bare=True),
    "load": Shot("ringhaul load orders.csv -t shop.orders"),
    "progress": Shot("ringhaul load orders.csv -t shop.orders", until=r"[3-7]\d%"),
    "errors": Shot("ringhaul errors"),
    "peek": Shot("ringhaul peek shop.orders -n 5"),
    "query": Shot(
        'ringhaul query "SELECT region, count(*), sum(total) FROM shop.orders GROUP BY region"'
    ),
    "status": Shot("ringhaul status"),
    "job": Shot("ringhaul status $(ringhaul status --json | jq -r '.[0].job')"),
    "top": Shot(
        "ringhaul top",
        until=r"RUNNING +[3-7]\d%",
        beside="ringhaul load orders.csv -t shop.orders --rate 30000",
    ),
    "doctor": Shot("ringhaul doctor"),
}


def prepare(folder: Path, env: Mapping[str, str]) -> None:
    """Make the table and the file of the pictures: orders, two of them wrong."""
    with (folder / "orders.csv").open("w") as file:
        file.write("region,id,placed,total\n")
        for n in range(ROWS):
            total = "12,50" if n % 200_000 == 77 else f"{n % 500}.{n % 100:02}"
            file.write(
                f'{"north" if n % 3 else "south"},{n},2026-01-05T{n % 24:02}:00:00Z,"{total}"\n'
            )
    replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    statements = (
        "DROP KEYSPACE IF EXISTS shop; "
        f"CREATE KEYSPACE shop WITH replication = {replication}; "
        "CREATE TABLE shop.orders (region text, id int, placed timestamp, total decimal, "
        "PRIMARY KEY (region, id));"
    )
    subprocess.run(["ringhaul", "local", "cql", "-e", statements], env=env, check=True)


def take(shot: Shot, folder: Path, env: Mapping[str, str], columns: int) -> Screen:
    """Run a shot's command and return its screen, with the command above it."""
    os.chdir(folder)
    beside = subprocess.Popen(
        ["bash", "-c", f"exec {shot.beside} -q"] if shot.beside else ["true"],
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        argv = ["bash", "-c", f"exec {shot.line}"]
        return run(argv, env, columns, for_s=300, until=shot.until)
    finally:
        beside.wait(300)


def svg_of(screen: Screen, shot: Shot, columns: int) -> str:
    """Draw a screen."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    if not shot.bare:
        console.print(Text.assemble(("$ ", "bold green"), (shot.line, "bold")), soft_wrap=True)
    console.print(Text.from_ansi(screen.ansi()), soft_wrap=True)
    title = shlex.split(shot.line)[1]
    return console.export_svg(
        title=f"ringhaul {title}".removesuffix(" --help"),
        theme=MONOKAI,
        code_format=SVG_FORMAT,
        unique_id=f"rh-{title.strip('-')}",
    )


def main() -> None:
    """Take the pictures that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SHOTS))
    parser.add_argument("--text", type=int, metavar="COLUMNS", help="print the screens")
    wanted = parser.parse_args()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    env |= {"PATH": path}
    folder = Path("/tmp/shop")  # short, since it is in the pictures
    folder.mkdir()
    try:
        prepare(folder, env)
        for picture in wanted.names:
            screen = take(SHOTS[picture], folder, env, wanted.text or COLUMNS)
            if wanted.text:
                print(f"== {picture}\n{screen.text()}")
            else:
                (PICTURES / f"{picture}.svg").write_text(svg_of(screen, SHOTS[picture], COLUMNS))
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
