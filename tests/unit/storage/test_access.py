"""Which URLs a process opens, and how they are shown."""

from collections.abc import Iterator

import pytest

from ringhaul.errors import UsageError
from ringhaul.formats.suffixes import compression_of, format_of
from ringhaul.sources.find import local_path as sources_path
from ringhaul.storage.access import Access, access, check_url, mask_url, set_access, split_url
from ringhaul.storage.folders import local_path as outputs_path


@pytest.fixture(autouse=True)
def access_as_before() -> Iterator[None]:
    before = access()
    yield
    set_access(before)


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/a b?c#d/x.csv",
        "S3://bucket/x",
        "gs://bucket",
        "https://host/x.csv?day=1",
        "http://host:8080/x",
        "file:///x",
        "s3://bucket/odd@name:x.csv",
    ],
)
def test_allowed_urls(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize("url", ["ftp://host/x", "simplecache::s3://b/x", "memory://x", "://x"])
def test_other_kinds_of_url_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"storage\.schemes"):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    ["http://[/x", "https://a]b/x", "http://h /x", "http://[::1/x?sig=a", "https://h\u2100/x"],
)
def test_what_is_not_a_url_is_refused_wherever_its_name_is_read(url: str) -> None:
    for read in (check_url, split_url, format_of, compression_of):
        with pytest.raises(UsageError, match="is not a URL: ") as error:
            read(url)
        assert "sig=a" not in str(error.value)


@pytest.mark.parametrize("url", ["file://[x]/y", "file://a]/y"])
def test_a_file_url_of_no_host_is_refused(url: str) -> None:
    for read in (sources_path, outputs_path):
        with pytest.raises(UsageError, match="is not a URL: "):
            read(url)


def test_the_setting_decides() -> None:
    set_access(Access(schemes=("ftp",)))
    check_url("ftp://host/x")
    with pytest.raises(UsageError, match=r"s3:// is not among .*\(ftp\)"):
        check_url("s3://bucket/x")


@pytest.mark.parametrize(
    "url",
    [
        "https://me:sentinel@host/x.csv",
        "https://sentinel@host/x.csv",
        "s3://key:sentinel@bucket/x.csv",
        "s3://key:half/sentinel@bucket/x.csv",
        "https://bucket.example/x.csv?X-Amz-Credential=a&X-Amz-Signature=sentinel",
        "https://host/x.csv?token=sentinel",
        "https://host?token=sentinel",
        "https://host?token=half/sentinel",
    ],
)
def test_a_url_that_holds_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as error:
        check_url(url)
    assert "sentinel" not in str(error.value)


@pytest.mark.parametrize("url", ["s3://", "s3:///x.csv", "S3:///", "gs://", "gs:///x/*.csv"])
def test_a_store_is_not_opened_without_a_bucket(url: str) -> None:
    with pytest.raises(UsageError, match=r"names no bucket; give (s3|gs)://BUCKET/PATH"):
        check_url(url)


@pytest.mark.parametrize("url", ["s3://*", "gs://**/x.csv", "s3://b?cket/x.csv"])
def test_a_bucket_name_cannot_be_a_pattern(url: str) -> None:
    with pytest.raises(UsageError, match="a bucket's name cannot be a pattern; give"):
        check_url(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://bucket/key?with#all", "s3://bucket/key?with#all"),
        ("https://me:pw@host/x?a=b", "https://host/x?..."),
        ("https://host/x", "https://host/x"),
        ("s3://a:b@bucket/x@y", "s3://bucket/x@y"),
        ("/a/path?x", "/a/path?x"),
    ],
)
def test_how_a_url_is_shown(url: str, expected: str) -> None:
    assert mask_url(url) == expected
