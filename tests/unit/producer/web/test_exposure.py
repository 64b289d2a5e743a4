"""What may be shown and done at an address."""

import socket

import pytest

from config.sections import WebSettings
from producer.web.exposure import Listening, exposure_of, is_loopback
from ringhaul.errors import UsageError


def listening(address: str = "127.0.0.1", **facts: object) -> Listening:
    usual: dict[str, object] = {"unix_socket": "", "has_log_in": False, "read_only": None}
    return Listening(address=address, **(usual | facts))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "localhost", "LOCALHOST"])
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::", "10.0.0.1", "127.0.0.1.nip.io", "ops1"])
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def test_on_loopback_data_is_shown_and_nothing_can_be_changed() -> None:
    exposure = exposure_of(WebSettings(), listening())
    assert exposure.show_data
    assert exposure.read_only and exposure.flower_read_only


@pytest.mark.parametrize("place", [{"address": ""}, {"address": "10.0.0.1"}, {"unix_socket": "/s"}])
def test_others_need_a_log_in(place: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="without a log-in: set FLOWER_BASIC_AUTH"):
        exposure_of(WebSettings(), listening(**place))
    for exposure in (
        exposure_of(WebSettings(), listening(**place, has_log_in=True)),
        exposure_of(WebSettings(authentication="proxy"), listening(**place)),
    ):
        assert not exposure.show_data


def test_a_proxy_in_front_of_loopback_shows_others_no_data() -> None:
    assert not exposure_of(WebSettings(authentication="proxy"), listening()).show_data


@pytest.mark.parametrize("shown", [True, False])
def test_the_setting_decides_about_data(shown: bool) -> None:
    web = WebSettings(show_data=shown, authentication="proxy")
    assert exposure_of(web, listening()).show_data is shown
    assert exposure_of(web, listening("")).show_data is shown


@pytest.mark.parametrize(
    ("setting", "option", "ours", "flowers"),
    [
        (True, None, True, True),
        (False, None, False, True),
        # Flower's option goes before the setting.
        (False, True, True, True),
        (True, False, False, False),
    ],
)
def test_read_only(setting: bool, option: bool | None, ours: bool, flowers: bool) -> None:
    exposure = exposure_of(WebSettings(read_only=setting), listening(read_only=option))
    assert (exposure.read_only, exposure.flower_read_only) == (ours, flowers)


def test_names_of_the_site() -> None:
    web = WebSettings(hosts=("ETL.example.com",))
    hosts = exposure_of(web, listening("Ops1", has_log_in=True)).hosts
    assert hosts == {"localhost", "etl.example.com", "ops1", socket.gethostname().lower()}
