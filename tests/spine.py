"""Measures of what a change costs: how many places ask about a destination, a kind of job or an
option.

`python -m tests.spine` prints each measure beside its goal; `tests/unit/test_spine.py` holds them.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ringhaul", "producer", "tasks", "config")
#: Kinds of jobs, as specs and labels spell them.
KINDS = frozenset({"load", "verify", "unload", "count", "query", "lookup", "exec"})
#: Rooms that may ask how rows reach the cluster.
DESTINATION_ROOMS = (
    "ringhaul/destination/",
    "producer/destination/",
    "producer/options/",
    "producer/request/destination.py",
)
#: Attributes that say how rows reach the cluster, of any object; then of a job or a request alone.
DESTINATION_FIELDS = frozenset({"via", "to_sstables", "by_sidecar", "is_imported"})
JOB_DESTINATION_FIELDS = frozenset({"sstables", "stream"})
#: Exit codes of refused and failed commands, and their names.
FAILURES = frozenset({2, 3, 4})
NAMED_FAILURES = frozenset({"EXIT_USAGE", "EXIT_TOO_MANY_ERRORS", "EXIT_FATAL"})
#: Attributes with the exit code of a command, and functions that assert one.
CODES = frozenset({"code", "returncode", "exit_code"})
REFUSALS = frozenset({"assert_refused", "assert_usage"})
#: Records that options become, and records of workers.
DRAFTS = frozenset({"LoadDraft", "InputDraft"})
JOBS = frozenset({"LoadJob", "StatementValues"})
#: A command-line option in a text.
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
#: A pronoun whose noun stands elsewhere, in a docstring or a comment.
UNNAMED = re.compile(
    r"\bthose (?:of|that|which|who|in|from|with|for)\b|\bthat of\b|\bdo the same\b|\bthe ones?\b"
    r"|\bone (?:is|has|was|that|of (?:it|them))\b|`[a-z_]+`: (?:of|from|for|as)\b"
    r"|\bthe same(?=[.,;:]| of\b| for\b)|^(?:of|for|from) |, too\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Module:
    """A source file: its path from the root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module


@cache
def modules(root: Path = ROOT) -> tuple[Module, ...]:
    """Return the modules of all packages, sorted by path."""
    return tuple(
        Module(str(path.relative_to(root)), text := path.read_text(), ast.parse(text))
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    )


def places(wanted: Callable[[ast.AST], bool], *, outside: tuple[str, ...] = ()) -> list[str]:
    """Return `path:line` of each syntax node that `wanted` accepts, except in `outside`."""
    return [
        f"{module.path}:{getattr(node, 'lineno', 0)}"
        for module in modules()
        if not module.path.startswith(outside)
        for node in ast.walk(module.tree)
        if wanted(node)
    ]


def naming_escape_style() -> list[str]:
    """Return the modules that name `escape_style`, an option like any other."""
    return [module.path for module in modules() if "escape_style" in module.text]


def copied_fields() -> list[str]:
    """Return the fields that are handed by their names to the draft of a job, or of its input, and
    once more from the draft to the job."""
    to_draft: set[str] = set()
    to_job: dict[str, str] = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            if _made(node) in DRAFTS:
                to_draft |= {keyword.arg for keyword in node.keywords if keyword.arg is not None}
            elif _made(node) in JOBS:
                to_job |= {
                    keyword.arg: f"{module.path}:{keyword.value.lineno}: {keyword.arg}"
                    for keyword in node.keywords
                    if keyword.arg is not None and _reads(keyword.value, keyword.arg)
                }
    return [place for name, place in to_job.items() if name in to_draft]


def _made(call: ast.Call) -> str:
    """Return the name of the record that a call makes, if it makes one: `Job(...)`, `Job.of(...)`;
    otherwise of the function."""
    made = call.func
    if isinstance(made, ast.Attribute) and made.attr == "of":
        made = made.value
    return _name(made)


def _reads(value: ast.expr, name: str) -> bool:
    """Return whether an expression reads the attribute with this name, of any object."""
    return any(isinstance(node, ast.Attribute) and node.attr == name for node in ast.walk(value))


def followers() -> list[str]:
    """Return the calls of `follow_job`."""
    return places(lambda node: isinstance(node, ast.Call) and _name(node.func) == "follow_job")


def kinds_as_text() -> list[str]:
    """Return the comparisons of a `kind` with the text of a job's kind."""

    def compares(node: ast.AST) -> bool:
        if not isinstance(node, ast.Compare):
            return False
        sides = [node.left, *node.comparators]
        texts = {text for side in sides for text in _texts(side)}
        return any(_name(side).endswith("kind") for side in sides) and bool(texts & KINDS)

    return places(compares)


def questions_to_jobs() -> list[str]:
    """Return the calls of `getattr` that ask a job whether it has an attribute."""

    def asks(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and _name(node.func) == "getattr"
            and bool(node.args)
            and _name(node.args[0]) in ("job", "plan", "spec")
        )

    return places(asks)


def questions_about_destinations() -> list[str]:
    """Return where code outside the destinations' rooms asks how rows reach the cluster."""

    def asks(node: ast.AST) -> bool:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            return False
        if node.attr in DESTINATION_FIELDS:
            return True
        return node.attr in JOB_DESTINATION_FIELDS and _name(node.value) in ("job", "request")

    return places(asks, outside=DESTINATION_ROOMS)


