"""Files that folders and globs list, and their checksums."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from producer.schedule.listing import (
    are_bases_there,
    find_strange,
    list_arrivals,
    take_checksum,
)
from ringhaul.schedule.arrivals import Listed
from ringhaul.sources.find import find_sources


def paths(folder: Path, *patterns: str) -> list[str]:
    found = list_arrivals(patterns, str(folder))
    return [os.path.relpath(file.path, folder) for file in found]


def test_globs_and_folders_list_files_except_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / ".hidden").mkdir()
    for name in ("b.csv", "a.csv", ".a.csv", "c.txt", "deep/d.csv", ".hidden/e.csv"):
        (tmp_path / "in" / name).write_text("x")
    (tmp_path / "in" / "dead.csv").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "in" / "pipe.csv")

    assert paths(tmp_path, "in/*.csv") == ["in/a.csv", "in/b.csv"]
    assert paths(tmp_path, "in/**/*.csv") == ["in/a.csv", "in/b.csv", "in/deep/d.csv"]
    assert paths(tmp_path, "in") == ["in/a.csv", "in/b.csv", "in/c.txt", "in/deep/d.csv"]
    # A file that two patterns match is listed once, whatever their spelling
    assert paths(tmp_path, "in/a.csv", str(tmp_path / "in/../in/*.csv")) == ["in/a.csv", "in/b.csv"]
    # and no match is not an error
    assert paths(tmp_path, "none", "in/*.json") == []


def test_links_to_folders_are_entered_as_loads_enter_them(tmp_path: Path) -> None:
    for name in ("in/real/a.csv", "elsewhere/deep/b.csv", "in/lost+found/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    # Links to a folder elsewhere, to one below, and two cycles of links
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "alink").symlink_to("real")
    (tmp_path / "in" / "again").symlink_to(".")
    (tmp_path / "elsewhere" / "round").symlink_to(tmp_path / "in")
    found = ["in/link/deep/b.csv", "in/real/a.csv"]
    for pattern in ("in", "in/", "in/**/*.csv", "in/**", str(tmp_path / "in")):
        assert paths(tmp_path, pattern) == found, pattern
    loaded = [source.path for source in find_sources([str(tmp_path / "in")])]
    assert [os.path.relpath(path, tmp_path) for path in loaded] == found
    # A cycle through the folder itself, named by a link
    (tmp_path / "drop").symlink_to("in")
    assert paths(tmp_path, "drop") == ["drop/link/deep/b.csv", "drop/real/a.csv"]


def test_a_checksum_depends_on_the_content_only(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"id\n1\n")
    (listed,) = list_arrivals((str(file),), "/")
    arrived = take_checksum(listed)
    assert arrived is not None
    assert arrived.checksum == hashlib.sha256(b"id\n1\n").hexdigest()
    assert Listed(*arrived[:3]) == listed


def test_a_file_that_changed_since_it_was_listed_has_no_checksum(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"id\n1\n")
    (listed,) = list_arrivals((str(file),), "/")
    file.write_bytes(b"id\n1\n2\n")
    assert take_checksum(listed) is None
    file.unlink()
    assert take_checksum(listed) is None


def odd(folder: Path, *patterns: str) -> tuple[list[str], dict[str, str]]:
    """The listed files, and the errors of the others."""
    errors: dict[str, str] = {}
    found = list_arrivals(patterns, str(folder), lambda path, why: errors.update({path: str(why)}))
    return [os.path.relpath(file.path, folder) for file in found], errors


def refused(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Refuse to list a folder, as without permission; root may list any."""
    scandir: Callable[..., object] = os.scandir

    def scan(path: object = ".") -> object:
        if str(path) == str(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)


