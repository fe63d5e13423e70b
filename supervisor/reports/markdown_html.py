"""Markdown as elements of a page; this is the only module that imports markdown-it, on which rich stands.

Rule: HTML in it is text, a picture is the text that it is written as, and a link shows where it leads.
"""

from collections.abc import Iterable
from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from supervisor.display.html_elements import Html, element, joined, link

_LONGEST: Final = 200_000
"""Characters above which a text is shown as it is."""
_TAGS: Final = frozenset(
    {*("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "em", "strong", "s")}
    | {"table", "thead", "tbody", "tr", "th", "td"}
)


def markdown_html(text: str) -> Html:
    """Return a text of Markdown."""
    if len(text) > _LONGEST:
        return element("pre", text)
    return _rendered(_parser().parse(text))


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _rendered(tokens: Iterable[Token]) -> Html:
    """Return what tokens say; each that opens something is closed in its turn, as the parser promises."""
    within: list[tuple[Token | None, list[str]]] = [(None, [])]
    for token in tokens:
        if token.nesting > 0:
            within.append((token, []))
            continue
        done = _leaf(token)
        if token.nesting < 0:
            opened, inside = within.pop()
            done = _closed(opened or token, inside)
        within[-1][1].append(done)
    return joined(within[0][1])


def _closed(opened: Token, inside: Iterable[str]) -> Html:
    if opened.type == "link_open":
        address = str(opened.attrs.get("href", ""))
        shown = joined(inside)
        return joined([link(address, shown), *([] if shown == address else [element("small", f" ({address})")])])
    return element(opened.tag, *inside) if opened.tag in _TAGS and not opened.hidden else joined(inside)


def _leaf(token: Token) -> Html:
    content = [token.content]
    match token.type:
        case "inline":
            return _rendered(token.children or ())
        case "fence" | "code_block":
            content = [element("pre", element("code", token.content))]
        case "code_inline":
            content = [element("code", token.content)]
        case "hr" | "hardbreak":
            content = [element(token.tag)]
        case "softbreak":
            content = ["\n"]
        case "image":
            content = [f"![{token.content}]({token.attrs.get('src', '')})"]
    return joined(content)