def sessions_in_signatures() -> list[str]:
    """Return the parameters of the producer's functions that are a driver session."""

    def takes(node: ast.AST) -> bool:
        return (
            isinstance(node, ast.arg)
            and node.annotation is not None
            and "Session" in ast.unparse(node.annotation).split(" | ")
        )

    return [place for place in places(takes) if place.startswith("producer/")]


def failures_in_acceptance() -> list[str]:
    """Return the assertions of acceptance tests that a whole command ends with an exit code from
    2 to 4: most refusals are proved in process (`tests/planning.py`)."""
    folder = ROOT / "tests" / "acceptance"
    found = []
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [_parts(side) for side in (node.left, *node.comparators)]
                pairs = [
                    pair for a, b in itertools.pairwise(sides) for pair in zip(a, b, strict=False)
                ]
                asserts = any(
                    _name(one) in CODES and _is_failure(other)
                    for pair in pairs
                    for one, other in (pair, reversed(pair))
                )
            else:
                asserts = isinstance(node, ast.Call) and _name(node.func) in REFUSALS
            if asserts:
                found.append(f"{path.relative_to(folder)}:{getattr(node, 'lineno', 0)}")
    return found


def options_in_engine() -> list[str]:
    """Return the lines of the engine, outside the client, that spell a command-line option."""
    return [
        f"{module.path}:{number}"
        for module in modules()
        if module.path.startswith("ringhaul/") and not module.path.startswith("ringhaul/client/")
        for number, line in enumerate(module.text.splitlines(), 1)
        if OPTION.search(line)
    ]


def late_imports() -> list[str]:
    """Return the imports of our packages inside functions."""
    found = []
    for module in modules():
        for outer in ast.walk(module.tree):
            if not isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(outer):
                if not isinstance(node, ast.Import | ast.ImportFrom):
                    continue
                if isinstance(node, ast.ImportFrom):
                    names = [node.module or ""]
                else:
                    names = [alias.name for alias in node.names]
                if any(name.split(".")[0] in PACKAGES for name in names):
                    found.append(f"{module.path}:{node.lineno}")
    return sorted(set(found))


def unnamed_nouns(root: Path = ROOT) -> list[str]:
    """Return the docstrings and comments with a pronoun whose noun stands elsewhere, once for each
    such pronoun."""
    return [
        f"{module.path}:{number}: {match.group()!r} in {text[:60]!r}"
        for module in modules(root)
        for number, text in prose(module)
        for match in UNNAMED.finditer(text)
    ]


def prose(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each docstring and each run of comment lines."""
    defined = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module.tree):
        if isinstance(node, defined) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), " ".join(text.split())
    run: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, own = token.start[0], token.line.lstrip().startswith("#")
        if run and not (own and line == last + 1):
            yield first, " ".join(run)
            run = []
        first = line if not run else first
        run.append(token.string.lstrip("#: "))
        last = line
    if run:
        yield first, " ".join(run)


def lines(folders: tuple[str, ...]) -> int:
    """Return the number of lines of Python in these folders."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sum(path.read_bytes().count(b"\n") for path in paths)


def _name(node: ast.AST) -> str:
    """Return the last part of a dotted name; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the items of a tuple or a list; else the expression alone."""
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _is_failure(node: ast.expr) -> bool:
    """Return whether an expression is an exit code from 2 to 4, or holds one: `(2, 4)`."""
    return any(
        _name(part) in NAMED_FAILURES or (isinstance(part, ast.Constant) and part.value in FAILURES)
        for part in _parts(node)
    )


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the constant text, or each one of a tuple, a list or a set."""
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    for one in nodes:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


@dataclass(frozen=True)
class Measure:
    """One figure: what it counts, the most that it may be, and the places counted."""

    name: str
    #: The figure that is aimed at.
    goal: int
    #: The most that the tree may have now: lowered with each change that lowers the figure.
    most: int
    find: Callable[[], list[str]]


MEASURES = (
    Measure("modules that name escape_style", 7, 7, naming_escape_style),
    Measure("fields copied by name into the draft and into the job", 0, 0, copied_fields),
    Measure("callers of follow_job", 2, 2, followers),
    Measure("comparisons of a kind with a text", 0, 0, kinds_as_text),
    Measure("getattr on jobs", 0, 0, questions_to_jobs),
    Measure("questions about destinations outside their rooms", 0, 0, questions_about_destinations),
    Measure("driver sessions in signatures of the producer", 5, 5, sessions_in_signatures),
    Measure("exit codes 2 to 4 asserted in acceptance", 60, 168, failures_in_acceptance),
    Measure("options that the engine spells", 9, 3, options_in_engine),
    Measure("imports of ours inside functions", 119, 119, late_imports),
    Measure("pronouns without their noun", 199, 2, unnamed_nouns),
)


def main() -> None:
    """Print each measure beside its goal, and the lines of source and tests."""
    for measure in MEASURES:
        print(f"{len(measure.find()):>7,}  goal {measure.goal:>5,}  {measure.name}")
    print(f"{lines(PACKAGES):>7,}  lines of source\n{lines(('tests',)):>7,}  lines of tests")


if __name__ == "__main__":
    main()
