"""Assertions for a refused command: one message, and nothing else."""

from __future__ import annotations

from tests.acceptance.command import Finished


def assert_refused(finished: Finished, code: int, message: str) -> None:
    """Assert that `message` is the whole output: no traceback, no progress, no stdout."""
    assert finished.err == f"error: {message}\n"
    assert finished.out == ""
    assert finished.code == code


def assert_usage(finished: Finished, message: str) -> None:
    """Assert that the command line was refused: usage first, then the error."""
    lines = finished.err.splitlines()
    assert lines[-1] == f"Error: {message}"
    assert any(line.strip().startswith("Usage: ringhaul") for line in lines)
    assert finished.out == ""
    assert finished.code == 2
