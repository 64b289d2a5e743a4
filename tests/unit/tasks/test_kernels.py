"""The compiled kernels that a worker's parent loads before it forks."""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.arrows import ROOT, module_of

#: Only loads of CSV with escapes need these: each of their processes loads them.
LATER = {"ringhaul.formats.escape_kernels"}


def modules_of_kernels() -> set[str]:
    """The modules that import the compiler's decorators at their top."""
    return {
        module_of(path, ROOT)
        for path in (ROOT / "ringhaul").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module == "ringhaul.cql.compiled"
    }


def test_all_kernels_are_loaded_before_the_fork() -> None:
    script = "import sys; from tasks.kernels import warm_up; warm_up(); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=240
    )
    wanted = modules_of_kernels()
    assert len(wanted) > 10
    assert wanted - set(done.stdout.split()) == LATER
