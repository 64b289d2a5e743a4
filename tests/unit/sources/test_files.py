from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ringhaul.errors import SourceChanged
from ringhaul.formats.dialect import RFC_4180
from ringhaul.formats.split import Stream
from ringhaul.sources.files import check_unchanged, open_parquet, open_range, open_whole
from ringhaul.sources.find import find_sources


def read_all(stream: Stream, size: int = 1000) -> bytes:
    return b"".join(iter(lambda: stream.read(size), b""))


def test_a_range_is_read_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    (source,) = find_sources([str(path)])
    with open_range(source, 3, 4) as stream:
        assert read_all(stream, 3) == b"3456"


def test_an_empty_file_reads_as_empty(tmp_path: Path) -> None:
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
        with pytest.raises(SourceChanged, match="is 5 bytes now and was 10"):
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


def test_timestamps_of_spark_beyond_the_range_of_nanoseconds(tmp_path: Path) -> None:
    moments = [datetime(9999, 12, 31), datetime(1, 1, 1), datetime(2024, 1, 1, 1, 2, 3, 4)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "x.parquet", use_deprecated_int96_timestamps=True)
    (source,) = find_sources([str(tmp_path)])
    with open_parquet(source) as file:
        assert file.schema_arrow == table.schema
        assert file.read().column("at").to_pylist() == moments


def test_a_row_group_is_not_kept_in_memory_whole(tmp_path: Path) -> None:
    # Given one row group of 40 MB
    values = np.random.default_rng(1).integers(0, 2**62, 5_000_000)
    pq.write_table(pa.table({"n": values}), tmp_path / "x.parquet", row_group_size=len(values))
    (source,) = find_sources([str(tmp_path)])
    before = pa.total_allocated_bytes()
    # When it is read in batches, only a part of it is in memory at any time
    with open_parquet(source) as file:
        read = 0
        for batch in file.iter_batches(batch_size=64 * 1024, row_groups=[0], use_threads=False):
            read += batch.num_rows
            assert pa.total_allocated_bytes() - before < 16 << 20
    assert read == len(values)
