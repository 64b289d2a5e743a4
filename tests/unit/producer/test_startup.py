"""A command ends at once, with its exit code, and with all of its output flushed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ringhaul.errors import EXIT_COMPLETE, EXIT_FATAL, EXIT_REJECTS

LEAVE = "from producer.startup import leave; print('said'); leave({code})"


def run(code: int, **streams: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-c", LEAVE.format(code=code)],
        text=True,
        timeout=60,
        # Otherwise nothing would be left to write at the end.
        env={key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"},
        **streams,
    )


@pytest.mark.parametrize("code", [EXIT_COMPLETE, EXIT_REJECTS])
def test_output_is_flushed_before_the_process_ends(code: int) -> None:
    done = run(code, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (code, "said\n", "")


@pytest.mark.parametrize(
    ("code", "status"), [(EXIT_COMPLETE, EXIT_FATAL), (EXIT_REJECTS, EXIT_REJECTS)]
)
def test_output_that_cannot_be_written_is_an_error(code: int, status: int) -> None:
    with open("/dev/full", "w") as full:
        done = run(code, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == status
    assert "output cannot be written: [Errno 28] No space left on device" in done.stderr


def test_a_reader_that_closes_the_pipe_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(EXIT_COMPLETE, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (EXIT_COMPLETE, "")


def test_a_lasting_process_collects_garbage_by_the_defaults_of_python() -> None:
    script = (
        "import gc; usual = gc.get_threshold(); import producer.startup as s; s.start_quickly(); "
        "assert gc.get_threshold() != usual; s.stay(); assert gc.get_threshold() == usual"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
