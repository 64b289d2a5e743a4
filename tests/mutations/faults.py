"""Faults: small changes of executable code, found in the syntax tree and applied as text."""

from __future__ import annotations

import ast
import difflib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.arrows import PACKAGES

#: Folders in which faults are planted.
FOLDERS = ("producer/plan", "producer/run", "ringhaul/records", "ringhaul/dataplane")
KINDS = ("comparison", "arithmetic", "and-or", "not", "constant", "default", "return", "statement")
_COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
_SPELLED: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.And: "and",
    ast.Or: "or",
}
_ARITHMETIC = {"+": "-", "-": "+", "*": "//", "//": "*"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Nodes in which nothing is changed: what only a type checker needs, and texts of messages.
_SKIPPED = (ast.Import, ast.ImportFrom, ast.Assert, ast.JoinedStr)


@dataclass(frozen=True)
class Fault:
    """One planted fault: whole lines of a module, and what stands there instead."""

    kind: str  #: one of `KINDS`
    path: str  #: of the module, from the root of the tree
    line: int  #: its first line, from 1
    scope: str  #: names of the classes and functions around it, with dots
    old: str
    new: str

    @property
    def summary(self) -> str:
        """The first line that differs, before and after."""
        pairs = zip(self.old.splitlines(), self.new.splitlines(), strict=False)
        changed = next(((a.strip(), b.strip()) for a, b in pairs if a != b), None)
        old, new = changed or (self.old.strip(), self.new.strip())
        return f"{old}  ->  {new}"

    def diff(self) -> str:
        """Return the fault as a unified diff."""
        head = f"{self.path}:{self.line}"
        lines = difflib.unified_diff(
            self.old.splitlines(), self.new.splitlines(), head, f"{self.kind}", lineterm=""
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Edit:
    kind: str
    node: ast.expr | ast.stmt
    text: str  #: replaces the node


def find_faults(text: str, path: str) -> list[Fault]:
    """Return every fault that can be planted in a module, in the order of its lines. A few do not
    compile: see `compiles`."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    found: dict[tuple[int, str], Fault] = {}
    for scope, edit in _edits(tree, text):
        node = edit.node
        first, last = node.lineno, node.end_lineno or node.lineno
        old = "".join(lines[first - 1 : last])
        new = _replaced(lines[first - 1 : last], node, edit.text)
        fault = Fault(edit.kind, path, first, scope, old, new)
        if new != old:
            found.setdefault((first, new), fault)
    return sorted(found.values(), key=lambda fault: (fault.line, fault.kind, fault.new))


def plant(text: str, fault: Fault, line: int | None = None) -> str:
    """Return a module's text with a fault. `line`: where it begins, if not at its own line."""
    lines = text.splitlines(keepends=True)
    first = (line or fault.line) - 1
    count = len(fault.old.splitlines())
    if "".join(lines[first : first + count]) != fault.old:
        raise ValueError(f"{fault.path}:{first + 1} has another text than the fault")
    return "".join([*lines[:first], fault.new, *lines[first + count :]])


def choose(
    faults: Sequence[Fault], count: int, seed: int, fits: Callable[[Fault], bool]
) -> list[Fault]:
    """Choose faults that fit at random, as many in each folder, and of each kind alike; no line
    twice.

    The choice depends on the faults and the seed alone. Fewer than `count` if there are no more.
    """
    chance = random.Random(seed)
    left: dict[str, dict[str, list[Fault]]] = {}
    for fault in sorted(faults, key=lambda one: (one.path, one.line, one.kind, one.new)):
        folder = next((name for name in FOLDERS if fault.path.startswith(f"{name}/")), "")
        left.setdefault(folder, {}).setdefault(fault.kind, []).append(fault)
    folders = sorted(left)
    chosen: list[Fault] = []
    taken: set[tuple[str, int]] = set()
    turn = 0
    while len(chosen) < count and folders:
        folder = folders[turn % len(folders)]
        turn += 1
        kinds = left[folder]
        kind = chance.choice(sorted(kinds))
        fault = kinds[kind].pop(chance.randrange(len(kinds[kind])))
        if not kinds[kind]:
            del kinds[kind]
        if not kinds:
            folders.remove(folder)
        if (fault.path, fault.line) not in taken and fits(fault):
            taken.add((fault.path, fault.line))
            chosen.append(fault)
    return chosen


def locate(fault: Fault, root: Path) -> tuple[str, int] | None:
    """Return the path and the line of a fault's place in another tree; None if it is not there, or
    in several places.

    The module may have moved: then one of its name is searched, and after that all. The place is
    the text's only one, or the only one in a function of the same name.
    """
    same = root / fault.path
    by_name = sorted(
        path for package in PACKAGES for path in (root / package).rglob(Path(fault.path).name)
    )
    everywhere = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    for paths in ([same] if same.is_file() else [], by_name, everywhere):
        places = [(path, line) for path in paths for line in _places(path, fault)]
        if len(places) > 1:
            scoped = [one for one in places if _scope_at(*one) == fault.scope]
            places = scoped or places
        if len(places) == 1:
            path, line = places[0]
            return str(path.relative_to(root)), line
    return None


def _places(path: Path, fault: Fault) -> list[int]:
    """Return the lines at which a fault's text begins in a module."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    count = len(fault.old.splitlines())
    return [
        first + 1
        for first in range(len(lines) - count + 1)
        if "".join(lines[first : first + count]) == fault.old
    ]


def _scope_at(path: Path, line: int) -> str:
    """Return the names of the classes and functions around a line, with dots."""
    names: list[str] = []
    body: Sequence[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    while True:
        around = next((n for n in _scopes(body) if n.lineno <= line <= (n.end_lineno or 0)), None)
        if around is None:
            return ".".join(names)
        names.append(around.name)
        body = around.body


def _scopes(
    body: Sequence[ast.stmt],
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the outermost classes and functions below these statements."""
    waiting: list[ast.AST] = list(body)
    for node in waiting:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _edits(tree: ast.Module, text: str) -> Iterator[tuple[str, _Edit]]:
    """Yield each possible edit with the names around it."""

    def visit(node: ast.AST, scope: tuple[str, ...]) -> Iterator[tuple[str, _Edit]]:
        if isinstance(node, _SKIPPED) or _is_for_types(node):
            return
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope = (*scope, node.name)
            if node.name == "__repr__":
                return
        if isinstance(node, _FUNCTIONS):
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if isinstance(default, ast.Constant) and (changed := _other(default)):
                    yield ".".join(scope), _Edit("default", default, changed)
        for edit in _edits_of(node, text, inside=bool(scope)):
            yield ".".join(scope), edit
        for child in _children(node):
            yield from visit(child, scope)

    yield from visit(tree, ())


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are executed: no docstrings, annotations or decorators."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (child for child in node.body if not _is_text(child))
    elif isinstance(node, ast.AnnAssign):
        yield from (part for part in (node.value,) if part is not None)
    elif isinstance(node, ast.Lambda):
        yield node.body
    elif not isinstance(node, ast.Raise):
        yield from ast.iter_child_nodes(node)


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is a docstring or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _edits_of(node: ast.AST, text: str, *, inside: bool) -> Iterator[_Edit]:
    """Yield the edits of a node itself. `inside`: it is in a function or a class."""

    def source(part: ast.AST) -> str:
        return f"({ast.get_source_segment(text, part)})"

    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            other = _COMPARISONS[_SPELLED[type(op)]]
            yield _Edit("comparison", node, f"({source(left)} {other} {source(right)})")
        case ast.BinOp(left=left, op=op, right=right) if _SPELLED.get(type(op)) in _ARITHMETIC:
            other = _ARITHMETIC[_SPELLED[type(op)]]
            yield _Edit("arithmetic", node, f"({source(left)} {other} {source(right)})")
        case ast.BoolOp(op=op, values=values):
            word = "or" if isinstance(op, ast.And) else "and"
            yield _Edit("and-or", node, f"({f' {word} '.join(map(source, values))})")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _Edit("not", node, source(operand))
        case ast.Constant() if changed := _other(node):
            yield _Edit("constant", node, changed)
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield _Edit("return", node, "return None")
        case ast.Expr(value=ast.Call()) if inside:
            yield _Edit("statement", node, "pass")
        case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise() if inside:
            yield _Edit("statement", node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) if inside:
            yield _Edit("statement", node, "pass")


def _other(constant: ast.Constant) -> str:
    """Return another constant of the same type as source; empty if there is none."""
    value = constant.value
    match value:
        case bool():
            return str(not value)
        case int() | float():
            return repr(value + 1)
        case str():
            return repr(f"{value}x") if value else repr("x")
    return ""


def _replaced(lines: Sequence[str], node: ast.expr | ast.stmt, text: str) -> str:
    """Return the node's lines with `text` instead of the node. Columns are counted in UTF-8."""
    assert node.end_col_offset is not None
    before = lines[0].encode()[: node.col_offset].decode()
    after = lines[-1].encode()[node.end_col_offset :].decode()
    return f"{before}{text}{after}"


def compiles(text: str, fault: Fault) -> bool:
    """Return whether a module's text compiles with a fault."""
    try:
        compile(plant(text, fault), fault.path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
