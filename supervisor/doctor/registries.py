"""Registries of packages: where each is, and whether the mirrors that `[registries]` names answer.

Rule: each is asked in a thread of its own, all within one time, while other things are checked; who has not answered
by then is said to be silent. A status is all that is read. Public registries are not asked: nobody named them here.
"""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from supervisor.categories.registries import PRESETS, Registry
from supervisor.categories.surroundings import certificates_of
from supervisor.categories.web import HostPort, WebConfig, address_port, ca_file, host_port
from supervisor.config.settings import Settings
from supervisor.doctor.table import CheckResult
from supervisor.errors import reason
from workers.url import Url, host_or_address, parse

_TIME_S: Final = 5.0
"""Seconds that all of them have."""
_LINE: Final = 1024
"""Bytes of a status line."""


class RegistryChecks:
    """Of the registries of one configuration; begins at once."""

    def __init__(self, settings: Settings) -> None:
        mirrors = settings.config.registries
        self._file = settings.config_file
        self._found: dict[str, CheckResult] = {}
        self._all = [mirrors.registry(name) for name in PRESETS]
        self._until = time.monotonic() + _TIME_S
        self._threads = [
            threading.Thread(target=self._ask, args=(settings, each), daemon=True) for each in self._all if each.url
        ]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[CheckResult]:
        """Yield a row for each mirror, and one for what is not one."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        for each in self._all:
            silent = self._result(each, f"did not answer within {_TIME_S:g} s", _REACH)
            if each.url:
                yield self._found.get(each.name, silent)
        if public := [each.name for each in self._all if not each.url]:
            detail = f"{', '.join(public)}: the public ones, as Strongroom knows them; not asked"
            yield CheckResult("registries", "ok", detail)

    def _result(self, registry: Registry, said: str, advice: str = "") -> CheckResult:
        detail = f"{registry.url} {said} ([registries] of {self._file})"
        return CheckResult(f"registry {registry.name}", "degraded" if advice else "ok", detail, advice)

    def _ask(self, settings: Settings, registry: Registry) -> None:
        began, advice = time.monotonic(), ""
        try:
            said, advice = _answer(settings, parse(f"{registry.url}/", host_or_address))
        except TimeoutError:
            return
        except ssl.SSLCertVerificationError as error:
            said = f"has a certificate that is not accepted: {error.verify_message}"
            advice = "Name a file with its authority in ca_file of [web], or write the host as the certificate has it."
        except ssl.SSLError as error:
            said = f"does not speak TLS as it should ({error.reason})"
            advice = "Write http:// where it has no TLS."
        except (OSError, UnicodeError) as error:
            said, advice = f"cannot be reached: {reason(error)}", _REACH
        taken = time.monotonic() - began
        self._found[registry.name] = self._result(registry, said if advice else f"{said} in {taken:.2f} s", advice)


def _answer(settings: Settings, url: Url) -> tuple[str, str]:
    """Return what a server says, and what to do about it.

    Raises:
        OSError: there is no connection, or none with TLS.
    """
    web = settings.config.section(WebConfig)
    instead = {host_port(name): address_port(place) for name, place in web.resolve.items()}
    place = instead.get(HostPort(url.host, url.port)) or (url.host, url.port)
    with socket.create_connection(place, _TIME_S) as plain:
        connection, how = plain, "without TLS"
        if url.scheme == "https":
            connection = _context(settings).wrap_socket(plain, server_hostname=url.host)
            how = f"over {connection.version()}"
        with connection:
            lines = (f"GET {url.target} HTTP/1.1", f"Host: {url.origin.partition('://')[2]}", "Connection: close")
            connection.sendall("\r\n".join((*lines, "User-Agent: strongroom", "", "")).encode())
            line = b""
            while b"\n" not in line and len(line) < _LINE and (more := connection.recv(_LINE)):
                line += more
    status = line.split(b"\r\n")[0].split(b" ")[1:2]
    if not line.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
        return "does not speak HTTP", "Is this the address of a registry?"
    code = int(status[0])
    if code in (401, 403, 407):
        return f"wants a name and a password (status {code})", _LOGIN
    if code >= 500:  # noqa: PLR2004 - RFC 9110, 15.6
        return f"answers {code}", "The server itself has failed: ask whoever runs it."
    return f"answers ({code}, {how})", ""


_REACH: Final = "Is it running, and reachable from here?"
_LOGIN: Final = (
    "Commands are given none. Run a caching mirror on this machine or in its network that logs in by itself, and put "
    "its address here; or have the registry let this machine in without."
)


def _context(settings: Settings) -> ssl.SSLContext:
    """Return what commands trust: the system's authorities, and those that the operator or the person names."""
    context = ssl.create_default_context()
    for file in (ca_file(settings.config, settings.locations), *certificates_of(settings.person)):
        with suppress(OSError):
            if file:
                context.load_verify_locations(file)
    return context
