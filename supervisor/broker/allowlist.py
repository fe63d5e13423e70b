"""Hosts and ports that the operator allows: for pages, and for the commands of a profile. Pure.

Rule: what is compared is in normal form on both sides (`workers.url.host_name`), and equal as a whole or by whole
labels: `*.example.org` is every name below example.org, however deep, and neither that itself nor `notexample.org`.
"""

from collections.abc import Iterable
from typing import Final

from supervisor.categories.web import HostPort, allowed_entry

_SHOWN: Final = 1500
"""Characters of the list that a message repeats; a datagram to a worker has little more than twice that."""


class Allowlist:
    """The entries of `[web] allow` and `[web] ports`.

    Raises:
        ValueError: an entry is no host's name.
    """

    def __init__(self, entries: Iterable[str], ports: Iterable[int]) -> None:
        allowed = tuple(dict.fromkeys(map(allowed_entry, entries)))
        self._names = frozenset(entry for entry in allowed if not entry.startswith("*"))
        self._above = frozenset(entry.removeprefix("*.") for entry in allowed if entry.startswith("*"))
        self._ports = tuple(dict.fromkeys(ports))
        self.hosts: Final = _listed(allowed)
        """The list for people, cut where it is long."""
        self.ports: Final = _listed(map(str, self._ports))
        """The ports for people, cut where there are many."""

    def allows_host(self, host: str) -> bool:
        """Say whether a host, in normal form, may be connected to."""
        if host in self._names:
            return True
        above = host
        while "." in above:
            above = above.partition(".")[2]
            if above in self._above:
                return True
        return False

    def allows_port(self, port: int) -> bool:
        """Say whether connections may go to a port."""
        return port in self._ports

    def why_not(self, place: HostPort) -> str:
        """Return why nobody may connect to a place, whose host is in normal form; empty where one may."""
        if not self.allows_host(place.host):
            return (
                f"Domain not allowed: {place.host}. Allowed: {self.hosts}. "
                "What is allowed is the operator's decision ([web] allow in config.toml)."
            )
        if not self.allows_port(place.port):
            return f"Port not allowed: {place}. Allowed ports: {self.ports} ([web] ports in config.toml)."
        return ""


class NetworkAllowlist:
    """The hosts and ports, exactly those, that a profile's `network` names."""

    def __init__(self, profile: str, places: Iterable[HostPort], named: Iterable[HostPort] = ()) -> None:
        self._profile = profile
        self.named = frozenset(named)
        """Those that the operator named as mirrors: they may be at a private address, and be one."""
        self._places = tuple(dict.fromkeys((*places, *self.named)))

    def why_not(self, place: HostPort) -> str:
        """Return why nobody may connect to a place, whose host is in normal form; empty where one may."""
        if place in self._places:
            return ""
        return (
            f"Not allowed: {place}. Allowed: {_listed(map(str, self._places))}. What is allowed is the "
            f"operator's decision (network of [profiles.{self._profile}] in config.toml)."
        )


def _listed(words: Iterable[str]) -> str:
    left = list(words)
    shown: list[str] = []
    size = 0
    while left and size + len(left[0]) <= _SHOWN:
        size += len(left[0]) + 2
        shown.append(left.pop(0))
    more = [f"and {len(left)} more"] if left else []
    return ", ".join(shown + more) or "nothing"
