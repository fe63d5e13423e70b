"""Lines of text in tones: what stands where a screen shows something other than an answer. Pure.

Rule: everything that leaves here is visible (`supervisor.display.escape`); escape sequences come from `styled` alone.
"""

import json
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
from supervisor.display.columns import broken, cut, off_frame, width, wrapped
from supervisor.display.command_text import title_of
from supervisor.display.escape import document, visible

Fragments = list[tuple[str, str]]
"""Pieces of a line: a tone ("" for none) and a text."""

_CODES: Final = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_WEIGHTS: Final = frozenset({"dim", "bold"})
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


def styled(fragments: Fragments, *, colour: bool) -> str:
    """Return fragments with the terminal's codes; without colour, only weight is left."""
    parts = []
    for tone, text in fragments:
        codes = ";".join(_CODES[each] for each in tone.split() if colour or each in _WEIGHTS)
        parts.append(f"\x1b[{codes}m{text}\x1b[0m" if codes else text)
    return "".join(parts)


def plain(fragments: Fragments) -> str:
    """Return fragments without tones."""
    return "".join(text for _, text in fragments)


def lines_of(item: Lines, columns: int, *, wrap: bool = False) -> list[Fragments]:
    """Return an item as lines; with `wrap`, sentences are broken between words, and no line is too long."""
    lines = _lines_of(item, columns, wrap=wrap)
    wrap &= not isinstance(item, ShownProposal)
    return [piece for line in lines for piece in (_fitted(line, columns) if wrap else [line])]


def _fitted(line: Fragments, columns: int) -> list[Fragments]:
    """Return a line as lines that the terminal does not break, and of which none begins as a frame does."""
    text = plain(line)
    if width(text) <= columns and off_frame(text) == text:
        return [line]
    tone = line[0][0] if len({each for each, _ in line}) == 1 else "dim"
    first, *rest = broken(off_frame(text), columns)
    pieces = [first, *(broken("".join(rest), columns - len(_FURTHER)) if rest else [])]
    return [[(tone, piece if at == 0 else f"{_FURTHER}{piece}")] for at, piece in enumerate(pieces)]


def _lines_of(item: Lines, columns: int, *, wrap: bool) -> list[Fragments]:
    match item:
        case ShownPrompt():
            first, *rest = visible(item.text).split("\n")
            begins = [("> ", first), *(("  ", line) for line in rest)]
            lines = [wrapped(line, columns, begin, "  ") if wrap else [begin + line] for begin, line in begins]
            return [[("bold", piece)] for pieces in lines for piece in pieces]
        case ShownThought():
            return [[("dim", line)] for line in _thought_lines(item.text, columns, wrap=wrap)]
        case ShownCall():
            return call_lines(item, columns, wrap=wrap)
        case ShownProposal():
            return [[line] for line in item.lines]
        case Note():
            tone, begin = _NOTES[item.tone]
            return [[(tone, line)] for line in _sentence(f"{begin}{item.text}", columns, wrap=wrap)]
        case Document():
            return [[("", line)] for line in visible(item.text).rstrip("\n").split("\n")]


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


def call_lines(call: ShownCall, columns: int, *, wrap: bool = False) -> list[Fragments]:
    """Return the line of a call that has ended, and the head of a command's output, or why it failed."""
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
    more += [visible(call.outcome)] if call.outcome else []
    return [line, *([("dim", f"  {piece}")] for piece in more)]


def _said(call: ShownCall, columns: int) -> list[str]:
    """Return what a command wrote, or why a call failed, in words broken at `columns` if not 0, or its two ends.

    A person who was asked knows why there was a no.
    """
    if call.kind == "denied" and _DECLINED in call.output:
        return []
    output = _command_output(call.output)
    if not output.strip():
        return [] if call.note else [_EFFECTLESS]  # the note says so, or what else there is to say
    lines = visible(output).rstrip("\n").split("\n")
    if columns and call.status != "completed":
        lines = [piece for line in lines for piece in wrapped(line, columns - 2)]
    pieces = [piece for line in lines for piece in broken(line, columns - 2)] if columns else lines
    return _folded(pieces, call, 0 if call.kind == "denied" else _TAIL)


def _folded(lines: list[str], call: ShownCall, tail: int) -> list[str]:
    """Return the beginning of lines and the last `tail` ones, where they are many."""
    head, left = _HEAD + _TAIL - tail, len(lines) - _HEAD - _TAIL
    more = f"... {left} more line{'s' * (left > 1)}; /show {call.number}"
    return [*lines[:head], more, *lines[len(lines) - tail :]] if left > 0 else lines


def _command_output(output: str) -> str:
    """Return what a command wrote, and how it ended where that was not well, out of its result's JSON."""
    given = leading_object(output)
    if not {"stdout", "stderr"} & set(given):
        return output
    parts = [text for text in (given.get("stdout"), given.get("stderr")) if isinstance(text, str) and text]
    code = given.get("exit_code")
    if code not in (0, None):
        parts.append(f"exit code {code}")
    return "\n".join(part.rstrip("\n") for part in parts)


def leading_object(text: str) -> dict[str, object]:
    """Return the members of the JSON object that a text begins with: a note may follow it."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def full_document(shown: ShownCall | ShownThought) -> str:
    """Return all that is known of a call, its head if it is long, or all that was thought."""
    return call_document(shown) if isinstance(shown, ShownCall) else shown.text.strip()


def call_document(call: ShownCall) -> str:
    """Return all that is known of a call, its head if it is long."""
    parts = [f"#{call.number} {call.tool}  {call.status}{f'  {call.kind}' if call.kind else ''}  {call.seconds:.2f} s"]
    parts += [f"why: {call.reason}"] if call.reason else []
    parts += ["arguments:", _indented(pretty(call.arguments) or call.arguments)]
    if call.edited is not None:
        parts += ["edited to:", _indented(pretty(call.edited) or call.edited)]
    parts += [f"note: {call.note}"] if call.note else []
    parts += [
        "output:",
        _indented(head((_command_output(call.output) if call.command else call.output) or _EFFECTLESS)),
    ]
    parts += [call.outcome] if call.outcome else []
    return "\n".join(parts)


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
