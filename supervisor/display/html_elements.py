"""Elements of an HTML page that nothing within can leave, and whose text hides nothing. Pure.

Rule: whatever is put into an element and is no `Html` is text. Nothing on a page runs or is fetched: an address is a
link of `https` or `mailto`, or the bytes of an image.
"""

import binascii
import re
from collections.abc import Iterable
from html import escape
from typing import Final

from supervisor.display.escape import visible
from supervisor.display.fragments import Fragments

_EMPTY: Final = frozenset({"br", "hr", "img", "meta"})
_LINK: Final = re.compile(r"https://[!-~]+|mailto:[!-~]+", re.IGNORECASE)
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class Html(str):
    """What stands in a page as it is."""

    __slots__ = ()


def element(tag: str, /, *inside: str, **attributes: str | float) -> Html:
    """Return an element; `class_` is the attribute `class`. What is within and is no `Html` is text."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{tag}{given}>") if tag in _EMPTY else Html(f"<{tag}{given}>{joined(inside)}</{tag}>")


def joined(parts: Iterable[str]) -> Html:
    """Return parts one after the other, as `element` takes them."""
    return Html("".join(each if isinstance(each, Html) else text(each) for each in parts))


def text(given: str) -> Html:
    """Return a text: every character of it is seen, and none is markup."""
    return Html(escape(visible(given, prose=True)))


def style(rules: str) -> Html:
    """Return rules of our own for a page's looks."""
    return Html(f"<style>{rules}</style>")


def link(address: str, *inside: str) -> Html:
    """Return a link, where the address may be one; where not, only what is within."""
    if _LINK.fullmatch(address):
        return element("a", *inside, href=address, rel="noreferrer noopener")
    return joined(inside)


def picture(media_type: str, content: bytes, about: str) -> Html:
    """Return an image; nothing where it is of no type that is only pixels."""
    if media_type not in _PICTURES:
        return Html("")
    data = binascii.b2a_base64(content, newline=False).decode()
    return element("img", src=f"data:{media_type};base64,{data}", alt=visible(about), loading="lazy")


def toned(lines: Iterable[Fragments]) -> Html:
    """Return lines in pieces; a piece's tones are its classes."""
    return joined(
        joined([*(element("span", part, class_=tone) if tone else part for tone, part in line), Html("\n")])
        for line in lines
    )
