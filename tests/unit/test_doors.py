"""Modules import our own packages at the top, except doors: short lists of modules, with reasons.

A door stands before work that costs a process time or memory, and imports it when it is needed. A
door that is no longer one, or imports less, is struck off or lowered here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arrows import PACKAGES, ROOT

#: Doors of commands: `--help`, completion and the refusal of an option must be instant, while the
#: work needs pydantic, redis-py, the driver or pyarrow. Module -> imports inside its functions.
COMMANDS = {
    "producer/commands/config.py": 1,
    "producer/commands/control.py": 4,  # pause, cancel, throttle; resume ends early or goes on
    "producer/commands/demo.py": 1,
    "producer/commands/doctor.py": 1,
    "producer/commands/errors.py": 1,
    "producer/commands/job_command.py": 1,
    "producer/commands/job_start.py": 1,  # `--job-id`
    "producer/commands/load.py": 1,  # while its services start, as in all commands of jobs
    "producer/commands/local.py": 2,
    "producer/commands/peek.py": 1,
    "producer/commands/query.py": 4,  # count, query, and rows without a job
    "producer/commands/report.py": 1,
    "producer/commands/statements.py": 2,  # lookup, exec
    "producer/commands/status.py": 1,
    "producer/commands/status_run.py": 2,  # a history, a job; the list must be instant
    "producer/commands/top.py": 1,
    "producer/commands/tune.py": 2,
    "producer/commands/unload.py": 1,
    "producer/commands/verify.py": 1,
    "producer/commands/worker.py": 1,
    "producer/metrics/command.py": 1,
    "producer/migrate/command.py": 2,
    "producer/schedule/commands.py": 2,
    "producer/web/commands.py": 1,
    "producer/startup.py": 1,
}
#: Doors of commands at work: each import is for what few runs need, or is done while services
#: start.
FEW_RUNS = {
    "producer/doctor/examine.py": 1,  # readers of files
    "producer/local/stack.py": 2,  # the driver
    "producer/outputs/stdout_parts.py": 1,  # writers of rows
    "producer/plan/load.py": 2,  # sqlglot
    "producer/plan/scan.py": 5,  # sqlglot: not to read whole tables
    "producer/plan/unload.py": 2,  # transforms
    "producer/plan/unload_dry_run.py": 1,  # sqlglot
    "producer/report/reporter.py": 1,  # the report as HTML
    "producer/figures/scan_summary.py": 1,  # rejects of transforms
    "producer/figures/summary.py": 3,  # the closing report of each kind of job
    "producer/request/load.py": 1,  # sqlglot
    "producer/request/scan.py": 2,  # sqlglot
    "producer/run/finish.py": 5,  # what jobs of each kind leave behind
    "producer/run/job.py": 3,  # readers of files; Celery, while the session opens
    "producer/run/spool_cleanup.py": 1,  # rejects
    "producer/run/watch.py": 1,  # Celery, while the feeder splits
    "producer/schedule/step_checks.py": 1,  # sqlglot
    "producer/schedule/steps.py": 1,
    "producer/services/embedded.py": 1,  # the private Valkey
    "producer/services/start.py": 1,  # the driver
    "producer/translate/queries.py": 1,  # sqlglot
    "ringhaul/output/one_file.py": 1,  # writers of rows
    "ringhaul/output/parts.py": 1,  # writers of rows
    "ringhaul/records/shape.py": 1,  # sqlglot
    "ringhaul/scan/job.py": 1,  # sqlglot
    "tasks/import_settings.py": 2,  # kernels of SSTables
    "tasks/kinds.py": 3,  # the job of each kind
    "tasks/tracing.py": 2,
    "tasks/transforms.py": 1,
}
#: Doors of workers: the work of each kind has kernels and buffers of its own.
WORKERS = {
    "tasks/child/load.py": 1,  # kernels of SSTables
    "tasks/units.py": 3,
    # A script of the standard library, in a process of its own; then what is slow.
    "ringhaul/storage/preflight.py": 1,
    "ringhaul/storage/places.py": 2,
    "tasks/host/examination.py": 1,
}
#: Doors of Celery's application, which reads settings when it is imported, and of Flower, whose
#: version is checked before.
CELERY = {
    "producer/commands/celery_commands.py": 2,
    "producer/schedule/beat.py": 1,
    "producer/web/launch.py": 1,
    "producer/web/plugin.py": 1,
    "tasks/__init__.py": 1,
    "tasks/publish.py": 1,
}
#: Doors of compiled kernels: numba costs a quarter of a second and 60 MB, and a process that does
#: not decode, spell or scan does without (ADR 0009).
KERNELS = {
    "ringhaul/cql/decode/page.py": 1,
    "ringhaul/cql/spell/numbers.py": 2,
    "ringhaul/cql/spell/temporal.py": 2,
    "ringhaul/formats/csv_escaped.py": 2,
    "ringhaul/formats/fixed_read.py": 1,
    "ringhaul/formats/json_documents.py": 1,
    "ringhaul/formats/parquet_footer.py": 1,
    "ringhaul/formats/record_end.py": 1,
    "ringhaul/formats/write/rows.py": 1,
    "ringhaul/statements/replies.py": 3,
}
DOORS = {**COMMANDS, **FEW_RUNS, **WORKERS, **CELERY, **KERNELS}


def inner_imports(path: Path) -> Iterator[int]:
    """Lines of the imports of our own packages inside functions of a module."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    names = ["tasks" if node.level else node.module or ""]
                elif isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                else:
                    continue
                if any(name.partition(".")[0] in PACKAGES for name in names):
                    yield node.lineno


def found_below(root: Path) -> dict[str, int]:
    """Module -> number of imports of our own packages inside its functions; without zeros."""
    counts = {
        str(path.relative_to(root)): len(set(inner_imports(path)))
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    return {module: count for module, count in counts.items() if count}


def test_only_doors_import_inside_functions() -> None:
    assert found_below(ROOT) == DOORS


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("from ringhaul import errors\ndef f():\n    import json", 0),
        ("def f():\n    from ringhaul import errors", 1),
        ("class A:\n    async def f(self):\n        if x:\n            import tasks.units", 1),
        ("def f():\n    def g():\n        from . import b\n    import config.settings", 2),
        ("if True:\n    from producer import text", 0),
    ],
)
def test_planted_imports_are_counted(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "ringhaul").mkdir()
    (tmp_path / "ringhaul" / "a.py").write_text(text)
    assert found_below(tmp_path) == ({"ringhaul/a.py": count} if count else {})
