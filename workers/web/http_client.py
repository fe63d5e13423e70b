"""One request and its answer, by httpcore, on a connection of the broker's.

Rule: GET, HTTP/1.1, and always the same headers: nothing of one request is in the next, no cookie, no credential, no
connection. Redirects are answers, followed by somebody else. A body is never larger than its limit, neither as it
comes nor as it is decompressed, and no step of it needs more memory than that.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import httpcore

from workers.errors import ToolError
from workers.url import Url
from workers.web.broker_client import BrokerClient
from workers.web.deadline import Deadline
from workers.web.inflate import BadBody, decoded
from workers.web.transport import PlainStream, TlsStream

BODY_LIMIT: Final = 4 * 2**20
"""Bytes of a page, decompressed."""

_HEAD_LIMIT: Final = 2**18
"""Bytes that may come before the headers of the answer have ended: the certificates too, and answers in between."""

_WIRE_LIMIT: Final = 2 * BODY_LIMIT
"""Bytes that may come for a body: sizes of chunks, trailers and TLS count as well."""

_MOST_HEADERS: Final = 256

_HEADERS: Final = (
    ("User-Agent", "strongroom"),
    ("Accept", "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.1"),
    ("Accept-Encoding", "gzip, deflate"),
    ("Connection", "close"),
)

_QUOTED: Final = 160
"""Characters of a library's complaint that a message repeats: it can quote what the server sent."""


class HttpResponse:
    """An answer whose body has not been read yet."""

    def __init__(self, url: Url, answer: httpcore.Response) -> None:
        self.url = url
        self.status = answer.status
        self._answer = answer

    def header(self, name: str) -> str:
        """Return a header, several of that name with commas between, or nothing.

        Headers are UTF-8; where one of them is not, all are Latin-1.
        """
        headers = self._answer.headers
        found = b", ".join(value for key, value in headers if key.lower() == name.encode())
        try:
            b"\n".join(key + value for key, value in headers).decode()
        except UnicodeDecodeError:
            return found.decode("latin-1")
        return found.decode()

    def start_of_body(self, enough: int) -> bytes:
        """Read and decompress as much as there is, and no more than is `enough`; nothing is wrong with it."""
        read = bytearray()
        with suppress(ToolError):
            for piece in self.pieces():
                read += piece
                if len(read) >= enough:
                    break
        return bytes(read)

    def pieces(self) -> Iterator[bytes]:
        """Read and decompress the body, piece by piece.

        Raises:
            ToolError: `too_large`, `timeout`, or `fetch_failed` for what is broken.
        """
        size = 0
        try:
            for piece in decoded(self._received(), self.header("content-encoding"), BODY_LIMIT):
                size += len(piece)
                if size > BODY_LIMIT:
                    raise too_large(self.url)
                yield piece
        except OverflowError as error:
            raise too_large(self.url) from error
        except BadBody as error:
            raise ToolError("fetch_failed", f"The answer of {self.url.host} cannot be read: {error}.") from error

    def _received(self) -> Iterator[bytes]:
        with _explained(self.url):
            yield from self._answer.iter_stream()


@contextmanager
def get(url: Url, broker: BrokerClient, context: ssl.SSLContext, deadline: Deadline) -> Iterator[HttpResponse]:
    """Ask for `url`; the answer and its connection end with the block.

    Raises:
        ToolError: no connection, no answer, or none in HTTP.
    """
    flood = ToolError("fetch_failed", f"{url.host} sent more than {_HEAD_LIMIT} bytes of headers. Fetch another page.")
    plain = PlainStream(broker.connect(url.host, url.port, deadline), deadline, _HEAD_LIMIT, flood)
    try:
        stream = TlsStream(plain, context, url.host) if url.scheme == "https" else plain
        target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
        headers = (("Host", url.origin.partition("//")[2]), *_HEADERS)
        with _explained(url):
            connection = httpcore.HTTP11Connection(target.origin, stream)
            answer = connection.handle_request(httpcore.Request("GET", target, headers=headers))
        if len(answer.headers) > _MOST_HEADERS:
            raise flood
        plain.allow(_WIRE_LIMIT, too_large(url))
        yield HttpResponse(url, answer)
    finally:
        plain.close()


@contextmanager
def _explained(url: Url) -> Iterator[None]:
    """Turn httpcore's errors into ours."""
    try:
        yield
    except (httpcore.ProtocolError, httpcore.NetworkError) as error:
        words = ascii(str(error)[:_QUOTED])[1:-1]
        what = (
            "did not answer in HTTP" if isinstance(error, httpcore.ProtocolError) else "closed the connection too early"
        )
        message = f"{url.host} {what}: {words.rstrip('.')}. Try again later, or fetch another page."
        raise ToolError("fetch_failed", message, host=url.host) from error


def too_large(url: Url) -> ToolError:
    """Return the error for a page that is over the limit."""
    return ToolError(
        "too_large", f"The page at {url.host} has more than {BODY_LIMIT} bytes. Fetch a smaller one.", limit=BODY_LIMIT
    )
