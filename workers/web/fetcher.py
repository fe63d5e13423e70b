"""Fetching of one page: judge the URL, connect, follow redirects, read.

Rule: every URL is judged alike, the one that a model wrote and those that servers send it on to; whether its host may
be reached is the broker's word. All of it happens before one deadline.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from workers.errors import ToolError
from workers.tool import ResultWithNote
from workers.url import Url, UrlError, join, parse
from workers.web.broker_client import BrokerClient
from workers.web.content import piece_of, readable
from workers.web.deadline import Deadline
from workers.web.http_client import HttpResponse, get
from workers.web.kept_texts import KeptTexts

MOST_REDIRECTS: Final = 5
MOST_CHARACTERS: Final = 50_000
"""Of a text, in one answer."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SUCCESS: Final = range(200, 300)
_EMPTY: Final = frozenset({204, 205})
_ERROR_BYTES: Final = 2**16
"""Of an error's page, to quote from."""

_SHOWN: Final = 200
"""Characters of a URL that a server chose, in a note or an error."""

_SHARE: Final = 0.5
"""Of the time that is left, for Markdown: the rest is enough for flat text."""


class _Page(NamedTuple):
    url: Url
    text: str
    hops: int
    note: str = ""


class Fetcher:
    """Fetches pages, one at a time: each in `seconds`, and within `of_call` from when its call was made."""

    def __init__(
        self, context: ssl.SSLContext, broker: BrokerClient, seconds: float, of_call: float, *, http: bool
    ) -> None:
        self._context = context
        self._broker = broker
        self._seconds = seconds
        self._of_call = of_call
        self._http = http
        self._texts = KeptTexts()

    def fetch(self, address: str, offset: int, queued_s: float) -> ResultWithNote:
        """Return the text at `address` from character `offset` on, and a note on where it came from.

        `queued_s` seconds of its call's time have gone by.

        Raises:
            ToolError: the address is none, its host or port is not allowed, or there is no text to be had.
        """
        try:
            url = parse(address)
        except UrlError as error:
            raise ToolError("invalid_arguments", str(error)) from error
        self._refuse_plain(url, "")
        seconds = max(0, min(self._seconds, self._of_call - queued_s))
        return _cut(self._follow(url, Deadline(seconds)), offset)

    def _follow(self, url: Url, deadline: Deadline) -> _Page:
        seen = [url]
        while True:
            with _told_of(seen), get(seen[-1], self._broker, self._context, deadline) as response:
                if response.status not in _REDIRECTS or not response.header("location"):
                    return self._page(response, len(seen) - 1, deadline)
                target = self._next(response)
            if target in seen:
                message = f"{url} redirects in a circle: {target} comes again. Fetch another page."
                raise ToolError("fetch_failed", message)
            if len(seen) > MOST_REDIRECTS:
                message = f"{url} redirects more than {MOST_REDIRECTS} times. Fetch {target} if that is what you want."
                raise ToolError("fetch_failed", message)
            seen.append(target)

    def _page(self, response: HttpResponse, hops: int, deadline: Deadline) -> _Page:
        if response.status not in _SUCCESS:
            kind = response.header("content-type")
            words = piece_of(response.start_of_body(_ERROR_BYTES), kind)
            said = f": {words}" if words else ""
            message = f"{response.url} answered with the status {response.status}{said}"
            raise ToolError("fetch_failed", message, status=response.status)
        if response.status in _EMPTY:
            return _Page(response.url, "", hops, f"the page is empty (status {response.status})")
        data = b"".join(response.pieces())
        url, kind = response.url, response.header("content-type")
        text, note = self._texts.text_of(data, kind, url, lambda: readable(data, kind, url, deadline.left() * _SHARE))
        notes = ["" if text.strip() else "the page has no text", note]
        return _Page(url, text, hops, "; ".join(each for each in notes if each))

    def _next(self, response: HttpResponse) -> Url:
        """Return where a redirect leads, if a URL that somebody wrote could lead there."""
        whence = f"{response.url} redirects there"
        try:
            target = join(response.url, response.header("location"))
        except UrlError as error:
            message = f"Domain not allowed: {response.url} redirects to an address that is not followed. {error}"
            raise ToolError("domain_not_allowed", message) from error
        self._refuse_plain(target, f" ({whence})")
        return target

    def _refuse_plain(self, url: Url, whence: str) -> None:
        if url.scheme == "http" and not self._http:
            message = f"Domain not allowed: {url} is without TLS{whence}. Use https, or another page."
            raise ToolError("domain_not_allowed", message, url=str(url))


@contextmanager
def _told_of(seen: list[Url]) -> Iterator[None]:
    """Say in an error that it was a redirect that led there."""
    try:
        yield
    except ToolError as error:
        if len(seen) == 1:
            raise
        message = f"{error.message} ({_shown(seen[0])} redirected to {_shown(seen[-1])}.)"
        raise ToolError(error.kind, message, **error.details) from error


def _shown(url: Url) -> str:
    text = str(url)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _cut(page: _Page, offset: int) -> ResultWithNote:
    total = len(page.text)
    if offset and offset >= total:
        message = f"The text has {total} characters, so none after {offset}. Use a smaller offset."
        raise ToolError("invalid_arguments", message, offset=offset, characters=total)
    end = min(offset + MOST_CHARACTERS, total)
    notes = [page.note]
    if page.hops:
        notes.append(f"redirected to {_shown(page.url)}")
    if offset or end < total:
        more = f"; call again with offset={end}" if end < total else ", the end"
        notes.append(f"characters {offset + 1} to {end} of {total}{more}")
    return ResultWithNote(page.text[offset:end], "; ".join(note for note in notes if note))
