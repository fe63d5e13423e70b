"""URLs: a strict grammar of our own, the same for whoever judges one and for whoever opens it.

Rule: pure, a leaf, and stricter than RFC 3986. What two programs could read in two ways is refused and never
repaired: control characters, anything that is not ASCII, user names, ports of other shapes, and every way to write
an address instead of a name. A relative reference becomes a URL by RFC 3986, section 5, and is then judged as one.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

PORTS: Final[Mapping[str, int]] = MappingProxyType({"https": 443, "http": 80})
"""The schemes that there are, and the port of each."""

LENGTH: Final = 8192
"""The most characters of a URL."""

_HOST: Final = 253
_ECHO: Final = 80
"""Characters of an offending value that an error repeats."""

_ODD: Final = re.compile(r"[^!-~]")
_UNSAFE: Final = re.compile(r'["<>\\^`{|}]')
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY: Final = re.compile(r"//([^/?#]*)")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OCTET: Final = re.compile(r"0|[1-9][0-9]{0,2}")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")


class UrlError(ValueError):
    """The text is no URL, or no host, that may be used. The message says what to do instead."""


class Url(NamedTuple):
    """One URL, taken apart. `str` of it is its normal form."""

    scheme: str
    host: str
    """In lower case, without a dot at the end."""
    port: int
    target: str
    """Path and query as they were written, without the fragment; at least "/"."""

    def __str__(self) -> str:
        return f"{self.origin}{self.target}"

    @property
    def origin(self) -> str:
        """Return everything before the path."""
        port = "" if self.port == PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def host_name(text: str) -> str:
    """Return the normal form of a host's name: lower-case ASCII, no dot at the end.

    Raises:
        UrlError: it is no name; an address is none either, in whatever form.
    """
    name = text.removesuffix(".").lower() if text.isascii() else ""
    labels = name.split(".")
    if len(name) > _HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlError(
            f"The host {_shown(text)} is not a name: letters, digits and hyphens in parts of 1 to 63 with dots between "
            "(a name with other letters is written in its xn-- form)."
        )
    if _NUMBER.fullmatch(labels[-1]):
        raise UrlError(f"The host {_shown(text)} is an address or a number: use the host's name.")
    return name


def host_or_address(text: str) -> str:
    """Return the normal form of a host's name, or an IPv4 address, without a dot at the end.

    Raises:
        UrlError: it is neither.
    """
    numbers = (text := text.removesuffix(".")).split(".")
    if len(numbers) == 4 and all(_OCTET.fullmatch(each) and int(each) < 2**8 for each in numbers):  # noqa: PLR2004
        return text
    return host_name(text)


def parse(text: str, host: Callable[[str], str] = host_name) -> Url:
    """Take an absolute http or https URL apart, whose host is in normal form what `host` returns for it.

    Raises:
        UrlError: it is none, or one that could be read in two ways.
    """
    _check_characters(text)
    scheme, rest = _split_scheme(text)
    if (found := _AUTHORITY.match(rest)) is None or not found[1]:
        raise UrlError(f"The URL {_shown(text)} names no host: write it like https://example.org/path.")
    name, port = _authority(found[1], PORTS[scheme], host)
    target = rest[found.end() :].partition("#")[0]
    if bad := _BAD_ESCAPE.search(target):
        raise UrlError(f"The URL has {_shown(bad[0])}, which is not a percent-encoding: write a percent sign as %25.")
    return Url(scheme, name, port, target if target.startswith("/") else f"/{target}")


def join(base: Url, location: str) -> Url:
    """Return what `location`, a URL or a reference relative to `base`, leads to (RFC 3986, section 5.2).

    Raises:
        UrlError: it leads to no URL that may be used.
    """
    if location:
        _check_characters(location)
    if _SCHEME.match(location):
        return parse(location)
    if location.startswith("//"):
        return parse(f"{base.scheme}:{location}")
    reference = location.partition("#")[0]
    path, mark, query = reference.partition("?")
    base_path = base.target.partition("?")[0]
    if not path:
        target = f"{base_path}{mark}{query}" if mark else base.target
    else:
        whole = path if path.startswith("/") else base_path[: base_path.rindex("/") + 1] + path
        target = f"{_without_dots(whole)}{mark}{query}"
    return parse(f"{base.origin}{target}")


def _check_characters(text: str) -> None:
    if not text:
        raise UrlError("The URL is empty: write it like https://example.org/path.")
    if len(text) > LENGTH:
        raise UrlError(f"The URL has {len(text)} characters; at most {LENGTH} are allowed.")
    if odd := _ODD.search(text) or _UNSAFE.search(text):
        raise UrlError(
            f"The URL has the character {odd[0]!a} at position {odd.start() + 1}: "
            "percent-encode it in the path or query; a host is plain ASCII."
        )


def _split_scheme(text: str) -> tuple[str, str]:
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if found is None or scheme not in PORTS:
        what = f"the scheme {_shown(scheme)}" if found else "no scheme"
        raise UrlError(f"The URL {_shown(text)} has {what}: only https:// (and http://, where configured) can be used.")
    return scheme, text[found.end() :]


def _authority(text: str, default: int, host_of: Callable[[str], str]) -> tuple[str, int]:
    if "@" in text:
        raise UrlError("The URL has a user name (an @ before the path): leave it out, nobody is logged in anywhere.")
    if "[" in text:
        raise UrlError(f"The host {_shown(text)} is an address: use the host's name.")
    host, colon, digits = text.partition(":")
    port = int(digits) if _PORT.fullmatch(digits) else 0
    if colon and not 0 < port < 2**16:
        raise UrlError(f"The port {_shown(digits)} is not valid: leave it out, or write a number from 1 to 65535.")
    return host_of(host), port if colon else default


def _without_dots(path: str) -> str:
    """Resolve the segments "." and ".." (RFC 3986, section 5.2.4); `path` begins with a slash."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept) + ("/" if kept and segments[-1] in {".", ".."} else "")


def _shown(text: str) -> str:
    return ascii(text[:_ECHO] + ("..." if len(text) > _ECHO else ""))
