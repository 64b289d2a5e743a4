from ringhaul.formats.compression import DECOMPRESSORS
from ringhaul.formats.suffixes import COMPRESSED, UNREAD, format_of


def test_the_format_of_a_file_follows_from_its_suffix() -> None:
    names = ["a.csv", "a.TSV.gz", "a", "a.jsonl", "a.ndjson.zst", "a.JSON", "a.parquet", "json"]
    formats = ["csv", "csv", "csv", "jsonl", "jsonl", "jsonl", "parquet", "csv"]
    assert list(map(format_of, names)) == formats
    assert format_of("a.csv", "jsonl") == "jsonl"


def test_each_compressed_suffix_has_its_reader() -> None:
    assert tuple(DECOMPRESSORS) == COMPRESSED
    assert not set(COMPRESSED) & set(UNREAD)
