"""Only addresses of the public internet are public, in whatever form they come."""

from __future__ import annotations

import ipaddress

import pytest

from toolwire.builtin.web.addresses import why_not

# fmt: off
NOT_PUBLIC = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
    "127.0.0.1", "127.1.2.3", "127.255.255.255", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2",
    "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
    "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1",
    "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "100::1",
    "2001::1", "2001:0:7f00:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::",
    "2002:a9fe:a9fe::1", "3fff::1", "3ffe::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:7f00:1",
    "2606:4700::1%eth0", "4000::1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "1.2.3",
    "[::1]",
)
PUBLIC = (
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::1",
    "2001:4860:4860::8888", "2003::1", "2606:4700:4700::1111", "2a00:1450:4001::1", "3fff:1000::1",
)
# fmt: on


@pytest.mark.threat(39)
@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_that_is_not_public_has_a_reason(address: str) -> None:
    assert why_not(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_has_none_also_beside_the_blocks(address: str) -> None:
    assert why_not(address) is None


@pytest.mark.threat(39)
def test_the_standard_library_alone_would_let_some_of_them_through() -> None:
    def is_let_through(address: str) -> bool:
        try:
            return ipaddress.ip_address(address).is_global
        except ValueError:
            return False

    assert len(NOT_PUBLIC) >= 57
    assert [each for each in NOT_PUBLIC if is_let_through(each)] != []


def test_the_reason_names_the_block() -> None:
    assert [why_not(each) for each in ("127.0.0.1", "2002:7f00:1::", "fe80::1", "x")] == [
        "loopback",
        "a 6to4 tunnel",
        "not a public IPv6 address",
        "not an address",
    ]
