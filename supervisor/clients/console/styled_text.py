"""Lines of text in tones: what stands where a screen shows something other than an answer. Pure.

Rule: everything that leaves here is visible (`supervisor.display.escape`).
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from supervisor.clients.console.shown import (
    Document,
    Lines,
    Note,
    ShownCall,
    ShownPrompt,
    ShownProposal,
    ShownThought,
    Tone,
)
from supervisor.display.argument_text import argument_text
from supervisor.display.columns import broken, cut, off_frame, width, wrapped
from supervisor.display.command_text import title_of
from supervisor.display.differences import FOLDED, folded, painted
from supervisor.display.escape import document, visible
from supervisor.display.fragments import Fragments, marked_rows, plain, rows_within

_NOTES: Final[Mapping[Tone, tuple[str, str]]] = {
    "error": ("red", "error: "),
    "notice": ("bold yellow", "! "),
    "info": ("dim", ""),
}
"""The tone of a note's lines, and how it begins."""
_HEAD: Final = 3
_TAIL: Final = 9
"""Lines of a long text below a call that are shown at once: of its beginning, and of its end, where results stand."""
_SHOW_LINES: Final = 200
_SHOW_CHARACTERS: Final = 20_000
_FURTHER: Final = "  "
"""What further rows of a line begin with."""
_EFFECTLESS: Final = "(no output)"
_DECLINED: Final = "the person declined"
"""What a denial says where a person was asked, who knows why."""


def lines_of(
    item: Lines, columns: int, *, wrap: bool = False, colour: bool = True, news: bool = True
) -> list[Fragments]:
    """Return an item as lines.

    Args:
        item: to be shown.
        columns: of the screen.
        wrap: whether sentences are broken between words, and no line is too long.
        colour: whether differences are coloured by word and by language.
        news: whether a call's differences have not been shown yet.
    """
    if isinstance(item, ShownCall):
        return call_lines(item, columns, wrap=wrap, colour=colour, news=news)
    lines = _lines_of(item, columns, wrap=wrap)
    if wrap and not isinstance(item, ShownProposal):
        lines = [piece for line in lines for piece in _fitted(line, columns)]
    if isinstance(item, Document):
        found = painted(item.differences, colour=colour)
        room = columns - len(_FURTHER) if wrap else 0
        lines += ([("", _FURTHER), *row] for line in found for row in marked_rows(line, room))
    return lines


def _fitted(line: Fragments, columns: int) -> list[Fragments]:
    """Return a line as lines that the terminal does not break, and of which none begins as a frame does."""
    if off_frame(text := plain(line)) != text:
        line = [("", " "), *line]
    if width(plain(line)) <= columns:
        return [line]
    first, *rest = rows_within(line, columns, len(_FURTHER))
    return [first, *([("", _FURTHER), *row] for row in rest)]


def _lines_of(
    item: ShownPrompt | ShownThought | ShownProposal | Note | Document, columns: int, *, wrap: bool
) -> list[Fragments]:
    match item:
        case ShownPrompt():
            first, *rest = visible(item.text).split("\n")
            begins = [("> ", first), *(("  ", line) for line in rest)]
            lines = [wrapped(line, columns, begin, "  ") if wrap else [begin + line] for begin, line in begins]
            return [[("bold", piece)] for pieces in lines for piece in pieces]
        case ShownThought():
            return [[("dim", line)] for line in _thought_lines(item.text, columns, wrap=wrap)]
        case ShownProposal():
            return [*item.lines]
        case Note():
            tone, begin = _NOTES[item.tone]
            return [[(tone, line)] for line in _sentence(f"{begin}{item.text}", columns, wrap=wrap)]
        case Document():
            texts = visible(item.text).rstrip("\n").split("\n")
            return [[("", piece)] for text in texts for piece in (_kept_indent(text, columns) if wrap else [text])]


def _kept_indent(text: str, columns: int) -> list[str]:
    bare = text.lstrip(" ")
    return wrapped(bare, columns, text[: len(text) - len(bare)], _FURTHER)


def _thought_lines(thought: str, columns: int, *, wrap: bool) -> list[str]:
    """Return the first lines of what was thought, and how to see the others."""
    first, *rest = visible(thought.strip()).split("\n")
    begun = [("∴ ", first), *((_FURTHER, line) for line in rest if line.strip())]
    lines = [
        piece
        for begin, line in begun
        for piece in (wrapped(line, columns, begin, _FURTHER) if wrap else [begin + line])
    ]
    left = len(lines) - _HEAD
    more = f"{_FURTHER}... {left} more line{'s' * (left > 1)}; /show thinking"
    return [*lines[:_HEAD], more] if left > 1 else lines


