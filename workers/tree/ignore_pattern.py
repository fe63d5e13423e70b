r"""Patterns of gitignore(5), one line each, as git reads them byte by byte.

Rule: pure. A line becomes one regular expression, in which what stands between two stars, or two `**`, keeps the
leftmost place that it finds, which is as good as any other: hostile patterns cost no more than others. `**` counts
where git has it: behind a slash, at the beginning, and where no special character stands before it (`a**/b`).
Source: dir.c and wildmatch.c of git.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_SPECIAL: Final = frozenset(b"*?[\\")
_CLASSES: Final = {
    b"alnum": b"0-9A-Za-z",
    b"alpha": b"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": b"0-9",
    b"graph": b"!-~",
    b"lower": b"a-z",
    b"print": b" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t-\r",
    b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}

_STAR: Final = b"*"
_DIRECTORIES: Final = b"**/"
_ANYTHING: Final = b"**"


class IgnorePattern(NamedTuple):
    """One line that says something."""

    regex: re.Pattern[bytes]
    negated: bool
    only_directories: bool
    by_name: bool
    """It is about a name at any depth; else about a path from where the file lies."""


class _NeverMatches(Exception):
    """Git has no meaning for it."""


def patterns_of(data: bytes) -> list[IgnorePattern]:
    """Return the patterns of a file, the last one first: that is the order in which they count."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = [each for line in lines if (each := _pattern(line.removesuffix(b"\r"))) is not None]
    return found[::-1]


def _pattern(line: bytes) -> IgnorePattern | None:
    text = _trimmed(line.partition(b"\0")[0])
    if not text or text.startswith(b"#"):
        return None
    negated = text.startswith(b"!")
    text = text[negated:]
    only_directories = text.endswith(b"/")
    text = text[: len(text) - only_directories]
    by_name = b"/" not in text
    if not by_name:
        text = text.removeprefix(b"/")
    try:
        regex = re.compile(_regex(text, paths=not by_name), re.DOTALL)
    except _NeverMatches:
        return None
    return IgnorePattern(regex, negated, only_directories, by_name)


def _trimmed(line: bytes) -> bytes:
    """Return a line without the blanks at its end, unless a backslash stands before one."""
    end, at = 0, 0
    while at < len(line):
        at += 2 if line[at : at + 1] == b"\\" else 1
        if line[at - 1 : at] != b" " or line[at - 2 : at - 1] == b"\\":
            end = at
    return line[:end] if end <= len(line) else line


def _regex(text: bytes, *, paths: bool) -> bytes:
    """Return a pattern as a regular expression for the whole of what it is about."""
    lead, chunk, parts = b"", list[bytes](), list[bytes]()
    for token in _tokens(text, paths=paths):
        if token in (_DIRECTORIES, _ANYTHING):
            parts.append(_chunk(lead, chunk, last=False))
            lead, chunk = token, []
        else:
            chunk.append(token)
    return b"".join(parts) + _chunk(lead, chunk, last=True) + rb"\Z"


def _chunk(lead: bytes, tokens: list[bytes], *, last: bool) -> bytes:
    """Return what stands between two `**`, which may lie anywhere behind the first of them."""
    pieces = [b""]
    for token in tokens:
        if token == _STAR:
            pieces.append(b"")
        else:
            pieces[-1] += token
    first, *others = pieces
    *middle, end = others or [b""]
    text = first + b"".join(b"(?>[^/]*?%s)" % piece for piece in middle if piece)
    text += (b"[^/]*%s" if last else b"(?>[^/]*?%s)") % end if others else b""
    if not lead:
        return text
    anywhere = b"(?:.*?/)??" if lead == _DIRECTORIES else b".*?"
    return anywhere + text if last else b"(?>%s%s)" % (anywhere, text)


def _tokens(text: bytes, *, paths: bool) -> Iterator[bytes]:
    """Yield stars, and regular expressions for one byte each.

    Raises:
        _NeverMatches: it has no meaning.
    """
    at, literal = 0, next((at for at, byte in enumerate(text) if byte in _SPECIAL), len(text))
    while at < len(text):
        char = text[at : at + 1]
        if char == b"*":
            begin = at
            while text[at : at + 1] == b"*":
                at += 1
            placed = at - begin > 1 and paths and (begin == literal or text[begin - 1 : begin] == b"/")
            if placed and text[at : at + 1] == b"/":
                at += 1
                yield _DIRECTORIES
            else:
                yield _ANYTHING if placed and text[at:][:2] in (b"", b"\\/") else _STAR
        elif char == b"[":
            members, at = _class(text, at + 1)
            yield members
        else:
            at += char == b"\\"
            if at == len(text):
                raise _NeverMatches
            yield b"[^/]" if char == b"?" else re.escape(text[at : at + 1])
            at += 1


def _class(text: bytes, at: int) -> tuple[bytes, int]:
    """Return a set of bytes, of which no slash is one, and where it ends; raises like `_tokens`."""
    negated = text[at : at + 1] in (b"!", b"^")
    at += negated
    members, before, first = b"", -1, True
    while first or text[at : at + 1] != b"]":
        first = False
        char = text[at : at + 1]
        if char == b"[" and text[at + 1 : at + 2] == b":":
            end = text.find(b"]", at + 2)
            if end < 0:
                raise _NeverMatches
            if end - 1 >= at + 2 and text[end - 1 : end] == b":":
                name = text[at + 2 : end - 1]
                if name not in _CLASSES:
                    raise _NeverMatches
                members, before, at = members + _CLASSES[name], -1, end + 1
                continue
        elif char == b"-" and before >= 0 and text[at + 1 : at + 2] not in (b"", b"]"):
            at += 1 + (text[at + 1 : at + 2] == b"\\")
            char = text[at : at + 1]
            if not char:
                raise _NeverMatches
            members += b"".join(re.escape(bytes([each])) for each in range(before, char[0] + 1))
            before, at = -1, at + 1
            continue
        elif char == b"\\":
            at += 1
            char = text[at : at + 1]
        if not char:
            raise _NeverMatches
        members, before, at = members + re.escape(char), char[0], at + 1
    outside = b"" if negated or members else b"(?!)"
    return outside or (b"[^/%s]" % members if negated else b"(?!/)[%s]" % members), at + 1
