"""Plant faults in the source, one at a time in a copy of the tree, and see which tests notice.

    python -m tests.mutations --list                      # the faults, as diffs
    python -m tests.mutations --tests quick --csv new.csv  # minutes for each that survives
    python -m tests.mutations --tree ../before --csv old.csv  # the same faults in another checkout

A fault is caught at the first stage of tests that fails: `near` (unit and property tests beside the
module, and those that import it), `quick` (all of these), `servers` (integration and acceptance).
"""

from __future__ import annotations

import argparse
import csv
import signal
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.arrows import ROOT
from tests.mutations.check import COLLECT, Checker, Outcome, Verdict, planted, stages_of
from tests.mutations.faults import FOLDERS, Fault, choose, compiles, find_faults, locate
from tests.mutations.trees import TreeCopy, say

SEED = 37
COLUMNS = ("number", "outcome", "stage", "test", "seconds", "kind", "path", "line", "old", "new")


def chosen_faults(count: int, seed: int, root: Path = ROOT) -> list[Fault]:
    """Return the faults that a seed chooses in the tree at `root`."""
    texts = {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
    }
    found = [fault for path, text in texts.items() for fault in find_faults(text, path)]
    return choose(found, count, seed, lambda fault: compiles(texts[fault.path], fault))


def row(number: int, fault: Fault, verdict: Verdict) -> dict[str, object]:
    """Return a line of the table of results, by `COLUMNS`."""
    return {
        "number": number,
        "outcome": str(verdict.outcome),
        "stage": verdict.stage,
        "test": verdict.test,
        "seconds": round(verdict.seconds),
        "kind": fault.kind,
        "path": fault.path,
        "line": fault.line,
        "old": fault.old.strip(),
        "new": fault.new.strip(),
    }


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return how many faults ended in each way, and at which stages they were caught."""
    ends = Counter(verdict.outcome for verdict in verdicts)
    stages = Counter(
        verdict.stage
        for verdict in verdicts
        if verdict.outcome in (Outcome.CAUGHT, Outcome.TIMED_OUT)
    )
    parts = [f"{ends[outcome]} {outcome}" for outcome in Outcome if ends[outcome]]
    where = ", ".join(f"{count} at {stage}" for stage, count in stages.items())
    return f"{len(verdicts)} faults: {', '.join(parts)}" + (f" (noticed: {where})" if where else "")


def options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--seed", type=int, default=SEED, help="choose other faults [%(default)s]")
    add("--count", type=int, default=40, help="number of faults [%(default)s]")
    add("--list", action="store_true", help="show the faults as diffs and end")
    add("--only", type=int, nargs="+", metavar="N", help="only the faults of these numbers")
    add("--tests", nargs="+", default=["quick"], metavar="near|quick|all|PATH")
    add("--tree", type=Path, default=ROOT, help="run the tests of this checkout, with its .venv")
    add("--csv", type=Path, help="also write the results here, each as soon as it is known")
    add("--timeout", type=float, default=300.0, metavar="S", help="of a fault's near tests")
    add(
        "--pytest", nargs=1, action="extend", default=[], metavar="ARGUMENT", help="as --pytest=-n3"
    )
    return parser.parse_args()


def main() -> None:
    """Run the check; the exit code is 0 whatever it finds."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # end the tests, remove the copy
    given = options()
    numbered = list(enumerate(chosen_faults(given.count, given.seed), 1))
    if given.only:
        numbered = [(number, fault) for number, fault in numbered if number in given.only]
    if given.list:
        for number, fault in numbered:
            print(f"# {number} {fault.kind} in {fault.scope or 'the module'}\n{fault.diff()}\n")
        return
    tree = given.tree.resolve()
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        checker = Checker(TreeCopy(tree, Path(folder), COLLECT), given.pytest)
        rows: list[dict[str, object]] = []
        for number, fault in numbered:
            place = locate(fault, tree)
            if place is None:
                verdict = Verdict(outcome=Outcome.NOT_RUN, test="its place is not in this tree")
            else:
                stages = stages_of(given.tests, place[0], tree, given.timeout)
                verdict = checker.check(planted(fault, *place, tree), stages)
            verdicts.append(verdict)
            rows.append(row(number, fault, verdict))
            end = f"{verdict.outcome:<9}  {verdict.stage:<7}  {verdict.seconds:>5.0f} s"
            place_text = f"{fault.kind:<10}  {fault.path}:{fault.line}"
            print(f"{number:>3}  {end}  {place_text}  {fault.summary}", flush=True)
            if given.csv is not None:
                with given.csv.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, COLUMNS)
                    writer.writeheader()
                    writer.writerows(rows)
        for test in sorted(checker.foreign):
            say(f"left out, since it fails without any fault: {test}")
    print(summary(verdicts))


if __name__ == "__main__":
    main()
