"""Images and documents in words: what they are, and what a model reads that is not shown them. Pure."""

from supervisor.display.escape import one_line
from supervisor.display.proposed_effects import size
from supervisor.journal.facts import ContentsRefused
from supervisor.journal.kept_content import KeptContent
from workers.wire.media_types import DOCUMENT, NAMES

_NAME = 200
_WORDS = 600
"""Characters of a server's words."""


def described(content: KeptContent) -> str:
    """Return what an image or a document is, in one line."""
    name = f"{one_line(content.name, _NAME)}: " if content.name else ""
    kind = NAMES.get(content.media_type, content.media_type)
    measures = f"{content.width} x {content.height} pixels" if content.width else counted_pages(content)
    told = [f"{kind}, {measures}, {size(content.size)}", *([content.note] if content.note else [])]
    return name + "; ".join(told)


def counted_pages(content: KeptContent) -> str:
    """Return how many pages a document has."""
    return f"{content.pages} page{'' if content.pages == 1 else 's'}"


def in_place(content: KeptContent, why: str, text: str = "") -> str:
    """Return what a model reads where it is not shown a content, and why not, a clause; with the text of a document."""
    what = "document" if content.media_type == DOCUMENT else "image"
    said = f"({described(content)}. The {what} itself is not shown: {why}.)"
    if text:
        return f"{said} Its text follows.\n\n{text}"
    return f"{said[:-1]} It has no text, either.)" if what == "document" and not content.text else said


def refusal_notice(fact: ContentsRefused) -> str:
    """Return what people are told of contents that a model's server does not take."""
    what = " and ".join(map(described, fact.contents))
    because = one_line(fact.because, _WORDS)
    return f"The server of {fact.model} refuses {what}. From here on this model reads words instead. It says: {because}"