def _sentence(sentence: str, columns: int, *, wrap: bool) -> list[str]:
    lines = visible(sentence).split("\n")
    return [piece for line in lines for piece in wrapped(line, columns)] if wrap else lines


def summary(call: ShownCall, columns: int) -> str:
    """Return a call in a few words: its tool, and what it is about."""
    arguments = call.edited if call.edited is not None else call.arguments
    return cut(title_of(call.tool, arguments, columns) if arguments else call.title, columns)


def call_lines(
    call: ShownCall, columns: int, *, wrap: bool = False, colour: bool = True, news: bool = True
) -> list[Fragments]:
    """Return the line of a call that has ended; the head of a command's output, or why it failed; what it changed."""
    note = visible(call.note)
    below = width(note) > columns // 3
    facts = f"  {call.seconds:.2f} s" if call.status == "completed" else ""
    facts += f"  {note}" if note and not below else ""
    facts += "  edited" if call.edited is not None else ""
    facts += f"  #{call.number}"
    failed = "" if call.status == "completed" else f"  {cut(call.kind, 30) or 'failed'}"
    room = max(16, columns - width(facts) - width(failed) - 3)
    line: Fragments = [("dim", f"· {summary(call, room)}")]
    line += [("red", failed)] if failed else []
    line.append(("dim", facts))
    more = _folded(_sentence(note, columns - 2, wrap=wrap), call, 0) if below else []
    more += _said(call, columns if wrap else 0) if call.command or call.kind == "denied" else []
    lines = [line, *([("dim", f"  {piece}")] for piece in more)]
    if news:
        shown = folded(call.differences, columns - 2 if wrap else 0, FOLDED, f"; /show {call.number}", colour=colour)
        lines += ([("", "  "), *row] for row in shown)
    lines += [[("dim", f"  {visible(call.outcome)}")]] if call.outcome else []
    return [piece for line in lines for piece in (_fitted(line, columns) if wrap else [line])]


def _said(call: ShownCall, columns: int) -> list[str]:
    """Return what a command wrote, or why a call failed, in words broken at `columns` if not 0, or its two ends.

    A person who was asked knows why there was a no.
    """
    if call.kind == "denied" and _DECLINED in call.output:
        return []
    if not call.output.strip():
        return [] if call.note else [_EFFECTLESS]  # the note says so, or what else there is to say
    lines = visible(call.output).rstrip("\n").split("\n")
    if columns and call.status != "completed":
        lines = [piece for line in lines for piece in wrapped(line, columns - 2)]
    pieces = [piece for line in lines for piece in broken(line, columns - 2)] if columns else lines
    return _folded(pieces, call, 0 if call.kind == "denied" else _TAIL)


def _folded(lines: list[str], call: ShownCall, tail: int) -> list[str]:
    """Return the beginning of lines and the last `tail` ones, where they are many."""
    head, left = _HEAD + _TAIL - tail, len(lines) - _HEAD - _TAIL
    more = f"... {left} more line{'s' * (left > 1)}; /show {call.number}"
    return [*lines[:head], more, *lines[len(lines) - tail :]] if left > 0 else lines


def full_document(shown: ShownCall | ShownThought) -> Document:
    """Return all that is known of a call, the head of its output if that is long, or all that was thought."""
    return call_document(shown) if isinstance(shown, ShownCall) else Document(shown.text.strip())


def call_document(call: ShownCall) -> Document:
    """Return all that is known of a call, the head of its output if that is long."""
    parts = [f"#{call.number} {call.tool}  {call.status}{f'  {call.kind}' if call.kind else ''}  {call.seconds:.2f} s"]
    parts += [f"why: {call.reason}"] if call.reason else []
    parts += ["arguments:", _indented(argument_text(call.arguments))]
    if call.edited is not None:
        parts += ["edited to:", _indented(argument_text(call.edited))]
    parts += [f"note: {call.note}"] if call.note else []
    parts += ["output:", _indented(head(call.output if call.output.strip() else _EFFECTLESS))]
    parts += [call.outcome] if call.outcome else []
    return Document("\n".join(parts), call.differences)


def head(text: str) -> str:
    """Return the head of a text, with a note of how much is left out."""
    lines = text[:_SHOW_CHARACTERS].rstrip("\n").split("\n")
    if len(lines) <= _SHOW_LINES and len(text) <= _SHOW_CHARACTERS:
        return "\n".join(lines)
    shown = "\n".join(lines[:_SHOW_LINES])
    return f"{shown}\n[the first {len(shown)} of {len(text)} characters]"


def pretty(text: str) -> str | None:
    """Return JSON laid out to be read, with every value as it was written; None where it is not JSON."""
    try:
        return document(msgspec.Raw(text.encode()))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
