"""IP addresses that workers may read from."""

import pytest

from ringhaul.storage.addresses import refusal
from tests.cases import each

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:1.1.1.1"]
PRIVATE = [
    "127.0.0.1",
    "127.8.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
]
#: Link-local addresses, metadata services of clouds, and addresses of no server.
NEVER = [
    "169.254.169.254",
    "169.254.170.2",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "100.100.100.200",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
    "0.0.0.0",
    "::",
    "224.0.0.1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_read_from(address: str) -> None:
    assert refusal(address, private=False) is None


@each("address", PRIVATE)
def test_private_addresses_may_be_read_from_if_the_setting_says_so(address: str) -> None:
    assert "storage.private_addresses" in (refusal(address, private=False) or "")
    assert refusal(address, private=True) is None


@each("address", NEVER)
def test_addresses_of_metadata_services_are_never_read_from(address: str) -> None:
    assert refusal(address, private=False) is not None
    assert refusal(address, private=True) is not None
