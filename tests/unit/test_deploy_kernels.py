"""Containers of the image, and systemd services, load precompiled kernels.

Docker is not needed: the tests create the Dockerfile's folders and run its script.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
import yaml

from tests.deployment import (
    DEPLOY,
    ROOT,
    UNITS,
    dockerfile_instructions,
    is_ours,
    pod_specs,
    services,
    unit_settings,
)

SCRIPT = DEPLOY / "with-kernels.sh"
#: One kernel in place of all, which take ten times as long.
KERNEL = """
from ringhaul.cql.compiled import COUNT, kernel

@kernel(COUNT(COUNT))
def double(value):
    return 2 * value
"""


def final_environment() -> dict[str, str]:
    pairs = shlex.split(dockerfile_instructions("ENV")[-1])
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_build_compiles_to_where_the_script_looks() -> None:
    (entrypoint,) = dockerfile_instructions("ENTRYPOINT")
    script = PurePosixPath(yaml.safe_load(entrypoint)[1])
    (compiles,) = (line for line in dockerfile_instructions("RUN") if "warm_up" in line)
    assert f"NUMBA_CACHE_DIR={script.parent}/kernels " in compiles
    assert f"deploy/with-kernels.sh {script}" in dockerfile_instructions("COPY")
    # The whole folder is copied between stages, to the same path: numba's files contain it.
    assert f"--from=build {script.parent} {script.parent}" in dockerfile_instructions("COPY")


def test_the_copy_goes_to_a_folder_that_every_container_can_write() -> None:
    where = PurePosixPath(final_environment()["NUMBA_CACHE_DIR"])
    assert where.is_relative_to("/tmp")
    for name, service in services().items():
        if is_ours(service):
            assert "/tmp" in service["tmpfs"], name
            assert "entrypoint" not in service, f"{name} would bypass the script"
    for owner, spec in pod_specs():
        for container in spec["containers"]:
            if is_ours(container):
                mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
                assert "/tmp" in mounts, owner
                assert "command" not in container, f"{owner} would bypass the script"


def test_a_container_loads_what_the_build_compiled(tmp_path: Path) -> None:
    # Given an image's folder with kernels
    image, kept = image_with(tmp_path, kernels=()), tmp_path / "tmp" / "ringhaul" / "numba"
    source = tmp_path / "doubling.py"
    source.write_text(KERNEL)
    program = (sys.executable, source)
    built = run(*program, cache=image / "kernels")
    assert "data saved to" in built and "data loaded from" not in built
    before = files(image)

    # When a container starts, and another program in it
    container = ("/bin/sh", image / SCRIPT.name, *program)
    first = run(*container, cache=kept)
    second = run(*program, cache=kept)

    # Then both load them from the writable folder, and nothing is compiled
    for said in (first, second):
        assert f"data loaded from '{kept}" in said
        assert "saved" not in said
        assert loaded(said) == saved(built)
    assert files(image) == before

    # And on another kind of CPU newly compiled kernels are added, and stay after a restart
    assert saved(run(*container, cache=kept, NUMBA_CPU_NAME="generic"))
    assert not saved(run(*container, cache=kept, NUMBA_CPU_NAME="generic"))
    assert os.listdir(kept.parent) == ["numba"]


def test_an_incomplete_copy_of_a_killed_container_is_replaced(tmp_path: Path) -> None:
    image, kept = image_with(tmp_path, kernels=("one", "two")), tmp_path / "numba"
    half = tmp_path / "numba.new"
    half.mkdir()
    (half / "garbled").touch()
    run("/bin/sh", image / SCRIPT.name, "true", cache=kept)
    assert sorted(os.listdir(kept)) == ["one", "two"]
    assert not half.exists()


@pytest.mark.parametrize(
    ("kernels", "cache"),
    # No folder can be created below a file, not even by root.
    [((), "numba"), (("one",), "file/numba"), (("one",), "")],
    ids=["none built", "no room", "not wanted"],
)
def test_the_program_starts_without_kernels_with_its_arguments_and_exit_code(
    tmp_path: Path, kernels: tuple[str, ...], cache: str
) -> None:
    image = image_with(tmp_path, kernels=kernels)
    (tmp_path / "file").touch()
    script = ("/bin/sh", image / SCRIPT.name)
    process = subprocess.Popen(
        [*script, "/bin/sh", "-c", 'echo "$$ $1"; exit 7', "sh", "two  words"],
        env={"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": cache},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    # The program replaces the process that the container runtime started, so it gets the signals.
    assert process.communicate(timeout=60)[0] == f"{process.pid} two  words\n"
    assert process.returncode == 7
    assert sorted(os.listdir(tmp_path)) == ["file", "image"], "no files are left behind"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_that_compiles_has_its_own_kernel_folder(path: Path) -> None:
    settings = unit_settings(path)
    named = [v for v in settings["Service.Environment"] if v.startswith("NUMBA_CACHE_DIR=")]
    if settings["Service.MemoryDenyWriteExecute"] == ["yes"]:  # it cannot run what it compiled
        assert named == []
        return
    (folder,) = settings["Service.CacheDirectory"]
    assert named == [f"NUMBA_CACHE_DIR=%C/{folder}/numba"]


def image_with(tmp_path: Path, kernels: tuple[str, ...]) -> Path:
    image = tmp_path / "image"
    image.mkdir()
    shutil.copy(SCRIPT, image)
    for name in kernels:
        (image / "kernels").mkdir(exist_ok=True)
        (image / "kernels" / name).touch()
    return image


def run(*argv: str | Path, cache: Path, **numba: str) -> str:
    """The output of a command, with numba's messages about its files."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = others | numba
    environment |= {
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_DEBUG_CACHE": "1",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def saved(said: str) -> set[str]:
    return set(re.findall(r"data saved to '.*/([^/\n]+)'", said))


def loaded(said: str) -> set[str]:
    return set(re.findall(r"data loaded from '.*/([^/\n]+)'", said))
