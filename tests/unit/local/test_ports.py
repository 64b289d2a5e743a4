"""Ports: the usual one if it is free on all addresses, another one if not."""

import socket

import pytest

from producer.local.errors import LocalStackError
from producer.local.ports import choose_port, is_free


def test_the_preferred_port_is_taken_if_free() -> None:
    port = choose_port(["127.0.0.1"])
    assert is_free("127.0.0.1", port)
    assert choose_port(["127.0.0.1"], port) == port


def test_a_port_occupied_on_one_address_is_not_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.1.2", 0))
        other.listen()
        port = other.getsockname()[1]
        assert not is_free("127.0.1.2", port)
        assert choose_port(["127.0.1.1"], port) == port
        chosen = choose_port(["127.0.1.1", "127.0.1.2"], port)
    assert chosen != port
    assert 15000 <= chosen < 32000


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(LocalStackError, match=r"192\.0\.2\.1 cannot be used on this machine"):
        choose_port(["192.0.2.1"])
