"""Quotations in a reply, and what in it is meant as a call though it is written as none.

Rule: pure, line by line. Within an element of HTML, a comment, code in a sentence, a thought or what claims to be a
result, nothing is a call. Another's form of a call, or what looks like one where it is not clear whether it is quoted,
is a sign: it never runs, and a reply that has no call but a sign is corrected.
"""

import re
from collections.abc import Collection
from functools import cache
from typing import Final

_ELEMENTS: Final = (
    "pre|code|blockquote|samp|kbd|xmp|listing|script|style|textarea|think(?:ing)?|thoughts?|reasoning|reflection"
    "|examples?|quote|tool_(?:results?|response|output)|function_(?:results?|response|output)"
)
_OPENING: Final = re.compile(
    r"(?P<ticks>`+)|<!--|<!\[CDATA\[|^ {0,3}\[result (?P<mark>\w+) of "
    rf"|<(?P<element>{_ELEMENTS})(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_ENDS: Final = {"<!--": "-->", "<![cdata[": "]]>"}
_THOUGHT_BEFORE: Final = re.compile(r"[ \t]*</think(?:ing)?>", re.IGNORECASE)
"""The end of a thought that began in the prompt, as some templates have it."""
_QUOTED_LINE: Final = re.compile(r" {0,3}>")
_LIKE_CALL: Final = re.compile(r"[ \t]*(?:\[[ \t]*)?\{(?:\s*$|.*?([\"']?)\btool\1\s*:)")
_OTHER_FORMS: Final = re.compile(
    r" {0,3}(?:<\|?(?:\w+:)?(?:tool_?calls?|function_?calls?|tool_?use|tool_code|python_tag|function=|invoke\s)"
    r"|<\uff5ctool|<\|channel\|>commentary to=|\[TOOL_CALLS?\]|functools\["
    r"|\W{0,3}(?:action|(?:tool|function)(?: call)?|call)s?\W{0,3}:\W{0,3}\{\s*[\"'])",
    re.IGNORECASE,
)
_ARGUMENTS: Final = re.compile(r"[\"'](?:arguments|parameters|params|args|kwargs|input|action_input)[\"']\s*:")


class Quotations:
    """Reads the lines of one reply that are shown; `tools` are the names of those that are offered."""

    def __init__(self, tools: Collection[str] = ()) -> None:
        self.sign = ""
        """The first line that is meant as a call and is none."""
        self.ended_thought = False
        """What was taken last ends a thought, and all before it was one."""
        self._tools = tuple(tools)
        self._piece: list[str] = []
        self._closing = ""
        """What ends the quotation that is open, in lower case; "" where none is."""
        self._inside = ""
        """The first line within it that looks like a call."""
        self._after_quote = False
        self._blank = True
        """Nothing but blank lines came so far."""

    @property
    def open(self) -> bool:
        """Whether the next line is quoted, or may be."""
        return bool(self._closing) or self._after_quote

    @property
    def holds_fences(self) -> bool:
        """Whether the next line is quoted also where it begins a fence."""
        return bool(self._closing) and not self._closing.startswith("`")

    def take(self, text: str) -> None:
        """Take more of what is shown; its last line may go on."""
        self.ended_thought = False
        *lines, rest = text.split("\n")
        for line in lines:
            self._line("".join([*self._piece, line]))
            self._piece = []
        self._piece.append(rest)

    def end(self) -> None:
        """Take note that no more comes: what is open then was perhaps no quotation."""
        self.ended_thought = False
        self._line("".join(self._piece))
        self._unclosed()

    def look_at(self, block: str) -> None:
        """Look at the whole of a fence, or of JSON that is no call, for another's form of one."""
        if self._tools and not self.sign and _other_form(self._tools).search(block) and _ARGUMENTS.search(block):
            self.sign = block
        for line in block.split("\n"):
            self._look(line)

    def _line(self, line: str) -> None:
        self.ended_thought |= not self._closing and _THOUGHT_BEFORE.match(line) is not None
        if not line.strip() and self._closing.startswith("`"):
            self._unclosed()  # a paragraph ends, and code in it does
        if self.open:
            self._inside = self._inside or (line if _LIKE_CALL.match(line) else "")
            if self._after_quote:
                self.sign = self.sign or self._inside
        elif not _QUOTED_LINE.match(line):
            self._look(line)
            if self._blank and _LIKE_CALL.match(line):  # which is indented, or it would be no text
                self.sign = self.sign or line
        self._blank = self._blank and not line.strip()
        self._after_quote = not self._closing and _QUOTED_LINE.match(line) is not None
        self._follow(line)

    def _look(self, line: str) -> None:
        written = bool(self._tools) and _written_out(self._tools).match(line) is not None
        if not self.sign and (written or _OTHER_FORMS.match(line)):
            self.sign = line

    def _follow(self, line: str) -> None:
        """Follow where quotations begin and end in a line."""
        at, low = 0, line.lower()
        while True:
            if self._closing:
                end = low.find(self._closing, at)
                if end < 0:
                    return
                at, self._closing, self._inside = end + len(self._closing), "", ""
            found = _OPENING.search(low, at)
            if found is None:
                return
            at = found.end()
            element, mark = found["element"], found["mark"]
            self._closing = f"</{element}>" if element else f"[end of result {mark}]" if mark else ""
            self._closing = self._closing or found["ticks"] or _ENDS[found[0]]

    def _unclosed(self) -> None:
        self.sign = self.sign or self._inside
        self._closing = self._inside = ""


@cache
def _other_form(tools: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"[\"'](?:name|function|tool_?name|tool|action)[\"']\s*:\s*[\"'](?:{_any_of(tools)})[\"']")


@cache
def _written_out(tools: tuple[str, ...]) -> re.Pattern[str]:
    name = rf"(?:{_any_of(tools)})"
    return re.compile(rf"[ \t]*\[?(?:print\()?(?:\w+\.)?{name}\(|\W{{0,3}}[Aa]ction\W{{0,3}}:\W{{0,3}}{name}\W{{0,3}}$")


def _any_of(tools: tuple[str, ...]) -> str:
    return "|".join(map(re.escape, tools))
