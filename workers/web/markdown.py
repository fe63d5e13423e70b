"""From HTML to Markdown that reads well: markdownify on Beautiful Soup's tree.

Rule: a page is hostile, and the libraries are not made for that. So a page with too many tags does not get here at
all, work that takes too long is interrupted, and whatever goes wrong, the flat text of the page is there instead.
"""

import gc
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from bs4 import BeautifulSoup
from bs4.element import PreformattedString, Tag
from markdownify import MarkdownConverter

from workers.url import Url, UrlError, join
from workers.web.deadline import TooSlow, within
from workers.web.plain_text import flat_text, tidy

MOST_TAGS: Final = 40_000
LONGEST_PAGE: Final = 2 * 2**20
LONGEST_TAG: Final = 2**16
DEEPEST: Final = 200
"""Above any of these a page becomes flat text: its tree would take too much memory, or too many frames to walk."""

_NOISE_NAMES: Final = (
    "script style template svg canvas iframe object embed audio video nav footer button input select "
    "textarea dialog link meta"
)
_NOISE: Final = frozenset(_NOISE_NAMES.split())
"""Elements that nobody reads."""

_HIDING: Final = frozenset({"hidden", "aria-hidden", "role"})
_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "search", "dialog"})
_KEPT: Final = frozenset({"href", "src", "alt", "class", "start"})
"""Attributes that matter to a reader."""

_LONG_TAG: Final = re.compile(rf"<[^<>]{{{LONGEST_TAG}}}")
_LANGUAGE: Final = ("language-", "lang-", "highlight-source-")
_LONGEST_START: Final = 6
"""Digits of a list's first number."""


_CELL: Final = (frozenset({"td", "th"}), frozenset({"tr", "table"}))
_TERM: Final = (frozenset({"dt", "dd"}), frozenset({"dl"}))
_ENDS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = MappingProxyType(
    {
        "li": (frozenset({"li"}), frozenset({"ul", "ol", "menu"})),
        "td": _CELL,
        "th": _CELL,
        "tr": (frozenset({"tr"}), frozenset({"table", "thead", "tbody", "tfoot"})),
        "dt": _TERM,
        "dd": _TERM,
        "p": (frozenset({"p"}), frozenset({"div", "li", "td", "th", "dd", "blockquote", "section", "article", "main"})),
    }
)
"""Whose start ends which element that is still open, if it stands within the same of others: end tags that HTML lets
its authors leave out, and that Python's parser misses."""

_LOOK_BACK: Final = 16

_INDENTING: Final = frozenset({"li", "dd", "blockquote"})
MOST_INDENTED: Final = 24
"""Elements within each other that indent each of their lines: a page of short lines becomes so many times larger."""


class _TooDeep(Exception):
    pass


class _Tree(BeautifulSoup):
    def handle_starttag(
        self, name: str, namespace: str | None, nsprefix: str | None, attrs: Mapping[str, str], *rest: Any, **more: Any
    ) -> Tag | None:
        """End what the start of `name` ends, then begin it, with the attributes that somebody looks at."""
        if len(self.tagStack) > DEEPEST:
            raise _TooDeep
        if name in _INDENTING and sum(tag.name in _INDENTING for tag in self.tagStack) >= MOST_INDENTED:
            raise _TooDeep
        used = {key: value for key, value in attrs.items() if key in _KEPT or key in _HIDING}
        ends, within_same = _ENDS.get(name, (frozenset(), frozenset()))
        for tag in self.tagStack[:-_LOOK_BACK:-1] if ends else ():
            if tag.name in ends:
                self.handle_endtag(tag.name)
            if tag.name in ends or tag.name in within_same:
                break
        return super().handle_starttag(name, namespace, nsprefix, used, *rest, **more)


class _Converter(MarkdownConverter):
    class Options:
        heading_style = "atx"
        bullets = "-"
        escape_asterisks = False
        escape_underscores = False


def markdown(page: str, url: Url, seconds: float) -> str:
    """Return the readable part of `page`, which came from `url`, in at most about `seconds`."""
    if len(page) > LONGEST_PAGE or page.count("<") > MOST_TAGS or _LONG_TAG.search(page):
        return flat_text(page)
    try:
        return within(seconds, lambda: _converted(page, url))
    except (TooSlow, _TooDeep, MemoryError, RecursionError):
        pass
    except Exception:  # noqa: BLE001, S110 - whatever two libraries make of a hostile page, there is another way
        pass
    finally:
        gc.collect()  # a tree is full of cycles, and large
    return flat_text(page)


def _converted(page: str, url: Url) -> str:
    tree = _Tree(page, "html.parser")
    title = _line(tree.title.get_text()) if tree.title else ""
    base = _base(tree, url)
    _clean(tree, base)
    body = tidy(_Converter(code_language_callback=_language).convert_soup(_main(tree)))
    if not title or body.startswith("# "):
        return body
    return tidy(f"# {title}\n\n{body}")


def _clean(tree: BeautifulSoup, base: Url) -> None:
    """Take out what nobody reads, and make links absolute."""
    for text in tree.find_all(string=True):
        if isinstance(text, PreformattedString):
            text.extract()
    for tag in tree.find_all(True):
        if tag.decomposed:
            continue
        hidden = "hidden" in tag.attrs or tag.get("aria-hidden") == "true" or tag.get("role") in _ROLES
        if tag.name in _NOISE or tag.name == "title" or hidden or (tag.name == "img" and not tag.get("alt")):
            tag.decompose()
            continue
        tag.attrs = {name: value for name, value in tag.attrs.items() if name in _KEPT}
        for name in ("href", "src"):
            if name in tag.attrs and not _absolute(tag, name, base):
                del tag.attrs[name]
        start = str(tag.attrs.get("start", ""))
        if not (start.isascii() and start.isdigit() and len(start) <= _LONGEST_START):
            tag.attrs.pop("start", None)


def _absolute(tag: Tag, name: str, base: Url) -> bool:
    """Make an address absolute; say whether it leads anywhere."""
    address = str(tag.attrs[name]).strip()
    if address.startswith("#"):
        return False
    try:
        found = join(base, address)
    except UrlError:
        return False
    _, mark, fragment = address.partition("#")
    tag.attrs[name] = f"{found}{mark}{fragment}"
    return True


def _base(tree: BeautifulSoup, url: Url) -> Url:
    named = tree.find("base", href=True)
    try:
        return join(url, str(named["href"])) if isinstance(named, Tag) else url
    except UrlError:
        return url


def _main(tree: BeautifulSoup) -> Tag:
    """Return the part that the page itself calls the main one; if it names none or several, all of it."""
    found = tree.find_all("main") or tree.find_all(role="main")
    return found[0] if len(found) == 1 and found[0].get_text(strip=True) else tree


def _language(code: Tag) -> str:
    """Return the language of a `pre`, if its class or that of its `code` names one."""
    inner = code.find("code")
    for tag in (inner, code):
        classes = tag.get("class") if isinstance(tag, Tag) else None
        for name in classes or ():
            for prefix in _LANGUAGE:
                if name.startswith(prefix) and name[len(prefix) :].isalnum():
                    return str(name[len(prefix) :])
    return ""


def _line(text: str) -> str:
    return " ".join(text.split())
