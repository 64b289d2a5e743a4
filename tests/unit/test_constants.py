"""A constant has one home: no two modules define the same name with the same value."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.arrows import PACKAGES, ROOT

CHANCE = "equal by chance: either may change alone"
UNIT = "a unit of measure, which never changes"
KERNEL = "a kernel is compiled again only if its own file changes (ringhaul.cql.compiled)"
CLIENT = "the client imports nothing else of ours (tests/unit/client/test_imports.py)"
CONFIG = "config and ringhaul import nothing of each other (docs/ARCHITECTURE.md)"

#: Calls whose result says no more than the name of the constant.
OWN_NAMES = ("TypeVar(", "CqlType(", "types.", "struct.Struct('>i')", "np.uint")

#: Name without underscore, and value as source text -> why it may be in several modules. While a
#: pair stands here, this test also proves that its values stay equal.
ALLOWED: Mapping[tuple[str, str], str] = {
    ("BAR_WIDTH", "30"): CLIENT,
    ("BYTES_MAX", "1 << 20"): CHANCE,
    ("BYTES_MAX", "2 ** 31 - 1"): "int32 offsets, of cells and of a text column of Arrow",
    ("CHARS_MAX", "200"): CHANCE,
    ("CHARS_MAX", "400"): CHANCE,
    ("CHUNK_BYTES", "128 * 1024"): CHANCE,
    ("CONNECT_TIMEOUT_S", "5.0"): "three peers: a node, Redis, a web server",
    ("COPY_BYTES", "1 << 20"): CHANCE,
    ("DAY_MS", "86400000"): KERNEL,
    ("DAY_S", "86400"): UNIT,
    ("DEPTH_MAX", "100"): CHANCE,
    ("DOT", "46"): UNIT,
    ("ELEMENT_BYTES", "16"): CHANCE,
    ("END_SHARE", "0.15"): CHANCE,
    ("EPOCH", "datetime(1970, 1, 1, tzinfo=UTC)"): UNIT,
    ("ERROR_FILE_VARIABLE", "'_RINGHAUL_ERROR_FILE'"): CLIENT,
    ("FLAG_WARNING", "8"): KERNEL,
    ("GROWTH", "8"): CHANCE,
    ("HAS_MORE_PAGES", "2"): KERNEL,
    ("INT64_MAX", "2 ** 63 - 1"): UNIT,
    ("KIND_ROWS", "2"): KERNEL,
    ("LENGTH_MAX", "256"): CHANCE,
    ("LINE_EVERY_S", "30.0"): CLIENT,
    ("LOCK", "'lock'"): CLIENT,
    ("LOGS_KEPT", "20"): CHANCE,
    ("LOOK_EVERY_S", "1.0"): CHANCE,
    ("MANY_DIGITS", "re.compile('[0-9][0-9_]{4300,}')"): CONFIG,
    (
        "MAX_ERRORS",
        "re.compile('-1|[0-9]{1,15}|(100(?:\\\\.0{1,4})?|[0-9]{1,2}(?:\\\\.[0-9]{1,4})?) ?%')",
    ): CONFIG,
    ("MIB", "2 ** 20"): UNIT,
    ("MORE", "3"): KERNEL,
    ("NO_BROKER", "'none'"): CLIENT,
    ("NO_METADATA", "4"): KERNEL,
    ("NULL", "2"): KERNEL,
    ("OTHER", "0"): KERNEL,
    ("PATIENCE_MS", "1500"): CHANCE,
    ("PATIENCE_MS", "2000"): CHANCE,
    ("PAUSE_MAX_S", "2.0"): "pauses before another try: of a node, of Redis",
    ("PAUSE_S", "1.0"): CHANCE,
    ("PIECE_BYTES", "2 ** 20"): CHANCE,
    ("PLAIN", "re.compile('[a-z][a-z0-9_]*')"): "translate reads names, cql writes them",
    ("ROWS", "2"): KERNEL,
    ("SAY_EVERY_S", "60.0"): CHANCE,
    ("SHOWN", "3"): CHANCE,
    ("SHOWN", "5"): CHANCE,
    ("SHOWN_MAX", "200"): CONFIG,
    ("SHOWN_MAX", "3"): CHANCE,
    ("SIZES", "18"): KERNEL,
    ("SPACE", "32"): KERNEL,
    ("TICK_S", "0.2"): CHANCE,
    ("TIMEOUT_S", "5.0"): CHANCE,
    ("TRIES", "3"): CHANCE,
    ("UNSET", "1"): KERNEL,
    ("VERSION_MIN", "(7, 2)"): "producer.local starts servers and imports no room above them",
    ("VOID", "1"): KERNEL,
    ("YEAR_0_DAYS", "-719528"): KERNEL,
    ("YEAR_10000_DAYS", "2932897"): KERNEL,
}


def constants_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield name without underscore and value, as source text, of each constant of a module."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                yield from _pairs(target, value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    match target, value:
        case ast.Name(id=name), _ if name.lstrip("_").isupper():
            if not ast.unparse(value).startswith(OWN_NAMES):
                yield name.lstrip("_"), ast.unparse(value)
        case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
            for each, its in zip(names, values, strict=True):
                yield from _pairs(each, its)


def twice(sources: Mapping[str, str]) -> dict[tuple[str, str], list[str]]:
    """Return the constants that several modules define, with those modules."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for place, text in sources.items():
        for constant in constants_of(ast.parse(text)):
            found[constant].append(place)
    return {constant: places for constant, places in found.items() if len(places) > 1}


@pytest.fixture(scope="module")
def in_two_modules() -> dict[tuple[str, str], list[str]]:
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return twice({str(path.relative_to(ROOT)): Path(path).read_text() for path in paths})


def test_no_constant_has_two_homes(in_two_modules: Mapping[tuple[str, str], list[str]]) -> None:
    found = {c: places for c, places in in_two_modules.items() if c not in ALLOWED}
    assert not found, "import it from one of them, or name the reason in ALLOWED"


def test_each_exception_is_needed(in_two_modules: Mapping[tuple[str, str], list[str]]) -> None:
    assert set(ALLOWED) <= set(in_two_modules), "one home is left, or the values differ"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("SIZE = 4", "SIZE = 4", {("SIZE", "4")}),
        ("#: Bytes.\n_SIZE: int = 4", "SIZE = 4", {("SIZE", "4")}),
        ("A, SIZE = 1, 4", "SIZE = 4", {("SIZE", "4")}),
        ("WORDS = ('a',)", 'WORDS = ("a", )', {("WORDS", "('a',)")}),
        ("SIZE = 4", "SIZE = 5", set()),
        ("SIZE = 4", "SIZES = 4", set()),
        ("size = 4", "size = 4", set()),
        ("T = TypeVar('T')", "T = TypeVar('T')", set()),
        ("def f():\n    SIZE = 4", "SIZE = 4", set()),
    ],
)
def test_what_is_found(one: str, other: str, found: set[tuple[str, str]]) -> None:
    assert set(twice({"one.py": one, "other.py": other})) == found
