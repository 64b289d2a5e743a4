"""The client is light: it imports the standard library and itself."""

from __future__ import annotations

import json
import subprocess
import sys

LOOK = """
import sys, json
before = set(sys.modules)
from ringhaul import client
client.Client(contact_points=["a"], broker="redis://h:1/0")
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_it_imports_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    others = {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names)
    assert others == {"ringhaul"}
    ours = {name for name in found if name.startswith("ringhaul.")}
    assert ours and all(name.startswith("ringhaul.client") for name in ours)


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None  # as if neither were installed
from ringhaul.client import Client, UsageError
try:
    Client(command=["/nowhere/ringhaul"]).load("a.csv", "k.t")
except Exception as error:
    print(type(error).__name__)
"""


def test_files_are_loaded_without_pyarrow() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=True
    )
    assert done.stdout == "CommandMissing\n"
