r"""Tool calls that a model writes as text: found, and told from what only looks like one.

Rule: pure and strict. A call is a JSON object with "tool" that stands on lines of its own, bare or in a fence for JSON,
alone or in a list; one within a quotation (`quotations.py`), an indented block, a sentence or a program's source is
text. What is meant as a call and is none that can be read is one all the same: its text goes on as the arguments, so
that the model is told what is wrong.

    {"tool": "run_cmd", "command": "ls"}                     the arguments beside the tool's name,
    {"tool": "run_cmd", "arguments": {"command": "ls"}}      or in an object of their own
"""

import json
import re
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from supervisor.agent.models.quotations import Quotations
from supervisor.display.unique_names import unique_names

_ITEMS: Final = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*"
"""What a line begins with in a list of Markdown, and in one within that."""
_FENCE: Final = re.compile(rf" {{0,3}}(?P<items>{_ITEMS})(?P<mark>`{{3,}}|~{{3,}})[ \t]*(?P<kind>[^\s`]*)[^`\n]*$")
_BETWEEN: Final = re.compile(r"\s*,?\s*")
_PARAGRAPH: Final = re.compile(r"\n[ \t\r]*\n")
_NONE: Final = 0
_UNFINISHED: Final = -1
_KINDS: Final = frozenset({"", "json", "jsonc", "json5", "tool", "tool_call", "tool_calls", "tool_code"})
"""What a fence may say it holds, if calls in it count."""
_PROGRAMS: Final = frozenset({"python", "py", "xml", "javascript", "js", "text", "plaintext", "txt"})
"""The same, if what it holds is meant as a call where it is nothing else."""
_INVISIBLE: Final = re.compile("^[\ufeff\u200b\u2060\u00a0]+")
"""What may stand before a reply, and says nothing."""
_BARE: Final = re.compile(r" {0,3}(?:\{|\[[ \t]*(?:\{|\r?$))")
_STRING: Final = r'"(?:[^"\\]|\\.)*"|\'[^\'\n]*\''
_MEANT: Final = re.compile(
    rf"\s*(?:\[\s*)?\{{(?:(?:{_STRING}|\{{(?:{_STRING}|[^{{}}\"'])*\}}|[^{{}}\"'])*?,)??"
    r"""\s*(["']?)tool\1\s*:\s*(?:(["'])(?P<name>[^"'\\]{1,128})\2)?"""
)
"""The beginning of what is meant as a call, however it goes on."""
_CLOSING: Final = re.compile(r"[ \t]*[`~]*[ \t\r]*$")
"""An unfinished line that may yet end a fence."""
_UNDECIDED: Final = re.compile(rf"[ \t]*{_ITEMS}(?:\[?[ \t]*\{{.*|\[[ \t\r]*|[`~].*|[-*+]|\d{{1,9}}[.)]?)?$")
"""An unfinished line that may yet become a call, a fence or nothing."""

UNREAD: Final = "?"
"""Stands for the name of a tool that cannot be read."""


class WrittenCall(NamedTuple):
    """One call: the tool's name, and its arguments as JSON text, which do not parse where the call does not."""

    tool: str
    arguments: str
    inputs: dict[str, Any]
    """The arguments; {} where they do not parse."""
    text: str = ""
    """The call as it was written."""


class _ReadPart(NamedTuple):
    text: str
    calls: tuple[WrittenCall, ...] = ()


_NOTHING: Final = _ReadPart("")


class CallReader:
    """Reads a reply as it arrives; what is no call can be shown at once, line by line.

    `tools` are the names of those that are offered.
    """

    def __init__(self, tools: Collection[str] = ()) -> None:
        self.calls: list[WrittenCall] = []
        self._quotations = Quotations(tools)
        self._shown: list[str] = []
        self._rest: list[str] = []
        """What is not decided yet."""
        self._size = 0
        self._enough = 0
        """Characters with which that is looked at again: a long call is not read anew for each of its words."""
        self._fence: re.Match[str] | None = None
        """That of a kind which holds no calls, and what it has held so far."""
        self._program: list[str] = []
        self._begun = self._line_begun = False
        """Whether the reply says something by now, and whether a line of it is shown in part."""

    @property
    def text(self) -> str:
        """What was no call so far."""
        return "".join(self._shown)

    def feed(self, piece: str) -> str:
        """Take more of the reply; return what can be shown by now."""
        self._rest.append(piece)
        self._size += len(piece)
        return self._take(last=False) if self._size >= self._enough else ""

    def end(self) -> str:
        """Take note that the reply has ended; return what is left to show."""
        left = self._take(last=True)
        if self._fence is not None:
            self._end_fence()
        self._quotations.end()
        if self._quotations.ended_thought:
            self.calls.clear()
        return left

    @property
    def unread(self) -> str:
        """A line that is meant as a call, where the reply has none; "" where there is no such line."""
        return "" if self.calls else self._quotations.sign

    def _take(self, *, last: bool) -> str:
        rest, at, before = "".join(self._rest), 0, len(self._shown)
        if not self._begun:
            rest = _INVISIBLE.sub("", rest)
            self._begun = bool(rest)
        while at < len(rest):
            end, piece = self._next(rest, at, last=last)
            if end == at:
                break
            self._line_begun = rest[end - 1] != "\n"
            self.calls += piece.calls
            self._shown.append(piece.text)
            at = end
        self._rest, self._size = [rest[at:]], len(rest) - at
        self._enough = self._size * 9 // 8
        return "".join(self._shown[before:])

    def _next(self, text: str, at: int, *, last: bool) -> tuple[int, _ReadPart]:
        """Return where what is decided next ends, `at` for none yet, and what it is."""
        line, end = _line(text, at)
        whole = last or text[end - 1] == "\n"
        undecided = _UNDECIDED if self._fence is None else _CLOSING
        if not whole and not self._line_begun and undecided.match(line):
            return at, _NOTHING
        if self._fence is not None:
            if whole and not self._line_begun and _closes(line, self._fence):
                self._end_fence()
            else:
                self._program.append(text[at:end])
            return end, _ReadPart(text[at:end])
        if whole and not self._line_begun:
            if not self._quotations.holds_fences and (fence := _FENCE.match(line)):
                return self._fenced(text, at, fence, last=last)
            if not self._quotations.open and _BARE.match(line):
                return self._looked_at(*_bare(text, at, last=last))
        self._quotations.take(text[at:end])
        if self._quotations.ended_thought:
            self.calls.clear()
        return end, _ReadPart(text[at:end])

    def _looked_at(self, end: int, piece: _ReadPart) -> tuple[int, _ReadPart]:
        """Return a piece as it is; JSON that is no call may be another's form of one."""
        if not piece.calls:
            self._quotations.look_at(piece.text)
        return end, piece

    def _end_fence(self) -> None:
        """Take note of the end of a fence that holds no calls, which was shown as it came."""
        program = "".join(self._program).strip()
        if self._fence is not None and self._fence["kind"].lower() in _PROGRAMS:
            if _calls_in(program):
                self._quotations.sign = self._quotations.sign or program
            elif "\n" not in program:
                self._quotations.look_at(program)
        self._fence, self._program = None, []

    def _fenced(self, text: str, at: int, fence: re.Match[str], *, last: bool) -> tuple[int, _ReadPart]:
        begin = end = _line(text, at)[1]
        if fence["kind"].lower() not in _KINDS:
            self._fence = fence
            return begin, _ReadPart(text[at:begin])
        while end < len(text):
            line, after = _line(text, end)
            if _closes(line, fence) and (last or text[after - 1] == "\n"):
                calls = _calls_in(text[begin:end])
                return self._looked_at(after, _ReadPart("" if calls else text[at:after], calls))
            end = after
        if not last:
            return at, _NOTHING
        calls = _calls_in(text[begin:])
        return self._looked_at(end, _ReadPart("" if calls else text[at:], calls))


