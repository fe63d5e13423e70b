"""Documents: PDF, checked and read by pypdf.

Rule: a model that takes documents is given the file as it is, so one that is damaged or encrypted is refused here: a
server would refuse every request with it in the history. The text is for models that take none; it ends where time or
room does, and says so.
"""

from io import BytesIO
from typing import Final

from pypdf import PdfReader

from workers.errors import ToolError
from workers.libraries.alarm import TooSlow, within
from workers.tool import ContentResult
from workers.wire.media_types import DOCUMENT

TEXT_LIMIT: Final = 2**18
"""Bytes of text that are kept of a document."""
_FOR_TEXT: Final = 0.6
"""Of the time, for the text."""
_UNREAD: Final = "(The text of this page cannot be read.)"


def examined(content: bytes, seconds: float) -> ContentResult:
    """Return a document's text, with the number of its pages.

    Raises:
        ToolError: `not_text`, it is encrypted, or has no page.
        TooSlow: its pages could not be counted in time.
        Exception: the content is damaged.
    """
    reader, pages = within(seconds * (1 - _FOR_TEXT), lambda: _opened(content))
    found: list[str] = []
    try:
        why = within(seconds * _FOR_TEXT, lambda: _read(reader, pages, found))
    except TooSlow:
        why = "took too long"
    left = f"\n\n(Only the text of the first {len(found)} of {pages} pages: the rest {why}.)" if why else ""
    text = "\n\n".join(f"[Page {number}]\n{page}" for number, page in enumerate(found, 1)) + left
    said = any(page.strip() and page != _UNREAD for page in found)
    value = {"media_type": DOCUMENT, "pages": pages, "note": "" if said else "it has no text"}
    return ContentResult(value, text.encode("utf-8", "replace") if said else b"")


def _opened(content: bytes) -> tuple[PdfReader, int]:
    reader = PdfReader(BytesIO(content))
    if reader.is_encrypted:
        raise ToolError("not_text", "This PDF document is encrypted. Use a copy without a password.")
    pages = len(reader.pages)
    if not pages:
        raise ToolError("not_text", "This PDF document has no page.")
    return reader, pages


def _read(reader: PdfReader, pages: int, found: list[str]) -> str:
    """Read pages into `found`; return why not all of them were read, a clause, or "" where they were."""
    left = TEXT_LIMIT
    for number in range(pages):
        try:
            text = reader.pages[number].extract_text().strip()
        except (MemoryError, TooSlow):
            raise
        except Exception:  # noqa: BLE001 - a library's, about one page; the others may be whole
            text = _UNREAD
        left -= len(text)
        if left < 0:
            return "is left out"
        found.append(text)
    return ""


def sample() -> bytes:
    """Return a small document with a line of text."""
    words = b"BT /F1 12 Tf 9 9 Td (Ready.) Tj ET"
    bodies = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(words), words),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    file, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(bodies, 1):
        places.append(len(file))
        file += b"%d 0 obj%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    ends = b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(file) + ends % (table, len(file))
