"""Inputs behind real web servers, and their faults."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ringhaul.errors import SourceChanged, SourceMissing, SourceUnavailable, UsageError
from ringhaul.formats.dialect import RFC_4180
from ringhaul.formats.split import Stream
from ringhaul.sources.files import check_unchanged, open_range, open_whole
from ringhaul.sources.find import find_sources
from ringhaul.sources.source import SourceFile
from ringhaul.storage import web
from ringhaul.storage.access import Access, access, set_access
from tests.ports import closed_port
from tests.web_server import WebServer, running_web_server

DATA = b"id,name\n" + b"".join(b"%d,name %d\n" % (n, n) for n in range(1_200_000))  # 20 MB


@pytest.fixture(autouse=True)
def private_addresses() -> Iterator[None]:
    before = access()
    set_access(Access(private_addresses=True))
    yield
    set_access(before)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    monkeypatch.setattr(web, "_PAUSES_S", (0.0, 0.0))
    with running_web_server() as running:
        running.files = {"x.csv": DATA, "x.csv.gz": gzip.compress(DATA[:1000]), "none.csv": b""}
        yield running


def find(server: WebServer, name: str = "x.csv") -> SourceFile:
    (source,) = find_sources([f"{server.url}/{name}"])
    return source


def read_all(stream: Stream) -> bytes:
    return b"".join(iter(lambda: stream.read(1 << 20), b""))


def test_a_range_is_read_by_few_requests_over_few_connections(server: WebServer) -> None:
    source = find(server)
    assert source == SourceFile(f"{server.url}/x.csv", len(DATA), False, '"1"')
    server.requests.clear()
    server.connections = 0
    with open_range(source, 5, len(DATA) - 10) as stream:
        assert read_all(stream) == DATA[5:-5]
    ranges = [wanted for _, wanted in server.requests]
    assert ranges[0] == "bytes=0-0", "whether it is still the same"
    assert len(ranges) == 4
    assert server.connections <= 4


def test_a_compressed_file_is_one_request(server: WebServer) -> None:
    source = find(server, "x.csv.gz")
    assert source.whole
    server.requests.clear()
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == DATA[:1000]
    assert [wanted for _, wanted in server.requests] == ["bytes=0-0", ""]


def test_the_query_is_not_part_of_the_file_name(server: WebServer) -> None:
    server.files["x.csv.gz?day=1"] = server.files["x.csv.gz"]
    assert find(server, "x.csv.gz?day=1").whole


def test_a_server_without_ranges_makes_one_unit(server: WebServer) -> None:
    server.ranges = False
    source = find(server)
    assert source.whole and source.size_bytes == len(DATA)
    with open_whole(source, RFC_4180) as stream:
        assert read_all(stream) == DATA
    server.files["x.parquet"] = b"PAR1"
    with pytest.raises(UsageError, match="which Parquet needs"):
        find(server, "x.parquet")


def test_an_empty_file_has_no_bytes(server: WebServer) -> None:
    assert find(server, "none.csv").size_bytes == 0


def test_a_truncated_answer_is_requested_again(server: WebServer) -> None:
    plain, packed = find(server), find(server, "x.csv.gz")
    server.cut_after_bytes, server.cuts_left = 100, 2
    with open_range(plain, 0, 1 << 20) as stream:
        assert read_all(stream) == DATA[: 1 << 20]
    assert server.cuts_left == 0
    server.cuts_left = 2
    with open_whole(packed, RFC_4180) as stream:
        assert read_all(stream) == DATA[:1000]
    assert server.cuts_left == 0


def test_an_always_truncated_answer_is_reported(server: WebServer) -> None:
    source = find(server)
    server.cut_after_bytes, server.cuts_left = 100, 1000
    with (
        open_range(source, 0, 1 << 20) as stream,
        pytest.raises(SourceUnavailable, match="broke off"),
    ):
        read_all(stream)


def test_a_stream_of_a_server_without_ranges_cannot_be_resumed(server: WebServer) -> None:
    server.ranges = False
    source = find(server)
    # Some requests only check that the file is unchanged.
    server.cut_after_bytes, server.cuts_left = 100, 10
    with (
        open_whole(source, RFC_4180) as stream,
        pytest.raises(SourceUnavailable, match="broke off"),
    ):
        read_all(stream)


def test_a_replaced_file_is_noticed(server: WebServer) -> None:
    source = find(server)
    with open_range(source, 0, len(DATA)) as stream:
        stream.read(1)
        server.etag = '"2"'
        with pytest.raises(SourceChanged):
            read_all(stream)
            check_unchanged(source)
    with pytest.raises(SourceChanged, match="was replaced"):
        check_unchanged(source)
    del server.files["x.csv"]
    with pytest.raises(SourceMissing, match="no such file"):
        check_unchanged(source)


def test_a_file_that_grew_behind_a_server_without_versions_is_noticed(server: WebServer) -> None:
    server.ranges, server.etag = False, ""
    source = find(server)
    assert source.version == ""
    with open_whole(source, RFC_4180) as stream:
        server.files["x.csv"] += b"more\n"
        with pytest.raises(SourceChanged, match="not the one that the job started with"):
            stream.read(1)


def test_a_whole_file_in_answer_to_a_range_is_a_transient_error(server: WebServer) -> None:
    # Given a file from a server with ranges
    source = find(server)
    with open_range(source, 0, 1000) as stream:
        # When the server stops serving ranges, and the file is unchanged
        server.ranges = False
        # Then the error counts as transient
        with pytest.raises(SourceUnavailable, match="no longer serves parts of the file"):
            read_all(stream)
        server.ranges = True
        assert read_all(stream) == DATA[:1000]
    server.ranges, server.etag = False, '"2"'
    with pytest.raises(SourceChanged), open_range(source, 0, 1000) as stream:
        read_all(stream)


@pytest.mark.parametrize(
    ("content_range", "error", "message"),
    [
        (
            "bytes 1000-1999/{size}",
            SourceUnavailable,
            "0-999 were requested, and the server sends bytes 10",
        ),
        (
            "bytes 0-998/{size}",
            SourceUnavailable,
            "0-999 were requested, and the server sends bytes 0-998",
        ),
        ("bytes 0-999/77", SourceChanged, "not the one that the job started with"),
        ("parts", SourceUnavailable, "bytes 0-999 were requested, and the server sends parts"),
    ],
)
def test_a_different_range_than_requested_is_refused(
    server: WebServer, content_range: str, error: type[Exception], message: str
) -> None:
    source = find(server)
    with open_range(source, 0, 1000) as stream:
        server.content_range = content_range.format(size=len(DATA))
        with pytest.raises(error, match=message):
            read_all(stream)
        server.content_range = "bytes 0-999/*"
        assert read_all(stream) == DATA[:1000]


def test_a_stream_is_not_continued_at_another_offset(server: WebServer) -> None:
    # Given a stream that breaks
    source = find(server, "x.csv.gz")
    with open_whole(source, RFC_4180) as stream:
        server.cut_after_bytes, server.cuts_left = 100, 1
        # When the server sends another range than the rest
        server.content_range = f"bytes 0-99/{source.size_bytes}"
        with pytest.raises(
            SourceUnavailable, match="bytes 100- were requested, and the server sends bytes"
        ):
            read_all(stream)


def test_a_weak_and_a_strong_etag_are_the_same_version(server: WebServer) -> None:
    source = find(server)
    server.etag = 'W/"1"'
    with open_range(source, 0, 1000) as stream:
        assert read_all(stream) == DATA[:1000]
    weak = find(server)
    server.etag = '"1"'
    with open_range(weak, 0, 1000) as stream:
        assert read_all(stream) == DATA[:1000]


@pytest.mark.parametrize(
    ("name", "encoding", "taken"),
    [
        ("x.csv", "gzip", False),
        ("x.csv", "br", False),
        ("x.csv.gz", "br", False),
        ("x.csv", "identity", True),
        ("x.csv", "utf-8", True),  # sent by mistake: not a coding
        ("x.csv", "aws-chunked", True),
        ("x.csv", "aws-chunked, gzip", False),
        ("x.csv", "deflate", False),
        ("x.csv.gz", "x-gzip", True),  # how the file is stored
    ],
)
def test_a_content_encoding_is_refused(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, name: str, encoding: str, taken: bool
) -> None:
    handler: Any = server.RequestHandlerClass
    end_headers = handler.end_headers

    def encoded(self: Any) -> None:
        self.send_header("Content-Encoding", encoding)
        end_headers(self)

    monkeypatch.setattr(handler, "end_headers", encoded)
    if taken:
        assert find(server, name).size_bytes == len(server.files[name])
        return
    coding = encoding.rpartition(", ")[2]
    with pytest.raises(SourceMissing, match=rf"sends the file compressed \({coding}\) although"):
        find(server, name)


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (404, SourceMissing, "no such file on the server"),
        (403, SourceMissing, "the server refuses access"),
        (500, SourceUnavailable, "is not available now: 500"),
        (418, SourceMissing, "the server answers 418"),
    ],
)
def test_a_server_s_error_is_reported(
    server: WebServer, status: int, error: type[Exception], message: str
) -> None:
    server.statuses["x.csv"] = [status] * 5
    with pytest.raises(error, match=message):
        find(server)


def test_transient_errors_are_retried(server: WebServer) -> None:
    source = find(server)
    server.statuses["x.csv"] = []
    with open_range(source, 0, 1000) as stream:
        server.statuses["x.csv"] = [503, 429]
        assert read_all(stream) == DATA[:1000]


def test_a_file_of_unknown_size(server: WebServer) -> None:
    server.ranges = server.tells_size = False
    with pytest.raises(SourceMissing, match=r"how large the file is; pipe it in"):
        find(server)


def test_an_unload_behind_a_web_server(server: WebServer) -> None:
    server.files["out/_manifest.json"] = b'{"parts": [{"name": "p.csv"}]}'
    server.files["out/p.csv"] = b"x\n1\n"
    assert [source.path for source in find_sources([f"{server.url}/out/"])] == [
        f"{server.url}/out/p.csv"
    ]
    with pytest.raises(UsageError, match="does not list its files"):
        find_sources([f"{server.url}/other/"])


def test_a_closed_port_is_reported() -> None:
    with (
        closed_port() as port,
        pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1 does not answer"),
    ):
        find_sources([f"http://127.0.0.1:{port}/x.csv"])
    with pytest.raises(SourceUnavailable, match=r"the name nowhere\.invalid does not resolve"):
        find_sources(["http://nowhere.invalid/x.csv"])


# --- allowed addresses


def test_loopback_is_refused_unless_it_is_allowed(server: WebServer) -> None:
    set_access(Access())
    for host in ("127.0.0.1", "localhost", "0x7f000001", "[::ffff:127.0.0.1]"):
        with pytest.raises(SourceMissing, match="is loopback"):
            find_sources([f"http://{host}:{server.server_port}/x.csv"])
    assert server.connections == 0


@pytest.mark.parametrize("address", ["169.254.169.254", "[fd00:ec2::254]"])
def test_a_hosts_metadata_service_is_never_contacted(address: str) -> None:
    with pytest.raises(SourceMissing, match="is link-local"):
        find_sources([f"http://{address}/latest/meta-data/x.csv"])


def test_a_redirection_is_followed_and_checked(server: WebServer) -> None:
    server.redirects["moved.csv"] = "/x.csv"
    source = find(server, "moved.csv")
    assert source.path.endswith("/moved.csv") and source.size_bytes == len(DATA)
    with open_range(source, 0, 100) as stream:
        assert read_all(stream) == DATA[:100]
    # Also to a name that the server sends unencoded, in UTF-8
    server.files["d%C3%A4ta.csv"] = DATA
    server.redirects["moved.csv"] = "/däta.csv".encode().decode("latin-1")
    assert find(server, "moved.csv").size_bytes == len(DATA)
    for target, message in (
        ("http://169.254.169.254/latest/meta-data/", "is link-local"),
        ("file:///etc/passwd", "is redirected to file://"),
        ("s3://bucket/x.csv", "is redirected to s3://"),
        ("http://[/x.csv", "is redirected wrongly: "),
        ("http://h /x.csv", "is redirected wrongly: http://h /x.csv: is not a URL"),
        ("/moved.csv", "is redirected more than 5 times"),
    ):
        server.redirects["moved.csv"] = target
        with pytest.raises(SourceMissing, match=message):
            find(server, "moved.csv")


def test_a_name_may_not_resolve_to_a_private_address_after_the_check(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name first resolves to a public address, and then to a private one."""
    set_access(Access())
    looked_up = []

    def resolve(host: str, port: int, *_: object) -> list[tuple[object, ...]]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.server_port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(SourceMissing, match="is loopback"):
        find_sources(["http://rebinding.example/x.csv"])
    assert looked_up == ["rebinding.example"] and server.connections == 0
