"""One request and its answer, by httpx, on a connection of the broker's.

Rule: GET, HTTP/1.1, and always the same headers: nothing of one request is in the next, no cookie, no credential, no
connection. Redirects are answers, followed by somebody else. A body is never larger than its limit, neither as it
comes nor as it is decompressed, and no step of it needs more memory than that.
"""

import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import httpcore
import httpx

from workers.errors import ToolError
from workers.url import Url
from workers.web.broker_client import BrokerClient
from workers.web.deadline import Deadline
from workers.web.inflate import BadBody, decoded
from workers.web.transport import Backend, Meter

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

    def __init__(self, url: Url, answer: httpx.Response) -> None:
        self.url = url
        self.status = answer.status_code
        self._answer = answer

    def header(self, name: str) -> str:
        """Return a header, several of that name with commas between, or nothing."""
        value: str = self._answer.headers.get(name, "")
        return value

    def body(self) -> bytes:
        """Read and decompress the whole body.

        Raises:
            ToolError: `too_large`, `timeout`, or `fetch_failed` for what is broken.
        """
        return b"".join(self.pieces())

    def start_of_body(self, enough: int) -> bytes:
        """Read and decompress as much as there is, and no more than is `enough`; nothing is wrong with it."""
        read = bytearray()
        try:
            for piece in self.pieces():
                read += piece
                if len(read) >= enough:
                    break
        except ToolError:
            return bytes(read)
        return bytes(read)

    def pieces(self) -> Iterator[bytes]:
        """Read and decompress the body, piece by piece; raises as `body` does."""
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
            yield from self._answer.iter_raw()


class HttpClient:
    """Makes requests, each on a connection of its own."""

    def __init__(self, context: ssl.SSLContext, broker: BrokerClient) -> None:
        self._context = context
        self._broker = broker

    @contextmanager
    def get(self, url: Url, deadline: Deadline) -> Iterator[HttpResponse]:
        """Ask for `url`; the answer and its connection end with the block.

        Raises:
            ToolError: no connection, no answer, or none in HTTP.
        """
        flood = ToolError(
            "fetch_failed", f"{url.host} sent more than {_HEAD_LIMIT} bytes of headers. Fetch another page."
        )
        meter = Meter(_HEAD_LIMIT, flood)
        backend = Backend(self._broker, deadline, meter)
        headers = (("Host", url.origin.partition("//")[2]), *_HEADERS)  # httpx would decode an xn-- name for it
        request = httpx.Request("GET", f"{url.origin}/", headers=headers, extensions={"target": url.target.encode()})
        try:
            with _Transport(self._context, backend) as transport:
                with _explained(url):
                    answer = transport.handle_request(request)
                if len(answer.headers.raw) > _MOST_HEADERS:
                    raise flood
                meter.allow(_WIRE_LIMIT, too_large(url))
                yield HttpResponse(url, answer)
        finally:
            backend.close()


class _Transport(httpx.BaseTransport):
    """An httpx transport on httpcore's pool of connections, of which it keeps none."""

    def __init__(self, context: ssl.SSLContext, backend: Backend) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=1,
            max_keepalive_connections=0,
            http1=True,
            http2=False,
            retries=0,
            network_backend=backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`, whose target goes out byte for byte as its extension says."""
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=request.extensions["target"]
                ),
                headers=request.headers.raw,
            )
        )
        assert isinstance(answer.stream, Iterable)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


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
