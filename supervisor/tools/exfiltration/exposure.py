"""Text that the model of one session has been shown, with its sources: what a call could carry out. A fold over facts.

Rule: what a tool read in the root, an editor sent along or the person typed is private, what the web said is not. An
address is free where the person typed it, or where it is a link of a page or of a file that the person wrote; every
other one was composed. Nothing is compared until a URL is judged: most sessions never fetch. Whatever a text says, each
step takes time that grows with its length alone: this runs in the daemon's event loop.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, Compacted, ContentsRefused, FaultsAllowed, ModeChanged,
ModelRetried, ModelSwitched, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked, SessionChanged, SessionDeleted,
SessionOpened, ToolsChanged, TurnEnded, TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    InstructionsRead,
    Source,
    TurnStarted,
    effective,
)
from supervisor.tools.exfiltration.comparable_text import comparable
from supervisor.tools.exfiltration.flow_ledger import FlowLedger
from supervisor.tools.exfiltration.known_addresses import ENDINGS, LINK, URL
from supervisor.tools.exfiltration.openings import openings_of
from supervisor.tools.exfiltration.sources import FRAME_BEGINS, lines_by_path, networked, recorded_sources, shown_by
from supervisor.tools.exfiltration.uploads import Uploads
from workers.url import Url, UrlError, parse

KEPT: Final = 2 * 2**20
"""Characters of private text that are remembered, the latest ones."""

_KEPT_PUBLIC: Final = 2**20
"""The same of what the web has said."""
_SEARCHED: Final = 2**18
"""Characters of a line that are searched for addresses: more was not typed, and would hold up all sessions."""
_PROBING: Final = frozenset({"edit_file"})
"""Tools that show nothing, but whose success says what stands in a file."""
_PASTED: Final = 1000
"""Characters of one line that nobody types."""
_KEPT_FOREIGN: Final = 2**18
"""The same of what strangers wrote, for the sentence that a call stems from."""
_OPENINGS: Final = 2000
"""Openings of one text that are remembered."""
_LINKS: Final = 50_000
"""Addresses that are remembered as free, the latest ones."""

_REVISION: Final = re.compile(r"\b(?:commit|revision|sha)[ :/#]{1,3}([0-9a-f]{7,64})\b", re.IGNORECASE)
"""What a person types to name a commit: no secret, although it reads like a key."""
_SECRET: Final = re.compile(
    r"\b(?:pass ?(?:word|phrase|code|wort)|pin|secret|token|kennwort|(?:api|access|private) ?key)s?\b[^.\n=:]{0,40}?"
    r"(?:\bis\b|\bare\b|\bist\b|[:=])\s*[\"'`]?([^\s\"'`]{4,200})",
    re.IGNORECASE,
)
_MIXED: Final = re.compile(r"(?<!\S)(?=\S*[a-z])(?=\S*[0-9])(?=\S*[!@#$%^&*]\S)[^\s/]{6,100}(?!\S)", re.IGNORECASE)
"""What a person types as a secret: behind its name, or as nothing but one looks."""
_TYPED: Final = 2**16
"""Characters of a line in which they are looked for."""

_FRAME_ENDS: Final = "\n</resource"
"""Around a file that an editor sent along, in facts without sources: what is within could close it, so all that stands
between the first beginning and the last end counts as sent along."""


class SourcedText(NamedTuple):
    """A text with its source."""

    source: Source
    text: str


class SeenText:
    """Texts that stand in a session's facts."""

    def __init__(self) -> None:
        self.forgot = False
        """Whether some private text is no longer remembered."""
        self.sources: list[Source] = []
        """Of all that was shown, in the order in which it was."""
        self.foreign: list[SourcedText] = []
        """What strangers may have written, the latest; empty while the session has seen nothing of that kind."""
        self._foreign_size = 0
        self._unopened: list[str] = []
        self._openings: dict[str, None] = {}
        self._private: list[SourcedText] = []
        self._private_size = 0
        self._compared: list[str | None] = []
        self._public: list[str] = []
        self._public_size = 0
        self._typed: list[str] = []
        self._pasted = self._probed = False
        self.secrets: set[str] = set()
        """What the person typed as a secret, as it is `comparable`."""
        self._links: dict[Url, Source] = {}
        self._unlinked: list[SourcedText] = []
        """Texts whose links are free, and were not looked for yet."""
        self._started: dict[str, CallStarted] = {}
        self._networked: dict[str, bool] = {}
        """Calls that had a network, and whether what they show is foreign for that."""
        self.flow = FlowLedger()
        """What its addresses have said."""
        self.uploads = Uploads()
        """What its commands have."""

    def apply(self, fact: Fact) -> None:
        self.uploads.apply(fact)
        match fact:
            case TurnStarted():
                for part in parts_of(fact):
                    self._take(part)
            case InstructionsRead():
                for file in fact.files:
                    shown = hashlib.sha256(file.text.encode()).digest()
                    source = Source("file", file.path, shown, len(file.text), bytes.fromhex(file.digest))
                    self._take(SourcedText(source, file.text))
            case CallStarted():
                self._started[fact.call] = fact
                self.flow.apply(fact)
            case CallDecided() if (foreign := networked(fact)) is not None:
                self._networked[fact.call] = foreign
            case CallEnded():
                self._probed = self._probed or fact.tool in _PROBING
                started = self._started.pop(fact.call, None)
                arguments = effective(started) if started is not None else ""
                if known := recorded_sources(arguments, fact, self._networked.pop(fact.call, None)):
                    self._take_result(fact, known)
            case _:
                return

    def compared(self) -> Iterator[str]:
        """Yield each private text as it is `comparable`, without its URLs but for an agent's: those may be followed."""
        for number, text in enumerate(self._private):
            known = self._compared[number]
            if known is None:
                left = text.text if text.source.kind == "agent_file" else LINK.sub(" ", text.text)
                known = self._compared[number] = comparable(_REVISION.sub(" ", left))
            yield known

    def is_private(self, word: str) -> bool:
        """Say whether a private text holds `word` as it stands."""
        return any(word in text.text for text in self._private)

    def is_public(self, word: str) -> bool:
        """Say whether the web has written `word` as it stands, or the person as an address or a commit's name."""
        return any(word in text for text in (*self._typed, *self._public))

    @property
    def has_private(self) -> bool:
        """Whether it has seen what is the person's own, not just typed, or could have guessed it piece by piece."""
        return self._pasted or self._probed or any(each.kind not in ("person", "page") for each in self.sources)

    def link(self, url: Url) -> Source | None:
        """Return who wrote an address that is free; None for one that was composed."""
        self._find_links()
        return self._links.get(url)

    def openings(self) -> Iterator[str]:
        """Yield the beginnings of addresses that foreign text leaves open (`openings`)."""
        texts, self._unopened = self._unopened, []
        for text in texts:
            self._openings = dict.fromkeys([*islice(openings_of(text), _OPENINGS), *self._openings][:_LINKS])
        yield from self._openings

    def latest(self, most: int) -> list[Source]:
        """Return the sources of what was shown besides what the person typed, each once, the latest first."""
        found: dict[tuple[str, str], Source] = {}
        for each in reversed(self.sources):
            if each.kind != "person":
                found.setdefault((each.kind, each.name), each)
            if len(found) == most:
                break
        return list(found.values())

    def typed_urls(self) -> Sequence[str]:
        """Return the addresses that the person typed."""
        self._find_links()
        return [str(url) for url, source in self._links.items() if source.kind == "person"]

    def _take_result(self, fact: CallEnded, sources: Sequence[Source]) -> None:
        first, *others = sources
        lines, of_others = lines_by_path(fact), {each.name for each in others}
        own = "\n".join(text for path, text in lines.items() if path not in of_others)
        private = first.kind != "page"
        linked = own if fact.form == "json" and private else None if fact.ok else ""
        self._take(SourcedText(first, shown_by(fact)), private=private, linked=linked)
        for each in others:
            self._take(SourcedText(each, lines.get(each.name, "")), private=each.kind == "agent_file")

    def _take(self, text: SourcedText, *, private: bool = True, linked: str | None = None) -> None:
        """Take one text; `linked` is what of it has links that are free, where that is not all."""
        source, said = text
        if not said and not (source.kind == "attachment" and source.name):  # an image says something, and no text
            return
        self.sources.append(source)
        if source.kind in ("person", "page", "file") and not (source.foreign and source.kind != "page"):
            free = said if linked is None else linked
            self._unlinked.append(SourcedText(source, free))
            self.flow.learn(free, source.kind)
        if source.foreign:
            self.foreign.append(text)
            self._unopened.append(said)
            self._foreign_size += len(said)
            while self._foreign_size > _KEPT_FOREIGN and len(self.foreign) > 1:
                self._foreign_size -= len(self.foreign.pop(0).text)
        if source.kind == "page" and linked is None:  # an error repeats what the model wrote
            self._publish(said)
        elif private:
            self._keep(text)
        if source.kind == "person":
            self._pasted = self._pasted or len(said) > _PASTED
            searched = said[:_SEARCHED]
            self._typed += [*URL.findall(searched), *_REVISION.findall(searched)]
            left = URL.sub(" ", said[:_TYPED])
            self.secrets |= {comparable(each) for each in (*_SECRET.findall(left), *_MIXED.findall(left))} - {""}

    def _find_links(self) -> None:
        texts, self._unlinked = self._unlinked, []
        for source, text in texts:
            for url in links_of(text):
                known = self._links.pop(url, source)
                self._links[url] = known if known.kind == "person" else source
        for url in list(self._links)[: max(0, len(self._links) - _LINKS)]:
            del self._links[url]

    def _publish(self, text: str) -> None:
        self._public.append(text)
        self._public_size += len(text)
        while self._public_size > _KEPT_PUBLIC and len(self._public) > 1:
            self._public_size -= len(self._public.pop(0))

    def _keep(self, text: SourcedText) -> None:
        self._private.append(text)
        self._compared.append(None)
        self._private_size += len(text.text)
        while self._private_size > KEPT and len(self._private) > 1:
            self._private_size -= len(self._private.pop(0).text)
            self._compared.pop(0)
            self.forgot = True


def parts_of(fact: TurnStarted) -> list[SourcedText]:
    """Return the parts of a line, each with its source."""
    if fact.sources and sum(each.size for each in fact.sources) == len(fact.text):
        parts, at = [], 0
        for each in fact.sources:
            parts.append(SourcedText(each, fact.text[at : at + each.size]))
            at += each.size
        return parts
    before, begins, rest = fact.text.partition(FRAME_BEGINS)
    file, _, after = rest.rpartition(_FRAME_ENDS) if begins else ("", "", "")
    if begins and not file:
        file, after = rest, ""
    person = Source("person", "")
    return [SourcedText(person, before), SourcedText(Source("attachment", ""), file), SourcedText(person, after)]


def links_of(text: str) -> Iterator[Url]:
    """Yield the addresses that stand in a text, also those without https://."""
    for found in LINK.findall(text):
        stripped = found.rstrip(ENDINGS)
        forms = {found, stripped, f"{stripped})" if stripped.count("(") > stripped.count(")") else stripped}
        for form in forms:
            with suppress(UrlError):
                yield parse(form if URL.match(form) else f"https://{form}")
