"""Which addresses are on the public internet.

The tables are our own: `ipaddress.is_global` differs between patch releases of Python, and calls multicast and
addresses that carry another one public.
"""

from __future__ import annotations

import ipaddress

_NOT_PUBLIC_V4 = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "a private network",
    "100.64.0.0/10": "a provider's shared network",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a cloud's metadata service",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "a private network",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "a private network",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved",
}
NOT_AN_ADDRESS = "not an address"
"""The reason why a name is not public: it has to be resolved first."""
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = {
    "2001::/23": "protocol assignments and tunnels",
    "2001:db8::/32": "documentation",
    "2002::/16": "a 6to4 tunnel",
    "3fff::/20": "documentation",
    "3ffe::/16": "a former test network",
}
_V4 = {ipaddress.IPv4Network(network): why for network, why in _NOT_PUBLIC_V4.items()}
_V6 = {ipaddress.IPv6Network(network): why for network, why in _NOT_PUBLIC_V6.items()}
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
"""The upper half of an interface's id if the lower half is an IPv4 address that a tunnel leads to."""


def why_not(address: str) -> str | None:
    """Returns the reason why an address is not public, such as "loopback"; None if it is.

    IPv4 addresses are refused by a table. IPv6 addresses are accepted from one block, without tunnels.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return NOT_AN_ADDRESS
    if isinstance(found, ipaddress.IPv4Address):
        return next((why for network, why in _V4.items() if found in network), None)
    if found.scope_id is not None:
        return "an address of one link"
    if found not in _PUBLIC_V6:
        return "not a public IPv6 address"
    if (int(found) >> 32) & 0xFFFF_FFFF in _ISATAP:
        return "an ISATAP tunnel"
    return next((why for network, why in _V6.items() if found in network), None)
