"""Runs the tool recall: looks up what was said and found earlier in the same conversation, in the journal.

Rule: of no other session anything can be had, but for what this one was forked from, nor anything that was taken back:
what the conversation leads through is all there is. What is shown again has the sources that it had: who wrote it, and
whether that was a stranger. A result that mixes the words of several, or the model's own with theirs, is nobody's, so
that no address in it is free.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from supervisor.display.command_text import title_of
from supervisor.errors import StrongroomError
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, Fact, Replied, Source, TurnStarted, effective
from supervisor.journal.journal import Journal, JournalEntry, open_journal
from supervisor.journal.lineage import story, turn_line
from supervisor.journal.passage_ranking import RankedPassage, best_passages
from supervisor.journal.passages import RECALL
from supervisor.journal.search_index import in_index
from supervisor.journal.search_words import terms_of
from supervisor.system.off_loop import in_thread
from supervisor.tools import outcomes
from supervisor.tools.change_attempt import raw_arguments
from supervisor.tools.exfiltration.exposure import parts_of
from supervisor.tools.exfiltration.sources import networked, recorded_sources
from workers.catalog import supervised_tools
from workers.errors import ToolError

_PASSAGES: Final = 6
"""Passages that are shown at once."""
_PAGE: Final = 20_000
"""Characters of an outcome that are."""
_WORD: Final = 200
"""Characters that a word has at most, for a page to end and begin between words."""
_ONE: Final = "Send either `query`, words of what you look for, or `call`, the id of a call."
_NOTHING: Final = (
    "Nothing of this conversation has any of these words. Try others: names, numbers or paths that were in it."
)


class Recalled(msgspec.Struct, frozen=True):
    """What a recall shows: a text or JSON, a remark, and who wrote it."""

    content: str
    note: str
    sources: tuple[Source, ...]
    form: Literal["text", "json"] = "text"


async def recall(path: Path, session: str, call: CallStarted) -> CallEnded:
    """Return the end of a call of recall in a session, whose journal is at `path`."""

    def read(stopped: Callable[[], bool]) -> Recalled:
        with open_journal(path) as journal:
            entries = story(journal, session)
            entries = [each for each, stands in zip(entries, turn_line(entries).stands, strict=True) if stands]
            if args.call:
                return _outcome(_Facts(entries), args.call, args.offset)
            return _passages(journal, entries, args.query, call, stopped)

    try:
        args = supervised_tools()[RECALL].decode(raw_arguments(call))
        if args.query and args.call:
            return outcomes.failed(call, "invalid_arguments", _ONE)
        found = await in_thread(read)
    except ToolError as declined:
        return outcomes.failed(call, declined.kind, declined.message, **declined.details)
    except StrongroomError as error:
        return outcomes.failed(call, "internal", f"Nothing could be looked up: {error}")
    ended = CallEnded(call.turn, call.call, call.tool, True, found.content, found.form, found.note)
    return outcomes.with_persons_part(call, msgspec.structs.replace(ended, sources=found.sources))


def _passages(
    journal: Journal, entries: Sequence[JournalEntry], query: str, call: CallStarted, stopped: Callable[[], bool]
) -> Recalled:
    """Return the passages that fit a query best, but for what asks for them."""
    if not terms_of(query):
        raise ToolError("invalid_arguments", _ONE)
    best = in_index(journal, lambda index: best_passages(index, entries, query, 2 * _PASSAGES), stopped)
    found = [each for each in best if not _asks(each.entry.fact, call)][:_PASSAGES]
    if not found:
        raise ToolError("no_match", _NOTHING)
    facts = _Facts(entries)
    rows = msgspec.json.encode([facts.row(each) for each in found]).decode()
    note = "The best passages first. recall with a `call` from here shows all of that call's outcome."
    return Recalled(rows, note, facts.sources(found, rows), "json")


def _asks(fact: Fact, call: CallStarted) -> bool:
    """Say whether a fact is the line that the model works on, or the reply that makes the call: it is shown both."""
    if isinstance(fact, Replied):
        return any(block.get("id") == call.call for block in fact.content)
    return isinstance(fact, TurnStarted) and fact.turn == call.turn


def _outcome(facts: "_Facts", wanted: str, offset: int) -> Recalled:
    """Return a part of what a call has shown."""
    ids = [call for call in facts.ended if call == wanted] or [call for call in facts.ended if call.endswith(wanted)]
    if len(ids) != 1:
        known = f"{len(ids)} calls end in" if ids else "No call of this conversation with an outcome has the id"
        raise ToolError("not_found", f"{known} {wanted[:80]!r}. Look for words of it with `query`.")
    ended = facts.ended[ids[0]]
    printed = (f"{name}:\n{value}" for name, value in ended.details.items() if isinstance(value, str))
    whole = "\n".join([ended.content, *printed, *([f"Note: {ended.note}"] if ended.note else [])])
    begin = _between_words(whole, min(offset, len(whole)))
    end = _between_words(whole, min(begin + _PAGE, len(whole)))
    how = "" if ended.ok else f", which failed ({ended.kind})"
    title = title_of(ended.tool, facts.arguments(ended.call))
    note = f"Of turn {ended.turn}: {title}{how}. Characters {begin} to {end} of {len(whole)}"
    note += f"; offset {end} shows more." if end < len(whole) else "."
    note += f" {len(ended.contents)} images or documents are not shown again." if ended.contents else ""
    return Recalled(whole[begin:end], note, _of_one(facts.of_call(ended), ended, whole[begin:end]))


def _between_words(text: str, at: int) -> int:
    """Return the next place where no word is cut, where there is one near: half an address is none that was shown."""
    if at in (0, len(text)) or text[at - 1].isspace():
        return at
    return next((end + 1 for end in range(at, min(at + _WORD, len(text))) if text[end].isspace()), at)


def _of_one(sources: Sequence[Source], ended: CallEnded, shown: str) -> tuple[Source, ...]:
    """Return who wrote a part of what one call has shown: the same, where it was one, and nothing of ours is in it."""
    pure = len(sources) == 1 and ended.ok and ended.form == "text" and not ended.note
    return _together(sources, shown, sources[0].kind if pure else "output")


def _together(sources: Sequence[Source], shown: str, kind: Any) -> tuple[Source, ...]:
    """Return one source for what several wrote; none where they are none."""
    if not sources:
        return ()
    foreign = [each for each in sources if each.foreign]
    told = next((each for each in foreign or sources if each.name), sources[0])
    return (msgspec.structs.replace(told, kind=kind, size=len(shown), foreign=bool(foreign), file=b"", digest=b""),)


class _Facts:
    """What a conversation knows of its calls."""

    def __init__(self, entries: Iterable[JournalEntry]) -> None:
        self.ended: dict[str, CallEnded] = {}
        """By the call's id."""
        self._started: dict[str, CallStarted] = {}
        self._networked: dict[str, bool] = {}
        for each in entries:
            fact = each.fact
            if isinstance(fact, CallStarted):
                self._started[fact.call] = fact
            elif isinstance(fact, CallDecided) and (foreign := networked(fact)) is not None:
                self._networked[fact.call] = foreign
            elif isinstance(fact, CallEnded):
                self.ended[fact.call] = fact

    def arguments(self, call: str) -> str:
        """Return a call's arguments as they ran, raw JSON."""
        return effective(self._started[call]) if call in self._started else ""

    def of_call(self, ended: CallEnded) -> tuple[Source, ...]:
        """Return the sources of what a call has shown."""
        return recorded_sources(self.arguments(ended.call), ended, self._networked.get(ended.call))

    def row(self, found: RankedPassage) -> dict[str, Any]:
        """Return a passage as the model reads it."""
        fact = found.entry.fact
        named = {"tool": getattr(fact, "tool", ""), "call": getattr(fact, "call", "")}
        told = {name: value for name, value in named.items() if value}
        return {"turn": getattr(fact, "turn", 0), "kind": found.passage.kind, **told, "text": found.passage.text}

    def sources(self, found: Sequence[RankedPassage], shown: str) -> tuple[Source, ...]:
        """Return who wrote some passages together."""
        each_of = [self._of_fact(each) for each in found]
        sources = [source for of_one in each_of for source in of_one]
        kinds = {source.kind for source in sources}
        alone = len(kinds) == 1 and all(each_of)
        return _together(sources, shown, kinds.pop() if alone else "output")

    def _of_fact(self, found: RankedPassage) -> tuple[Source, ...]:
        fact = found.entry.fact
        if isinstance(fact, TurnStarted):
            return tuple(part.source for part in parts_of(fact) if part.text)
        return self.of_call(fact) if isinstance(fact, CallEnded) else ()
