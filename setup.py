"""Which packages a wheel has, and where: all else is in pyproject.toml.

`config`, `tasks` and `producer` go inside the package `ringhaul`, as other software has packages of
these names (docs/adr/0022).
"""

from setuptools import find_packages, setup

OWN = ("config", "tasks", "producer")
INSIDE = "ringhaul._packages"

setup(
    packages=[
        *find_packages(include=["ringhaul", "ringhaul.*"]),
        *(
            f"{INSIDE}.{name}"
            for name in find_packages(include=[*OWN, *(f"{one}.*" for one in OWN)])
        ),
    ],
    package_dir={f"{INSIDE}.{name}": name for name in OWN},
)
