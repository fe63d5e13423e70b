"""The network as httpcore sees it: connections that the broker made, read and written by two system calls.

Rule: every wait has the deadline of the whole fetch, and every byte that arrives is counted, whatever it turns out to
be: headers, chunk sizes, trailers, padding. TLS runs over memory, so a connection needs nothing but read, write and
poll, and it is verified for the name that was asked for. What a stream raises besides httpcore's own is a `ToolError`.
"""

import os
import select
import ssl
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

import httpcore

from workers.errors import ToolError
from workers.web.broker_client import wait
from workers.web.deadline import Deadline

_CHUNK: Final = 2**16
_RECORD: Final = 2**14
"""Bytes of one write: no more than a socket takes at once."""

_T = TypeVar("_T")

_WHY: Final[Mapping[int, str]] = MappingProxyType(
    {
        9: "is not valid yet",
        10: "has expired",
        18: "is signed by itself",
        19: "is signed by an authority that is not trusted",
        20: "is signed by an authority that is not trusted",
        21: "is signed by an authority that is not trusted",
        62: "is for another name",
        64: "is for another name",
    }
)
"""X509_V_ERR_* of openssl/x509_vfy.h, for people."""


class PlainStream(httpcore.NetworkStream):
    """One connection as it came. Owns its descriptor, which may block or not."""

    def __init__(self, descriptor: int, deadline: Deadline, allowed: int, excess: ToolError) -> None:
        self._descriptor = descriptor
        self._deadline = deadline
        self.allow(allowed, excess)

    def allow(self, allowed: int, excess: ToolError) -> None:
        """Count anew what arrives: after `allowed` bytes from here on `excess` is raised."""
        self._left = allowed
        self._excess = excess

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Return what is there, at least a byte; nothing at the end."""
        while True:
            wait(self._descriptor, select.POLLIN, self._deadline)
            try:
                data = os.read(self._descriptor, max_bytes)
            except BlockingIOError:
                continue
            except OSError as error:
                raise httpcore.ReadError(os.strerror(error.errno or 0)) from error
            self._left -= len(data)
            if self._left < 0:
                raise self._excess
            return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        rest = memoryview(buffer)
        while rest:
            wait(self._descriptor, select.POLLOUT, self._deadline)
            try:
                rest = rest[os.write(self._descriptor, rest[:_RECORD]) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise httpcore.WriteError(os.strerror(error.errno or 0)) from error

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class TlsStream(httpcore.NetworkStream):
    """A connection within TLS, its other end proven to be `name`.

    Raises:
        ToolError: `fetch_failed`, it is not; the message says why.
    """

    def __init__(self, plain: PlainStream, context: ssl.SSLContext, name: str) -> None:
        self._plain = plain
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        try:
            self._run(self._tls.do_handshake)
        except ssl.SSLError as error:
            raise ToolError("fetch_failed", f"No secure connection to {name}: {_why(error)}.", host=name) from error
        except (httpcore.ReadError, httpcore.WriteError) as error:
            message = f"No secure connection to {name}: the connection ended ({error})."
            raise ToolError("fetch_failed", message, host=name) from error

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        try:
            return self._run(lambda: self._tls.read(max_bytes))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""
        except ssl.SSLError as error:
            raise httpcore.ReadError(_why(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        rest = memoryview(buffer)
        try:
            while rest:
                rest = rest[self._run(lambda: self._tls.write(rest)) :]  # noqa: B023 - it runs at once
        except ssl.SSLError as error:
            raise httpcore.WriteError(_why(error)) from error

    def close(self) -> None:
        self._plain.close()

    def _run(self, step: Callable[[], _T]) -> _T:
        """Repeat a step of TLS until it needs no more bytes; what it wants sent is sent."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._flush()
                if data := self._plain.read(_CHUNK):
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                self._flush()
                return result

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._plain.write(self._outgoing.read())


def _why(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _WHY.get(error.verify_code)
        return f"its certificate {known}" if known else f"its certificate is refused ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError):
        return "it ended the connection"
    return f"TLS failed ({(error.reason or 'unknown').replace('_', ' ').lower()})"