def _line(text: str, at: int) -> tuple[str, int]:
    """Return the line that begins there, and where the next one does."""
    end = text.find("\n", at)
    return (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)


def _bare(text: str, at: int, *, last: bool) -> tuple[int, _ReadPart]:
    """Decide about what begins with a brace or a bracket: up to the end of its object, else of its paragraph."""
    after = _object_end(text, at)
    if after == _UNFINISHED and not last:
        return at, _NOTHING
    if after > 0:
        tail, end = _line(text, after)
        if not last and text[end - 1 : end] != "\n":
            return at, _NOTHING  # what follows on its line is not all there
        if not tail.strip():
            calls = _calls_in(text[at:after])
            return end, _ReadPart("" if calls else text[at:end], calls)
        if not _MEANT.match(text, at):
            return end, _ReadPart(text[at:end])
    paragraph = _PARAGRAPH.search(text, at)
    if paragraph is None and not last:
        return at, _NOTHING
    end = paragraph.end() if paragraph is not None else len(text)
    calls = _calls_in(text[at:end])
    return end, _ReadPart("" if calls else text[at:end], calls)


def _closes(line: str, fence: re.Match[str]) -> bool:
    found = re.fullmatch(r"([ \t]*)(`{3,}|~{3,})[ \t]*\r?", line)
    if found is None or not (fence["items"] or re.fullmatch(" {0,3}", found[1])):
        return False
    return found[2][0] == fence["mark"][0] and len(found[2]) >= len(fence["mark"])


def _calls_in(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls of which a text consists, one or several; none where it is something else.

    Where it goes on otherwise after a call, it is not known what is meant, and none of it is one that can be read.
    """
    calls: list[WrittenCall] = []
    whole = text.strip()
    at, end = (1, len(whole) - 1) if whole.startswith("[") and whole.endswith("]") else (0, len(whole))
    while (at := _next_word(whole, at)) < end:
        after = _object_end(whole, at)
        call = _call(whole[at:after]) if after > 0 else None
        if call is None:
            if _MEANT.match(whole, at):
                return (*calls, _broken(whole[at:end]))
            return (_broken(whole),) if calls else ()
        calls.append(call)
        at = after
    return tuple(calls)


def _next_word(text: str, at: int) -> int:
    """Return where white space, and the comma of a list, end."""
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _object_end(text: str, at: int) -> int:
    """Return where the JSON object or list that begins there ends; `_NONE` where none can be read, or `_UNFINISHED`."""
    while text[at : at + 1] == " ":
        at += 1
    try:
        return _DECODER.raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        unfinished = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
        return _UNFINISHED if unfinished else _NONE
    except (ValueError, RecursionError):
        return _NONE


def _call(text: str) -> WrittenCall | None:
    """Return the call that a JSON object is; None where it is another object."""
    given = _DECODER.raw_decode(text)[0]
    tool = given.pop("tool", None) if isinstance(given, dict) else None
    if not isinstance(tool, str):
        return None
    if given.keys() == {"arguments"} and isinstance(given["arguments"], dict):
        given = given["arguments"]
    try:
        arguments = json.dumps(given, ensure_ascii=False)
        arguments.encode()
    except UnicodeEncodeError:  # half a character
        return _broken(text)
    return WrittenCall(tool, arguments, given, text)


def _broken(text: str) -> WrittenCall:
    meant = _MEANT.match(text)
    return WrittenCall(meant["name"] if meant and meant["name"] else UNREAD, text.strip(), {}, text)


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=unique_names, parse_constant=_refused)
