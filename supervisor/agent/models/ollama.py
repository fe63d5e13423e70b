"""Ollama as a provider: models on this machine, or on another that runs the same server.

Rule: the address is read as Ollama's own programs read OLLAMA_HOST, and is this machine's where it is not set. What is
none is refused, where they would ask another port.
"""

import ipaddress
import re
from typing import Final

from supervisor.agent.models.provider import Provider
from supervisor.errors import ConfigError

_SERVER: Final = "OLLAMA_HOST"
_HERE: Final = "127.0.0.1"
_PORT: Final = 11_434
_PORTS: Final = {"http": 80, "https": 443}
"""Where a scheme is given, its own."""
_HIGHEST_PORT: Final = 65_535
_PLACE: Final = re.compile(r"(\[[^][]+\]|[^][:]*)(?::([0-9]{0,9}))?")
"""A host, or an IPv6 address in brackets, and its port."""


def host_url(written: str) -> str:
    """Return the address of a server as Ollama reads it: a host, host:port, or a URL.

    Source: https://github.com/ollama/ollama/blob/main/envconfig/config.go

    Raises:
        ConfigError: it is none; the text does not hold it, as it may have a password.
    """
    scheme, there, place = written.strip().partition("://")
    if not there:
        scheme, place = "http", written.strip()
    user, at, place = place.rpartition("@")
    place, slash, path = place.partition("/")
    host, port = _split(place)
    number = int(port) if port else _PORTS.get(scheme, _PORT) if there else _PORT
    if not 0 < number <= _HIGHEST_PORT:
        raise ConfigError(f"{_SERVER} has the port {number}: ports are 1 to {_HIGHEST_PORT}.")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{user}{at}{shown}:{number}{slash}{path}"


def _split(place: str) -> tuple[str, str]:
    """Return host and port of what may have both; a bare IPv6 address has none."""
    try:
        return str(ipaddress.ip_address(place)), ""
    except ValueError:
        found = _PLACE.fullmatch(place)
    if found is None:
        raise ConfigError(f"{_SERVER} is no address: write a host, host:port, [IPv6]:port, or https://host.")
    return found[1].strip("[]") or _HERE, found[2] or ""


PROVIDER: Final = Provider(
    prefix="ollama/",
    rest="...",
    key="OLLAMA_API_KEY",
    server=_SERVER,
    speaks="Ollama's API",
    format="ollama",
    base_url=host_url(""),
    read_address=host_url,
    needs_key=False,
)
