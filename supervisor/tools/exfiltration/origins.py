"""Origins of a call: what its session was shown before, and the sentence of a stranger that it may stem from. Pure.

Rule: foreign text cannot act alone. After it, what other programs obey, what leaves the machine, and a rule are for a
person to decide, and the question quotes the sentence that has most in common with the call. Names and sentences were
written by those whom nobody trusts: they are shown escaped, in quotes, and cut. An address that fills in what foreign
text leaves open is asked about; how much may leave in others is counted elsewhere.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from supervisor.display.escape import name, one_line
from supervisor.journal.facts import Source
from supervisor.tools.exfiltration.exposure import SeenText
from workers.changes.effects import GIT, Change, Effects
from workers.url import UrlError, parse

_NAMED: Final = 3
_NAME: Final = 80
_QUOTED: Final = 200
_COMPARED: Final = 20_000
"""Characters of a call that are compared with sentences."""

_KINDS: Final = {
    "file": "file {}",
    "agent_file": "file {} (written by an agent)",
    "foreign_file": "file {} (written by others)",
    "page": "page {}",
    "output": "the output of {}",
    "attachment": "attachment {}",
    "foreign_tool": "the result of {}",
}
_NOTE: Final = ".md"
_WORD: Final = re.compile(r"\w{3,}")
_SENTENCE: Final = r"(?<=[.!?\u3002\uff01\uff1f])\s+|[\n\r\u2028\u2029]+"
_PIECE: Final = re.compile(r"(?s).{1,240}(?:\s|$)|.{240}")
_QUOTES: Final = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u201f\u2033\u02ba\u275d\u275e\u301d\u301e\uff02'), "'")
"""What looks like the end of a quotation."""
_PACKED: Final = ".git/objects/pack/"
_SUBMODULES: Final = ".git/modules/"
"""Where objects come that no worker reads: many at once, and those of submodules."""
_OBEYED: Final = frozenset({"added", "modified", "replaced", "mode", "attributes"})


def told(found: Sequence[Source]) -> str:
    """Name the first of some sources; empty where there is none."""
    named = [_named(each) for each in found[:_NAMED]] + ["others"] * (len(found) > _NAMED)
    return " and ".join(filter(None, [", ".join(named[:-1]), *named[-1:]]))


def explained(reason: str, seen: SeenText, words: str) -> str:
    """Return why a person is asked, with what the call was composed after and the sentence that it may stem from."""
    composed = f"composed after reading {after}" if (after := told(seen.latest(_NAMED + 1))) else ""
    return "; ".join(filter(None, [reason, composed, quotation(seen, words)]))


def quotation(seen: SeenText, words: str) -> str:
    """Return a clause with the foreign sentence that has most in common with a call; empty where none has anything."""
    wanted = set(_WORD.findall(words[:_COMPARED].casefold()))
    sentences = [(source, each) for source, text in seen.foreign for each in _sentences(_said(text))]
    shared = [wanted.intersection(_WORD.findall(each.casefold())) for _, each in sentences]
    common = Counter(word for each in shared for word in each)
    weights = [sum(1 / common[word] for word in each) for each in shared]
    if not any(weights):
        return ""
    best = max(range(len(weights)), key=lambda at: (weights[at], at))
    source, sentence = sentences[best]
    return f'{_named(source)} says: "{_in_quotes(sentence.strip(), _QUOTED)}"'


def filled_in(url: str, seen: SeenText) -> str | None:
    """Return why a person decides about an address that fills in what foreign text leaves open; None for others."""
    if not (seen.foreign and seen.has_private):
        return None
    try:
        address = parse(url)
    except UrlError:
        return None
    if seen.link(address) is not None:
        return None
    written = f"{address.host}{address.target}"
    folded = written.casefold()
    for opening in seen.openings():
        if folded.startswith(opening) and len(written) > len(opening) and not seen.is_public(written[len(opening) :]):
            return "the address fills in what foreign text leaves open, which would leave this machine"
    return None


def obeyed(effects: Effects) -> str:
    """Return the names that a call would write and other programs obey, as a clause; empty where there are none.

    What it puts into git's history counts as well, and what nobody has looked at there.
    """
    found = [each.path for each in effects.changes if (each.level or each.protected) and each.what in _OBEYED]
    found += dict.fromkeys(f"{name} (in git)" for each in effects.git for name in each.obeyed)
    names = [f'"{_in_quotes(each, _NAME)}"' for each in found[:_NAMED]]
    more = [f"{len(found) - _NAMED} more"] if len(found) > _NAMED else []
    clauses = [f"other programs obey {', '.join([*names, *more])}"] if found else []
    packed = any(_PACKED in each.path or _SUBMODULES in each.path for each in effects.changes)
    if packed or len(effects.git) >= GIT or any(each.unread for each in effects.git):
        clauses.append("what comes into git's history or its index takes more than a look to know")
    return f"{'; '.join(clauses)}, and foreign text was read before" if clauses else ""


def words_of(arguments: str, effects: Effects | None = None) -> str:
    """Return what a call says and would write, to be compared with sentences."""
    changes = islice(effects.changes if effects is not None else (), 200)
    return "\n".join([*_strings(arguments), *map(_written, changes)])


def _written(change: Change) -> str:
    added = (line[1:] for line in change.diff[:_COMPARED].splitlines() if line.startswith("+"))
    return "\n".join([change.path, *added])


def _strings(arguments: str) -> Iterator[str]:
    try:
        left: list[Any] = [msgspec.json.decode(arguments or "{}")]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    while left:
        match left.pop():
            case str(text):
                yield text
            case list(values):
                left += values
            case dict(values):
                left += values.values()
            case _:
                continue


def _in_quotes(text: str, width: int) -> str:
    """Return a text as it can stand in quotes, which nothing in it ends."""
    return one_line(name(text[: 4 * width]), width).translate(_QUOTES)


def _said(text: str) -> str:
    """Return a result as it reads, also where it was told as JSON."""
    return "\n".join([*_strings(text)][::-1]) or text


def _sentences(text: str) -> Iterable[str]:
    return (piece for each in re.split(_SENTENCE, text) for piece in _PIECE.findall(each))


def _named(source: Source) -> str:
    shown = f'"{_in_quotes(source.name, _NAME)}"'
    note = source.kind == "file" and source.name.casefold().endswith(_NOTE)
    return f"note {shown}" if note else _KINDS.get(source.kind, "{}").format(shown)
