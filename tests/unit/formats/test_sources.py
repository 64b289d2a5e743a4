from pathlib import Path

import pytest

from ringhaul.errors import SourceChanged
from ringhaul.formats.dialect import RFC_4180
from ringhaul.formats.find import find_sources
from ringhaul.formats.sources import check_unchanged, open_range, open_whole
from ringhaul.formats.split import Stream


def read_all(stream: Stream, size: int = 1000) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


def test_a_range_is_read_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    (source,) = find_sources([str(path)])
    with open_range(source, 3, 4) as stream:
        assert read_all(stream, 3) == b"3456"


def test_there_is_nothing_in_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    (source,) = find_sources([str(tmp_path)])
    with open_range(source, 0, 0) as stream:
        assert stream.read(9) == b""


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    (source,) = find_sources([str(path)])
    with open_range(source, 0, 10) as stream:
        path.write_bytes(b"01234")
        with pytest.raises(SourceChanged, match="ended early"):
            read_all(stream)
    with pytest.raises(SourceChanged, match="is 5 bytes now and was 10") as raised:
        check_unchanged(source)
    assert raised.value.exit_code == 4
    with pytest.raises(SourceChanged), open_range(source, 0, 5):
        pass
    with pytest.raises(SourceChanged), open_whole(source, RFC_4180):
        pass
    path.unlink()
    with pytest.raises(SourceChanged, match="the file is gone"):
        check_unchanged(source)