def test_a_name_that_is_not_utf_8_does_not_hold_up_others(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    with open(os.fsencode(tmp_path) + b"/caf\xe9.csv", "w") as file:
        file.write("x")
    for pattern in (".", "*.csv"):
        found, errors = odd(tmp_path, pattern)
        assert found == ["a.csv"]
        (path,) = errors
        assert path == f"{tmp_path}/caf\\xe9.csv"
        assert errors[path] == f"{path}: the file name is not UTF-8: rename it"


def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x")
    (tmp_path / "open" / "loop.csv").symlink_to("loop.csv")
    closed = tmp_path / "closed"
    refused(monkeypatch, closed)
    # All other files are listed
    found, errors = odd(tmp_path, ".")
    assert found == ["open/a.csv"]
    assert set(errors) == {str(closed), str(tmp_path / "open" / "loop.csv")}
    for pattern in ("closed/*.csv", "closed/"):
        found, errors = odd(tmp_path, pattern, "open/a.csv")
        assert (found, "Permission denied" in "".join(errors.values())) == (["open/a.csv"], True)
    with pytest.raises(PermissionError):
        list_arrivals(("closed",), str(tmp_path))


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    for pattern in ("drop/*.csv", "drop/", "drop/*/deep/*.csv"):
        found, errors = odd(tmp_path, pattern, "a.csv")
        assert found == ["a.csv"]
        assert list(errors) == [str(tmp_path / "drop")]
        assert "No such file or directory" in errors[str(tmp_path / "drop")]


def test_each_pattern_is_announced_before_it_is_listed(tmp_path: Path) -> None:
    calls: list[str] = []
    patterns = ("*.csv", str(tmp_path), "file:///none/")
    list_arrivals(patterns, str(tmp_path), lambda path, error: calls.append("odd"), calls.append)
    assert calls == ["*.csv", str(tmp_path), "file:///none/", "odd"]


def test_a_file_url_is_the_path_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "in here").mkdir()
    (tmp_path / "in here" / "a.csv").write_text("x")
    url = f"file://{tmp_path}/in%20here"
    for pattern in (f"{url}/*.csv", url, f"{url}/", f"{url}/a.csv"):
        assert paths(tmp_path, pattern) == ["in here/a.csv"], pattern
        assert are_bases_there((pattern,), "/")


def test_missing_base_folders_of_patterns_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    base = str(tmp_path)
    assert are_bases_there(("in", "in/", "in/*.csv", "in/*/x/**/*.csv", "in/a.csv"), base)
    assert are_bases_there(("s3://bucket/in/",), base)
    for pattern in ("out/", "out/*.csv", "out/*/x.csv", "out/a.csv"):
        assert not are_bases_there(("in", pattern), base), pattern


@pytest.mark.parametrize("pattern", ["in", "in/", "in/*.csv", "in/**", "in/**/*.csv", "in/a.csv"])
def test_each_listed_file_belongs_to_its_pattern(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "in" / "deep" / "er").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "x[1].csv", "deep/d.csv", "deep/er/e.csv", " .csv", "l\nf.csv"):
        (tmp_path / "in" / name).write_text("x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "in" / "deep")
    found = [file.path for file in list_arrivals((pattern,), str(tmp_path))]
    assert found
    assert find_strange((pattern,), str(tmp_path), found) is None
    assert find_strange(("other/*", pattern), str(tmp_path), found) is None
    assert find_strange(("other/*",), str(tmp_path), found) == found[0]


@pytest.mark.parametrize("pattern", ["in", "in/*.csv", "in/**/*.csv", "in/a.csv", "s3://b/in/"])
@pytest.mark.parametrize(
    "path",
    [
        *("/etc/shadow", "--config=x", "-", "", "a.csv", "{T}/in/../secret.csv", "{T}/in"),
        *("{T}/in/.a.csv", "{T}/inner/a.csv", "{T}/secret.csv", "{T}/in/./a.csv"),
        *("s3://c/in/a.csv", "s3://b/in/../out/a.csv", "http://b/in/a.csv", "s3a://b/in/a.csv"),
        *("file://{T}/in/a.csv", "S3://b/in/a.csv", "s3://b/inner/a.csv", "s3://b/in/.a.csv"),
    ],
)
def test_a_path_that_no_pattern_matches_is_strange(tmp_path: Path, pattern: str, path: str) -> None:
    (tmp_path / "in").mkdir()
    path = path.replace("{T}", str(tmp_path))
    if pattern == "in" and path == str(tmp_path / "in"):
        return  # the command refuses a named folder itself
    assert find_strange((pattern,), str(tmp_path), [path]) == path


def test_urls_below_a_pattern_are_not_strange(tmp_path: Path) -> None:
    for pattern in ("s3://b/in/", "s3://b/in", "s3://b/in/**", "s3://b/in/*/*.csv"):
        assert find_strange((pattern,), str(tmp_path), ["s3://b/in/x/a.csv"]) is None
