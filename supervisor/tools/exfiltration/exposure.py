"""Text that the model of one session has been shown, and that a URL could carry out. A fold over facts.

Rule: what a tool read in the root, or an editor sent along, is private; what the person typed and what the web said is
not. Nothing is compared until a URL is judged: most sessions never fetch. Whatever a text says, each step takes time
that grows with its length alone: this runs in the daemon's event loop.

Facts ignored: BatchStarted, CallDecided, CallStarted, FaultsAllowed, ModelRetried, Replied, SessionChanged,
SessionDeleted, SessionOpened, ToolsChanged, TurnEnded, TurnResumed.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from supervisor.journal.facts import CallEnded, Fact, TurnStarted
from supervisor.tools.partial_output import OUTPUT
from workers.catalog import find_tool

KEPT: Final = 2 * 2**20
"""Characters of private text that are remembered, the latest ones."""

_KEPT_PUBLIC: Final = 2**20
"""The same of what the web has said."""

_WITH_RESULTS: Final = frozenset({"timeout", "resource_limit"})
"""Errors that come with what was found, or printed, until then."""
_URL: Final = re.compile(r"https?://[^\s<>\"'`\\^{|}\[\]]+", re.IGNORECASE)
_LINK: Final = re.compile(
    rf"{_URL.pattern}|(?<![\w.-])(?:[\w-]{{1,63}}\.){{1,5}}[a-z]{{2,24}}/[^\s<>\"'`\\^{{|}}\[\]]+",
    re.IGNORECASE | re.ASCII,
)
"""The same, and what people write of one: github.com/o/r."""
_ENDINGS: Final = ".,;:!?)*_"
"""What follows an address in a sentence, or in Markdown, and is not of it."""
_ASCII_LEFT_OUT: Final = bytes(each for each in range(128) if not chr(each).isalnum())

_FILE_BEGINS: Final = "<resource uri="
_FILE_ENDS: Final = "\n</resource>"
"""Around a file that the person's editor sent along (`acp.schema.prompt_text`): they did not type it."""

_NO_LETTERS: Final = re.compile("[\U00032000-\U000dffff\U000e0080-\U0010ffff]+")
"""Planes without letters: so many characters would take long to look at one by one."""

_LONGEST_FOLD: Final = 3
"""Letters that one character may stand for: some stand for whole sentences."""

_LOOKALIKES: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip("аеорсухкмтвніѕјԁԛԝһԍ", "aeopcyxkmtbhisjdqwhg", strict=True))
    | dict(zip("αβεικνορτυχγωμη", "abeikvoptuxywun", strict=True))
    | {chr(0xE0000 + each): chr(each) for each in range(0x20, 0x7F)}
)
"""Cyrillic and Greek letters that pass for Latin ones, and the tag characters, which nobody sees."""


class SeenText:
    """Texts that stand in a session's facts."""

    def __init__(self) -> None:
        self.forgot = False
        """Whether some private text is no longer remembered."""
        self._private: list[str] = []
        self._private_size = 0
        self._compared: list[str | None] = []
        self._public: list[str] = []
        self._public_size = 0
        self._typed: list[str] = []

    def apply(self, fact: Fact) -> None:
        """Take one more fact into account."""
        match fact:
            case TurnStarted():
                self._typed.append(self._without_files(fact.text))
            case CallEnded() if (tool := find_tool(fact.tool)) is not None and not tool.private:
                if fact.ok:  # an error repeats what the model wrote, a denial the very secret
                    self._publish(fact.content)
            case CallEnded() if fact.ok or fact.kind in _WITH_RESULTS:
                for text in (fact.content, *map(str, fact.details.values())):
                    self._keep(text)
            case CallEnded():
                self._keep(str(fact.details.get(OUTPUT, "")))

    def compared(self) -> Iterator[str]:
        """Yield each private text as it is `comparable`, without its URLs: those may be followed."""
        for number, text in enumerate(self._private):
            known = self._compared[number]
            if known is None:
                known = self._compared[number] = comparable(_LINK.sub(" ", text))
            yield known

    def is_private(self, word: str) -> bool:
        """Say whether a private text holds `word` as it stands."""
        return any(word in text for text in self._private)

    def is_public(self, word: str) -> bool:
        """Say whether the person or the web has written `word` as it stands."""
        return any(word in text for text in (*self._typed, *self._public))

    def typed_urls(self) -> Sequence[str]:
        """Return the addresses that the person typed."""
        return [found.rstrip(_ENDINGS) for text in self._typed for found in _URL.findall(text)]

    def _without_files(self, prompt: str) -> str:
        """Return what the person typed; keep the files that came with it."""
        *parts, last = prompt.split(_FILE_ENDS)
        typed = []
        for part in parts:
            before, _, file = part.partition(_FILE_BEGINS)
            typed.append(before)
            self._keep(file)
        return "\n".join([*typed, last])

    def _publish(self, text: str) -> None:
        self._public.append(text)
        self._public_size += len(text)
        while self._public_size > _KEPT_PUBLIC and len(self._public) > 1:
            self._public_size -= len(self._public.pop(0))

    def _keep(self, text: str) -> None:
        if not text:
            return
        self._private.append(text)
        self._compared.append(None)
        self._private_size += len(text)
        while self._private_size > KEPT and len(self._private) > 1:
            self._private_size -= len(self._private.pop(0))
            self._compared.pop(0)
            self.forgot = True


def comparable(text: str) -> str:
    """Return the letters and digits of `text`, without case and accents: what survives rewriting it for a URL."""
    if not text.isascii():
        text = _NO_LETTERS.sub("", text)
        text = text.translate({ord(char): _folded(char) for char in set(text) if not char.isascii()})
    return text.encode("utf-8", "ignore").lower().translate(None, _ASCII_LEFT_OUT).decode()


def _folded(char: str) -> str:
    """Return what a character that is not ASCII is compared as; nothing where it is no letter or digit."""
    decomposes = bool(unicodedata.decomposition(char))
    if not (decomposes or char.isalnum()):
        return _LOOKALIKES.get(char, "")
    plain = unicodedata.normalize("NFKD", char) if decomposes else char
    letters = (_LOOKALIKES.get(each, each) for each in plain.casefold())
    return "".join(each for each in letters if each.isalnum())[:_LONGEST_FOLD]
