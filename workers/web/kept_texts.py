"""The last texts that pages were converted to, so that reading on does not convert a page again.

Rule: a text is kept under a digest of all that it was made of. So a page is asked for each time, and what has changed
meanwhile is converted anew.
"""

import hashlib
import sys
from collections.abc import Callable
from typing import Final

from workers.url import Url

BYTES: Final = 8 * 2**20
TEXTS: Final = 16
"""Texts that are kept, at most, and what they take in memory."""


class KeptTexts:
    """Keeps those that were wanted last."""

    def __init__(self) -> None:
        self._texts: dict[bytes, tuple[str, str]] = {}

    def text_of(
        self, data: bytes, content_type: str, url: Url, convert: Callable[[], tuple[str, str]]
    ) -> tuple[str, str]:
        """Return what `convert` makes, or made, of a body of this type at this URL: a text, and a note."""
        key = hashlib.sha256(repr((str(url), content_type)).encode() + data).digest()
        text = self._texts.pop(key, None)
        if text is None:
            text = convert()
        self._texts[key] = text
        while len(self._texts) > TEXTS or sum(sys.getsizeof(each) for each, _ in self._texts.values()) > BYTES:
            del self._texts[next(iter(self._texts))]
        return text
