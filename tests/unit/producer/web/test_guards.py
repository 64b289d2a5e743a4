"""Which requests are refused. tests/acceptance/test_flower.py has the same with a real Flower."""

from dataclasses import replace

import pytest

from producer.web.exposure import Exposure
from producer.web.guards import Requested, host_name, refusal
from tests.cases import each

HOSTS = frozenset({"localhost", "etl.example.com"})
OPEN = Exposure(
    show_data=True,
    read_only=False,
    flower_read_only=False,
    hosts=HOSTS,
    proxied=frozenset({"etl.example.com"}),
)
CLOSED = replace(OPEN, read_only=True, flower_read_only=True)


def requested(method: str = "GET", **facts: str | None) -> Requested:
    usual: dict[str, str | None] = {"host": "localhost:5555", "origin": None, "site": None}
    return Requested(method, **({"path": "/jobs"} | usual | facts))


def status(one: Requested, exposure: Exposure = OPEN, *, ours: bool = True) -> int | None:
    refused = refusal(one, ours=ours, exposure=exposure)
    return refused and refused.status


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:5555", "LocalHost:1", "localhost.", "etl.example.com:443"),
        *("127.0.0.1:5555", "10.1.2.3", "[::1]:5555", "[fe80::1]"),
    ],
)
def test_our_names_and_all_addresses_are_served(host: str) -> None:
    assert status(requested(host=host)) is None


@each(
    "host",
    [
        *("", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::1"),
        *("localhost@evil.example", "evil.example:5555", "etl.example.com.evil.example", " "),
        *("0x7f000001", "example.com"),
    ],
)
@each("method", ["GET", "POST", "OPTIONS"])
def test_another_name_is_refused(host: str, method: str) -> None:
    assert status(requested(method, host=host)) == 421


def test_a_name_in_a_host_header() -> None:
    assert host_name("LOCALHOST:80") == "localhost"
    assert host_name("[::1]:80") == "::1"
    assert host_name("") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "nonsense"])
@pytest.mark.parametrize("ours", [True, False])
def test_a_change_from_another_site_is_refused(site: str, ours: bool) -> None:
    # Even with an origin that looks right: browsers set both.
    one = requested("POST", site=site, origin="http://localhost:5555")
    assert status(one, ours=ours) == 403
    assert status(one._replace(method="GET"), ours=ours) is None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:9999", "http://[::1", ""]
)
def test_a_change_from_another_origin_is_refused(origin: str) -> None:
    assert status(requested("POST", origin=origin)) == 403
    assert status(requested("DELETE", origin=origin), ours=False) == 403


def test_a_proxied_name_with_another_port_is_another_site() -> None:
    one = requested("POST", host="etl.example.com", origin="http://etl.example.com:8080")
    assert status(one) == 403


@pytest.mark.parametrize(
    "facts",
    [
        {"site": "same-origin", "origin": "http://localhost:5555"},
        {"site": "none"},
        {"origin": "http://localhost:5555"},
        # A proxy that serves the site under its name, and puts another one into Host.
        {"origin": "https://etl.example.com", "host": "127.0.0.1:5555"},
        # A program that is not a browser.
        {},
    ],
)
def test_a_change_from_our_pages_is_served(facts: dict[str, str]) -> None:
    assert status(requested("POST", **facts)) is None


def test_read_only_pages_change_nothing() -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for ours in (True, False):
            assert status(requested(method), CLOSED, ours=ours) == 403
    for method in ("GET", "HEAD", "OPTIONS"):
        assert status(requested(method), CLOSED) is None


def test_ours_and_flowers_pages_have_a_switch_each() -> None:
    ours_open = replace(OPEN, flower_read_only=True)
    assert status(requested("POST"), ours_open, ours=True) is None
    assert status(requested("POST"), ours_open, ours=False) == 403


def test_flowers_table_of_tasks_reads_by_post() -> None:
    table = requested("POST", path="/tasks/datatable")
    assert status(table, CLOSED, ours=False) is None
    assert status(table._replace(site="cross-site"), CLOSED, ours=False) == 403


def test_a_refusal_says_what_to_do() -> None:
    def message(one: Requested, ours: bool = True) -> str:
        refused = refusal(one, ours=ours, exposure=CLOSED)
        assert refused is not None
        return refused.message

    assert "web.hosts" in message(requested(host="evil.example"))
    assert "web.read_only = false" in message(requested("POST"))
    assert "--read_only=False" in message(requested("POST"), ours=False)
    assert "another site" in message(requested("POST", site="cross-site"))
