"""The image's containers, and systemd's services, load kernels that were compiled before.

Docker is not needed: the Dockerfile's folders are made here, and its script runs.
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
#: Stands for all kernels, which take ten times as long.
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
    # The whole folder goes from stage to stage, and to the same path: numba's files name it.
    assert f"--from=build {script.parent} {script.parent}" in dockerfile_instructions("COPY")


def test_the_copy_goes_to_a_folder_that_every_container_may_write_to() -> None:
    where = PurePosixPath(final_environment()["NUMBA_CACHE_DIR"])
    assert where.is_relative_to("/tmp")
    for name, service in services().items():
        if is_ours(service):
            assert "/tmp" in service["tmpfs"], name
            assert "entrypoint" not in service, f"{name} would go around the script"
    for owner, spec in pod_specs():
        for container in spec["containers"]:
            if is_ours(container):
                mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
                assert "/tmp" in mounts, owner
                assert "command" not in container, f"{owner} would go around the script"


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

    # Then both load them, from where the container may write, and nothing is compiled
    for said in (first, second):
        assert f"data loaded from '{kept}" in said
        assert "saved" not in said
        assert loaded(said) == saved(built)
    assert files(image) == before

    # And on another kind of CPU what is compiled is added, and is there after a restart
    assert saved(run(*container, cache=kept, NUMBA_CPU_NAME="generic"))
    assert not saved(run(*container, cache=kept, NUMBA_CPU_NAME="generic"))
    assert os.listdir(kept.parent) == ["numba"]


def test_half_a_copy_of_a_container_that_was_killed_is_made_anew(tmp_path: Path) -> None:
    image, kept = image_with(tmp_path, kernels=("one", "two")), tmp_path / "numba"
    half = tmp_path / "numba.new"
    half.mkdir()
    (half / "garbled").touch()
    run("/bin/sh", image / SCRIPT.name, "true", cache=kept)
    assert sorted(os.listdir(kept)) == ["one", "two"]
    assert not half.exists()


@pytest.mark.parametrize(
    ("kernels", "cache"),
    # Below a file no folder can be made, not even by root.
    [((), "numba"), (("one",), "file/numba"), (("one",), "")],
    ids=["none built", "no room", "not wanted"],
)
def test_the_program_starts_without_kernels_and_keeps_its_words_and_its_end(
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
    # Its process is the one that the container's runtime started, which gets the signals.
    assert process.communicate(timeout=60)[0] == f"{process.pid} two  words\n"
    assert process.returncode == 7
    assert sorted(os.listdir(tmp_path)) == ["file", "image"], "nothing is left lying about"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_that_compiles_keeps_its_kernels_in_a_folder_of_its_own(path: Path) -> None:
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
    """What a command says, numba's words about its files among it."""
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
