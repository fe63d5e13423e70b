"""Tells public addresses from all others, by a table of our own. Pure.

Rule: for IPv6, nothing is public but the global unicast range, less what this table takes out of it; for IPv4, all but
this table. An address that carries another one inside (mapped, NAT64, 6to4, Teredo) is refused whatever that is: where
it leads is decided by a gateway that we do not know. `ipaddress.is_global` is not asked: in Python 3.11 it is True for
NAT64, 6to4, IPv4-compatible, site-local and multicast addresses.

Sources: the IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890), multicast (RFC 1112, RFC 4291),
site-local (RFC 3879), IPv4-compatible (RFC 4291, 2.5.5.1), the virtual public address of a cloud's host (Azure).
"""

import ipaddress
from typing import Final

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_WORDS: Final = (
    ("0.0.0.0/8", "of this network itself"),
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared within a provider's network"),
    ("127.0.0.0/8", "this machine itself (loopback)"),
    ("168.63.129.16/32", "a cloud's host"),
    ("169.254.0.0/16", "link-local, where clouds keep their metadata"),
    ("172.16.0.0/12", "private"),
    ("192.0.0.0/24", "reserved for protocols"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("255.255.255.255/32", "broadcast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "of this network itself"),
    ("::1/128", "this machine itself (loopback)"),
    ("::ffff:0:0/96", "an IPv4 address mapped into IPv6"),
    ("::ffff:0:0:0/96", "an IPv4 address translated into IPv6"),
    ("::/96", "an IPv4 address within IPv6"),
    ("64:ff9b::/96", "an IPv4 address behind NAT64"),
    ("64:ff9b:1::/48", "an IPv4 address behind a local NAT64"),
    ("100::/64", "for discarding"),
    ("2001::/32", "a Teredo tunnel"),
    ("2001:2::/48", "for benchmarks"),
    ("2001:10::/28", "an identifier (ORCHID)"),
    ("2001:20::/28", "an identifier (ORCHID)"),
    ("2001::/23", "reserved for protocols"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "a 6to4 tunnel"),
    ("3ffe::/16", "of a network that has ended"),
    ("3fff::/20", "for documentation"),
    ("fc00::/7", "private"),
    ("fe80::/10", "link-local"),
    ("fec0::/10", "private (site-local)"),
    ("ff00::/8", "multicast"),
)
"""The first row that an address is in says what it is."""

_TABLE: Final = tuple((ipaddress.ip_network(network), word) for network, word in _WORDS)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")


def why_not_public(text: str) -> str:
    """Return what an address is instead of public; empty where it is public."""
    if "%" in text:
        return "tied to one interface"
    try:
        address: _Address = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    for network, word in _TABLE:
        if address.version == network.version and address in network:
            return word
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return "not of the public range 2000::/3"
    return ""
