"""Which hosts and ports are allowed, at the boundaries of names."""

from typing import Final

import pytest

from supervisor.broker.allowlist import Allowlist, NetworkAllowlist
from supervisor.categories.web import HostPort

ROWS: Final = [
    ("github.com", "github.com", True),
    ("github.com", "api.github.com", False),
    ("github.com", "evilgithub.com", False),
    ("github.com", "github.com.evil.org", False),
    ("github.com", "github.co", False),
    ("github.com", "com", False),
    ("GitHub.COM.", "github.com", True),
    ("*.example.org", "a.example.org", True),
    ("*.example.org", "a.b.c.d.example.org", True),
    ("*.example.org", "example.org", False),
    ("*.example.org", "notexample.org", False),
    ("*.example.org", "xexample.org", False),
    ("*.example.org", "a.notexample.org", False),
    ("*.example.org", "example.org.evil.com", False),
    ("*.example.org", "a.example.org.evil.com", False),
    ("*.example.org", "org", False),
    ("*.EXAMPLE.org.", "a.example.org", True),
    ("*.a.example.org", "example.org", False),
    ("*.a.example.org", "b.example.org", False),
    ("*.a.example.org", "b.a.example.org", True),
    ("*.xn--bcher-kva.example", "a.xn--bcher-kva.example", True),
    ("*.xn--bcher-kva.example", "a.bcher-kva.example", False),
    ("intranet", "intranet", True),
    ("intranet", "www.intranet", False),
    ("*.internal", "a.internal", True),
    ("*.internal", "internal", False),
]


@pytest.mark.parametrize(("entry", "host", "allowed"), ROWS, ids=[f"{entry} {host}" for entry, host, _ in ROWS])
def test_an_entry_is_whole_labels(entry: str, host: str, allowed: bool) -> None:
    assert Allowlist([entry], []).allows_host(host) is allowed


def test_an_empty_list_allows_nothing() -> None:
    nothing = Allowlist([], [])
    assert not nothing.allows_host("github.com")
    assert not nothing.allows_port(443)
    assert (nothing.hosts, nothing.ports) == ("nothing", "nothing")


def test_a_name_and_what_is_below_it_are_two_entries() -> None:
    both = Allowlist(["example.org", "*.example.org"], [])
    assert both.allows_host("example.org")
    assert both.allows_host("a.example.org")


@pytest.mark.parametrize("entry", ["", "*", "*.", "**.example.org", "a.*.org", "*example.org", "1.2.3.4", "*.1", "a b"])
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


@pytest.mark.parametrize(("place", "allowed"), PLACES, ids=[str(place) for place, _ in PLACES])
def test_a_place_is_a_host_with_its_own_port(place: HostPort, allowed: bool) -> None:
    places = NetworkAllowlist("project", [HostPort("example.org", 443), HostPort("example.net", 80)])
    assert (places.why_not(place) == "") is allowed
    assert allowed or "Allowed: example.org:443, example.net:80." in places.why_not(place)
