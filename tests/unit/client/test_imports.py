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
    assert ours and all(
        name.startswith("ringhaul.client") or name == "ringhaul.causes" for name in ours
    )


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None  # as if neither were installed
from ringhaul.client import Client, UsageError
client = Client(command=["/nowhere/ringhaul"])
for call, arguments in (
    *((client.load, ("a.csv", "k.t")), (client.count, ("k.t",)), (client.exec, ("DELETE x", "a"))),
    *((client.load, ([{"id": 1}], "k.t")), (client.query, ("SELECT 1",)), (client.read, ("k.t",))),
    *((client.lookup, ("a.csv", "k.t")), (client.exec, ("SELECT 1", "a.csv"))),
):
    try:
        call(*arguments)
    except Exception as error:
        print(type(error).__name__, str(error)[:20])
"""


def test_only_tables_need_pyarrow() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=True
    )
    missing, refused = ["CommandMissing the command cannot b"], ["UsageError tables need pyarrow,"]
    assert done.stdout.splitlines() == missing * 3 + refused * 5
