"""The supervisor's half of the category `web`, and `[web]`: the sites that `fetch_url` may reach.

Rule: as strict as the URLs that are judged by it (`workers.url`), and wrong when it is read, not when it is used. What
the operator wrote is brought into the normal form, so that nobody compares `GitHub.com.` with `github.com` later.
"""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from supervisor.categories.row import CategoryRow, Library, Locations, ProfileTraits, Sections
from supervisor.errors import ConfigError, reason
from supervisor.system import safe_files
from workers.url import UrlError, host_name
from workers.web.web_inputs import WebInputs

_BELOW: Final = "*."
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_ADDRESS_PORT: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):([0-9]+)")


class WebConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where `fetch_url` may go. An empty list allows nothing."""

    allow: Annotated[
        tuple[str, ...],
        Meta(description="Host names; `*.example.org` is every name below example.org, and not that itself."),
    ] = ("github.com", "raw.githubusercontent.com", "hexdocs.pm", "elixirforum.com")
    ports: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=65535)], ...], Meta(description="Ports that may be reached there.")
    ] = (443,)
    http: Annotated[
        bool, Meta(description="Allow http:// besides https://; its port, 80, must be among the `ports`.")
    ] = False
    resolve: Annotated[
        dict[str, str],
        Meta(
            description='Hosts to reach elsewhere, "host:port" = "address:port", as curl\'s --resolve; the only way to '
            "a private address."
        ),
    ] = {}
    ca_file: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) to trust in addition; a relative path is beneath the configuration's "
            "directory.",
            examples=["ca.pem"],
        ),
    ] = None
    fetch_s: Annotated[
        float, Meta(gt=0, le=600, description="Seconds that one fetch may take in all, its redirects included.")
    ] = 20.0
    unasked_bits: Annotated[
        int,
        Meta(
            ge=0,
            le=2**31,
            description="Bits that addresses may say without a question in a session that has read something private: "
            "what nobody could tell from the typed addresses, the pages and the links before. 0 asks about every one.",
        ),
    ] = 256
    unasked_addresses: Annotated[
        int,
        Meta(
            ge=0,
            le=2**31,
            description="Addresses that may be composed there without a question: neither typed nor a link that stands "
            "anywhere.",
        ),
    ] = 16

    def __post_init__(self) -> None:
        for entry in self.allow:
            allowed_entry(entry)
        places = []
        for place, target in self.resolve.items():
            places.append(host_port(place))
            address_port(target)
        for each in places:
            if places.count(each) > 1:
                raise ValueError(f"`resolve` says twice where {each} is.")


class HostPort(NamedTuple):
    """A host's name, or an address, and a port there."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def allowed_entry(text: str) -> str:
    """Return the normal form of an entry of `allow`: a host's name, or `*.` and one.

    Raises:
        UrlError: it is neither.
    """
    star = _BELOW if text.startswith(_BELOW) else ""
    if "*" in text.removeprefix(star):
        raise UrlError(f"{text!a}: a star stands for everything below a name, and only in front: '*.example.org'.")
    if "/" in text or re.search(":[0-9]*$", text):
        raise UrlError(f"{text!a}: a host's name stands alone, without https://, port and path.")
    return star + host_name(text.removeprefix(star))


def host_port(text: str) -> HostPort:
    """Take "github.com:443" apart.

    Raises:
        UrlError: it is no host's name and port.
    """
    host, _, digits = text.rpartition(":")
    if not host or (port := _port(digits)) == 0:
        raise UrlError(f"{text!a} is no host and port: write it like 'github.com:443'.")
    return HostPort(host_name(host), port)


def address_port(text: str) -> HostPort:
    """Take "127.0.0.1:8443" or "[::1]:8443" apart.

    Raises:
        UrlError: it is no address and port.
    """
    found = _ADDRESS_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found[1] or found[2]) if found else "")
    except ValueError:
        address = None
    port = _port(found[3]) if found else 0
    if found is None or address is None or (address.version == 6) is not bool(found[1]) or port == 0:  # noqa: PLR2004
        raise UrlError(f"{text!a} is no address and port: write it like '127.0.0.1:8443' or '[::1]:8443'.")
    return HostPort(str(address), port)


def ca_file(sections: Sections, locations: Locations) -> str:
    """Return the path of the certificates that are trusted in addition; "" where none are."""
    name = sections.section(WebConfig).ca_file
    return "" if name is None else certificates(name, locations.config_file)


def certificates(name: str, config_file: Path) -> str:
    """Return the path of certificates that the configuration names."""
    return str(config_file.parent / Path(name).expanduser())


def check_certificates(name: str | None, section: str, config_file: Path) -> None:
    """See that the certificates that a section names are there.

    Raises:
        ConfigError: they are not.
    """
    if name is None:
        return
    where = f"{config_file}: `ca_file` in [{section}], {name!r},"
    try:
        found = b"-----BEGIN CERTIFICATE-----" in safe_files.read_bytes(Path(certificates(name, config_file)))
    except (OSError, ValueError, RuntimeError) as error:  # a NUL in it, a home that nobody has
        raise ConfigError(f"{where} cannot be read: {reason(error)}.") from error
    if not found:
        raise ConfigError(f"{where} holds no certificate (PEM).")


def _inputs(sections: Sections, locations: Locations, _traits: ProfileTraits) -> WebInputs:
    web = sections.section(WebConfig)
    return WebInputs(web.fetch_s, web.http, ca_file(sections, locations))


def _port(digits: str) -> int:
    """Return a port's number, 0 where it is none."""
    number = int(digits) if _PORT.fullmatch(digits) else 0
    return number if number < 2**16 else 0


_NO_PAGES: Final = "no page is fetched"
ROW: Final = CategoryRow(
    "No page is fetched here.",
    section="web",
    config=WebConfig,
    check=lambda sections, locations: check_certificates(
        sections.section(WebConfig).ca_file, "web", locations.config_file
    ),
    inputs=_inputs,
    libraries=(
        Library("httpcore", ("httpcore",), _NO_PAGES),
        Library("certifi", ("certifi",), _NO_PAGES),
        Library("markdownify", ("markdownify", "bs4"), _NO_PAGES),
    ),
    stands_on="It needs httpcore, certifi and markdownify, and the certificates of `ca_file` in [web].",
)
