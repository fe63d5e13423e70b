"""From HTML to Markdown that reads well: markdownify on Beautiful Soup's tree.

Rule: a page is hostile, and the libraries are not made for that. So a page with too many tags does not get here at
all, work that takes too long is interrupted, and whatever goes wrong, the flat text of the page is there instead.
"""

import gc
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from bs4 import BeautifulSoup
from bs4.element import PageElement, PreformattedString, Tag
from markdownify import MarkdownConverter

from workers.libraries.alarm import within
from workers.url import Url, UrlError, join
from workers.web.html_to_flat_text import ENDS, LOOK_BACK, flat_text, tidy
from workers.web.visibility import Look, Visibility

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

_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "search", "dialog"})
_KEPT: Final = frozenset({"href", "src", "alt", "class", "start"})
"""Attributes that matter to a reader."""

_LONG_TAG: Final = re.compile(rf"<[^<>]{{{LONGEST_TAG}}}")
_LANGUAGE: Final = ("language-", "lang-", "highlight-source-")
_ADDRESSES: Final = ("href", "src")
_LIST_START: Final = re.compile("[0-9]{1,6}")


_INDENTING: Final = frozenset({"li", "dd", "blockquote"})
MOST_INDENTED: Final = 24
"""Elements within each other that indent each of their lines: a page of short lines becomes so many times larger."""


class _TooDeep(Exception):
    pass


class _Element(Tag):
    look = Look()

    def find_parent(self, name: Any = None, *rest: Any, **more: Any) -> Tag | None:
        """Return the nearest element of this name around it; the converter asks each one for a `pre`."""
        if rest or more or not isinstance(name, str):
            return super().find_parent(name, *rest, **more)
        return next((each for each in self.parents if each.name == name), None)


class _Tree(BeautifulSoup):
    """The tree of a page, which has no comments, and notes as it grows what is to be cleaned."""

    def __init__(self, page: str, seen: Visibility) -> None:
        self.seen = seen
        self.look = seen.root
        self.unseen: list[Tag] = []
        self.muted: set[int] = set()
        """Elements whose own text nobody sees."""
        self.titles: list[Tag] = []
        self.mains: list[Tag] = []
        self.noise: list[Tag] = []
        self.links: list[Tag] = []
        self.base: str | None = None
        super().__init__(page, "html.parser", element_classes={Tag: _Element}, on_duplicate_attribute="ignore")

    def object_was_parsed(self, o: PageElement, *rest: Any, **more: Any) -> None:
        """Take a text; comments, declarations and the like are dropped, and what nobody sees."""
        if isinstance(o, PreformattedString):
            return
        around = self.currentTag
        look: Look = getattr(around, "look", self.look)
        name = around.name if around is not None else ""
        if look.gone or look.shows_text or not str(o).strip() or isinstance(o, Tag) or name in _NOISE:
            super().object_was_parsed(o, *rest, **more)
        else:
            self.muted.add(id(around))

    def handle_starttag(
        self, name: str, namespace: str | None, nsprefix: str | None, attrs: Mapping[str, str], *rest: Any, **more: Any
    ) -> Tag | None:
        """End what the start of `name` ends, then begin it, with the attributes that somebody looks at."""
        if len(self.tagStack) > DEEPEST:
            raise _TooDeep
        if name in _INDENTING and sum(tag.name in _INDENTING for tag in self.tagStack) >= MOST_INDENTED:
            raise _TooDeep
        ends, within_same = ENDS.get(name, (frozenset(), frozenset()))
        for tag in self.tagStack[:-LOOK_BACK:-1] if ends else ():
            if tag.name in ends:
                self.handle_endtag(tag.name)
            if tag.name in ends or tag.name in within_same:
                break
        outer: Look = getattr(self.currentTag, "look", self.look)
        look = self.seen.look(name, attrs, outer)
        used = {key: value for key, value in attrs.items() if key in _KEPT}
        if "start" in used and not _LIST_START.fullmatch(used["start"]):
            del used["start"]
        begun = super().handle_starttag(name, namespace, nsprefix, used, *rest, **more)
        assert isinstance(begun, _Element)
        begun.look = look
        if look.gone and not outer.gone and name not in _NOISE:
            self.unseen.append(begun)
        self._note(begun, attrs)
        return begun

    def _note(self, tag: Tag, attrs: Mapping[str, str]) -> None:
        if tag.name == "base" and self.base is None:
            self.base = attrs.get("href")
        elif tag.name == "title":
            self.titles.append(tag)
        elif tag.name == "main":
            self.mains.append(tag)
        unread = attrs.get("role") in _ROLES
        if tag.name == "img":
            tiny = any(attrs.get(side, "").strip() in ("0", "1", "0px", "1px") for side in ("width", "height"))
            unread |= tiny or not attrs.get("alt") or getattr(tag, "look", self.look).hidden
        if tag.name in _NOISE or unread:
            self.noise.append(tag)
        elif not tag.attrs.keys().isdisjoint(_ADDRESSES):
            self.links.append(tag)


class _Converter(MarkdownConverter):
    class Options:
        heading_style = "atx"
        bullets = "-"
        escape_asterisks = False
        escape_underscores = False


def markdown(page: str, url: Url, seconds: float) -> tuple[str, str]:
    """Return the readable part of `page`, which came from `url`, in at most about `seconds`; and a note."""
    if len(page) > LONGEST_PAGE or page.count("<") > MOST_TAGS or _LONG_TAG.search(page):
        return flat_text(page)
    try:
        with suppress(Exception):  # whatever two libraries make of a hostile page, there is another way
            return within(seconds, lambda: _converted(page, url))
    finally:
        gc.collect()  # a tree is full of cycles, and large; an error on its way would keep it
    return flat_text(page)


def _converted(page: str, url: Url) -> tuple[str, str]:
    seen = Visibility(page)
    tree = _Tree(page, seen)
    title = _line(tree.titles[0].get_text()) if tree.titles else ""
    _clean(tree, _base(tree, url))
    body = tidy(_Converter(code_language_callback=_language).convert_soup(_main(tree)))
    if title and not body.startswith("# "):
        body = tidy(f"# {title}\n\n{body}")
    return body, seen.note


def _clean(tree: _Tree, base: Url) -> None:
    """Take out what nobody reads or sees, and make links absolute."""
    hidden = [tag for tag in tree.unseen if not tag.decomposed and tag.get_text(strip=True)]
    tree.seen.left_out = len(hidden) + len(tree.muted)
    for tag in (*tree.noise, *tree.unseen, *tree.titles):
        if not tag.decomposed:
            tag.decompose()
    for tag in tree.links:
        for name in () if tag.decomposed else _ADDRESSES:
            if name in tag.attrs and not _absolute(tag, name, base):
                del tag.attrs[name]


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


def _base(tree: _Tree, url: Url) -> Url:
    try:
        return url if tree.base is None else join(url, tree.base)
    except UrlError:
        return url


def _main(tree: _Tree) -> Tag:
    """Return the part that the page itself calls the main one; if it names none or several, all of it."""
    found = [tag for tag in tree.mains if not tag.decomposed]
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
