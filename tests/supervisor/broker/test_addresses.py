"""Which addresses are public, row by row, and at the edges of each network."""

from typing import Final

from supervisor.broker.addresses import why_not_public
from tests.each_row import each_row

PUBLIC: Final = [
    "140.82.112.3", "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
    "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
    "223.255.255.255", "2606:50c0:8000::153", "2a00:1450:4001::1", "2000::1", "2001:200::1", "2001:db7::1",
    "2001:db9::", "2003::1", "2620:0:2d0:200::7", "3ffd:ffff::", "3c00::1", "3fef::1",
]  # fmt: skip

OTHERS: Final = [
    ("0.0.0.0", "this network"), ("0.255.255.255", "this network"), ("10.0.0.0", "private"),
    ("10.255.255.255", "private"), ("100.64.0.0", "shared"), ("100.100.100.200", "shared"),
    ("100.127.255.255", "shared"), ("127.0.0.1", "loopback"), ("127.255.255.255", "loopback"),
    ("168.63.129.16", "cloud"), ("169.254.0.0", "link-local"), ("169.254.169.254", "metadata"),
    ("169.254.255.255", "link-local"), ("172.16.0.0", "private"), ("172.31.255.255", "private"),
    ("192.0.0.0", "protocols"), ("192.0.0.192", "protocols"), ("192.0.2.1", "documentation"), ("192.88.99.1", "6to4"),
    ("192.168.0.0", "private"), ("192.168.255.255", "private"), ("198.18.0.0", "benchmarks"),
    ("198.19.255.255", "benchmarks"), ("198.51.100.9", "documentation"), ("203.0.113.9", "documentation"),
    ("224.0.0.0", "multicast"), ("239.255.255.255", "multicast"), ("240.0.0.0", "reserved"),
    ("255.255.255.254", "reserved"), ("255.255.255.255", "broadcast"),
    ("::", "this network"), ("::1", "loopback"), ("::2", "within IPv6"), ("::127.0.0.1", "within IPv6"),
    ("::140.82.112.3", "within IPv6"), ("::ffff:10.0.0.1", "mapped"), ("::ffff:140.82.112.3", "mapped"),
    ("::ffff:0:140.82.112.3", "translated"), ("64:ff9b::a00:1", "NAT64"), ("64:ff9b::8c52:7003", "NAT64"),
    ("64:ff9b:1::a00:1", "local NAT64"), ("64:ff9b:1:ffff::1", "local NAT64"), ("64:ff9b:2::1", "2000::/3"),
    ("100::1", "discarding"), ("1::1", "2000::/3"), ("2001::1", "Teredo"),
    ("2001:0:4136:e378:8000:63bf:3f57:fdf2", "Teredo"), ("2001:2::1", "benchmarks"), ("2001:10::1", "ORCHID"),
    ("2001:2f:ffff::", "ORCHID"), ("2001:1ff:ffff::", "protocols"), ("2001:db8::1", "documentation"),
    ("2002:7f00:1::", "6to4"), ("2002:8c52:7003::1", "6to4"), ("3ffe::1", "ended"), ("3fff::1", "documentation"),
    ("3fff:fff:ffff::", "documentation"), ("4000::1", "2000::/3"), ("5f00::1", "2000::/3"), ("fbff::1", "2000::/3"),
    ("fc00::1", "private"), ("fd00:ec2::254", "private"), ("fdff:ffff::", "private"), ("fe00::1", "2000::/3"),
    ("fe80::1", "link-local"), ("febf::1", "link-local"), ("fec0::1", "site-local"), ("feff::1", "site-local"),
    ("ff02::1", "multicast"), ("ff0e::1", "multicast"),
    ("fe80::1%eth0", "one interface"), ("2606:50c0:8000::153%2", "one interface"), ("", "no address"),
    ("github.com", "no address"), ("140.82.112.3:443", "no address"), ("140.82.112.003", "no address"),
    ("2852039166", "no address"), ("0x7f.1", "no address"), ("140.82.112.3\n", "no address"),
]  # fmt: skip


@each_row("address", PUBLIC)
def test_is_public(address: str) -> None:
    assert why_not_public(address) == ""


@each_row(("address", "word"), OTHERS, ids=[address for address, _ in OTHERS])
def test_is_not_public_and_says_what_it_is(address: str, word: str) -> None:
    assert word in why_not_public(address)
