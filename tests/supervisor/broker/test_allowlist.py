"""Which hosts and ports are allowed, at the boundaries of names."""

from typing import Final

import pytest

from supervisor.broker.allowlist import Allowlist, NetworkAllowlist
from supervisor.categories.web import HostPort
from tests.each_row import each_row

ROWS: Final[list[tuple[str, list[str], list[str]]]] = [
    ("github.com", ["github.com"], ["api.github.com", "evilgithub.com", "github.com.evil.org", "github.co", "com"]),
    ("GitHub.COM.", ["github.com"], []),
    (
        "*.example.org",
        ["a.example.org", "a.b.c.d.example.org"],
        [
            "example.org",
            "notexample.org",
            "xexample.org",
            "a.notexample.org",
            "example.org.evil.com",
            "a.example.org.evil.com",
            "org",
        ],
    ),
    ("*.EXAMPLE.org.", ["a.example.org"], []),
    ("*.a.example.org", ["b.a.example.org"], ["example.org", "b.example.org"]),
    ("*.xn--bcher-kva.example", ["a.xn--bcher-kva.example"], ["a.bcher-kva.example"]),
    ("intranet", ["intranet"], ["www.intranet"]),
    ("*.internal", ["a.internal"], ["internal"]),
]
"""Entries, with hosts that each allows and hosts that it does not."""


@each_row(("entry", "allowed", "others"), ROWS, ids=[row[0] for row in ROWS])
def test_an_entry_is_whole_labels(entry: str, allowed: list[str], others: list[str]) -> None:
    assert [host for host in allowed + others if Allowlist([entry], []).allows_host(host)] == allowed


def test_an_empty_list_allows_nothing() -> None:
    nothing = Allowlist([], [])
    assert not nothing.allows_host("github.com")
    assert not nothing.allows_port(443)
    assert (nothing.hosts, nothing.ports) == ("nothing", "nothing")


def test_a_name_and_what_is_below_it_are_two_entries() -> None:
    both = Allowlist(["example.org", "*.example.org"], [])
    assert both.allows_host("example.org")
    assert both.allows_host("a.example.org")


@each_row("entry", ["", "*", "*.", "**.example.org", "a.*.org", "*example.org", "1.2.3.4", "*.1", "a b"])
def test_an_entry_that_is_no_name_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Allowlist([entry], [])


def test_a_long_list_is_cut_for_people_and_whole_for_hosts() -> None:
    long = Allowlist([f"{'x' * 60}{number}.example.org" for number in range(1000)], range(1, 65536))
    assert long.allows_host(f"{'x' * 60}999.example.org")
    assert len(long.hosts) < 2000
    assert long.hosts.endswith("more")
    assert len(long.ports) < 2000


PLACES: Final = [
    (HostPort("example.org", 443), True),
    (HostPort("example.net", 80), True),
    (HostPort("example.org", 80), False),
    (HostPort("example.net", 443), False),
    (HostPort("a.example.org", 443), False),
]


@each_row(("place", "allowed"), PLACES, ids=[str(place) for place, _ in PLACES])
def test_a_place_is_a_host_with_its_own_port(place: HostPort, allowed: bool) -> None:
    places = NetworkAllowlist("project", [HostPort("example.org", 443), HostPort("example.net", 80)])
    assert (places.why_not(place) == "") is allowed
    assert allowed or "Allowed: example.org:443, example.net:80." in places.why_not(place)
