"""A model's server, and the way to it: its address, and the operator's proxy and certificates.

Rule: of the environment nothing counts but the address and the key. A name and a password in an address go into a
header, and into nothing that is shown, logged or raised.
"""

import base64
import re
import ssl
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from supervisor.agent.models.retry import WHOLE_SECRET
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_SCHEMES: Final = {"http", "https"}
_VERSION: Final = re.compile(r"v\d\w*")
NO_KEY: Final = "no-key-given"
"""Stands for a key where none is set: servers of one's own often need none."""


class Server(NamedTuple):
    """One server; use `server_at`."""

    url: str
    """Its address without a name and a password."""
    shown: str
    """The part of it that may be shown: no path and no query either."""
    authorization: str
    """The header that says name and password; "" where there are none."""
    proxy: str
    """The URL of the proxy that every request goes through; "" for none."""
    ca_file: str
    """Certificates that are trusted besides the system's; "" for none."""
    secrets: tuple[str, ...]
    """What no text may hold."""


def server_at(base_url: str, proxy: str = "", ca_file: str = "") -> Server:
    """Take an address apart.

    Raises:
        ConfigError: it is none.
    """
    try:
        parts = urlsplit(base_url)
        _ = parts.port  # raises for a number that is no port
    except ValueError:  # whose text may be a piece of a password
        raise ConfigError("The base URL is not a URL: it must look like https://host or http://host:port.") from None
    if parts.scheme not in _SCHEMES or not parts.hostname or not base_url.isprintable() or " " in base_url:
        raise ConfigError("The base URL must look like https://host or http://host:port.")
    place = parts.netloc.rpartition("@")[2]
    url = parts._replace(netloc=place).geturl()
    secrets = (*secrets_in(base_url), *secrets_in(proxy))
    return Server(url, f"{parts.scheme}://{place}", basic(base_url), proxy, ca_file, secrets)


def below(url: str, path: str) -> str:
    """Return the address of a path below another, whose query stays at the end, behind that of the path.

    The version of an API that both of them have stands there once.
    """
    parts = urlsplit(url)
    path, _, query = path.partition("?")
    query = "&".join(filter(None, (query, parts.query)))
    base, version = parts.path.rstrip("/"), path.partition("/")[0]
    if _VERSION.fullmatch(version) and base.endswith(f"/{version}"):
        base = base.removesuffix(f"/{version}")
    return parts._replace(path=f"{base}/{path}", query=query).geturl()


def basic(url: str) -> str:
    """Return the header's value for the name and the password in a URL (RFC 7617); "" where it has none."""
    user, there, _ = urlsplit(url).netloc.rpartition("@")
    return f"Basic {base64.b64encode(unquote(user).encode()).decode()}" if there else ""


def secrets_in(url: str) -> tuple[str, ...]:
    """Return the forms in which the name and the password of a URL, and its query, could turn up, the longest first."""
    try:
        parts = urlsplit(url)
    except ValueError:  # nothing is known of it, but that it is of no use
        return (url,)
    user, there, _ = parts.netloc.rpartition("@")
    password = user.partition(":")[2] or user
    forms = {user, unquote(user), password, unquote(password), basic(url).removeprefix("Basic ")} if there else set()
    long = (value for _, value in parse_qsl(parts.query) if len(value) >= WHOLE_SECRET)
    query = {form for value in long for form in (value, quote(value, safe=""))}
    return tuple(sorted((forms | query) - {""}, key=len, reverse=True))


def configured(settings: Settings, ca_file: str | None = None) -> tuple[str, str]:
    """Return the proxy, and the path of the certificates, that the operator has configured; "" for none.

    `ca_file` is a provider's own, which goes before that of all.
    """
    network = settings.config.network
    ca_file = ca_file or network.ca_file
    if ca_file is None:
        return network.proxy or "", ""
    from supervisor.categories.web import certificates

    return network.proxy or "", certificates(ca_file, settings.config_file)


def tls(server: Server) -> ssl.SSLContext:
    """Return whom we trust: the system's authorities, as OpenSSL was built, and those of a file.

    Nobody, where TLS is spoken to nobody: to load them takes 13 ms of a processor.
    Not `create_default_context`, which obeys SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE.

    Raises:
        OSError: the file cannot be read, or holds none.
    """
    import os

    import certifi

    context, paths = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.get_default_verify_paths()
    if server.url.startswith("http://") and not (server.proxy or server.ca_file):
        return context
    file = paths.openssl_cafile if os.path.isfile(paths.openssl_cafile) else certifi.where()
    context.load_verify_locations(file, paths.openssl_capath if os.path.isdir(paths.openssl_capath) else None)
    if server.ca_file:
        context.load_verify_locations(server.ca_file)
    return context
