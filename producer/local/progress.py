"""Show the steps of `Stack.up` on stderr: a bar on a terminal, elsewhere one line per step."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from producer.local.stack import OnProgress, Progress
from producer.outputs.plain_streams import console_for, escape_beside_live


@contextmanager
def step_display() -> Iterator[OnProgress]:
    """Yield a callback for `Stack.up`; the bar disappears at the end of the block."""
    console = console_for(sys.stderr)
    if not console.is_terminal or console.is_dumb_terminal:
        yield _Lines().show
        return
    with Bars(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bars:
        escape_beside_live()
        task = bars.add_task("", total=None, count="")

        def show(step: Progress) -> None:
            bars.update(
                task,
                description=step.text,
                completed=step.done,
                total=step.total or None,
                count=f"{step.done}/{step.total} files" if step.total else "",
            )

        yield show


class _Lines:
    """Prints a line when a step starts, and another when a step with a length ends."""

    def __init__(self) -> None:
        self._text = ""

    def show(self, step: Progress) -> None:
        """Print a line if `step` has just started or ended."""
        if step.text != self._text:
            self._text = step.text
            print(step.text, file=sys.stderr)
        if step.total and step.done == step.total:
            print(f"{step.text}: {step.total} files", file=sys.stderr)
