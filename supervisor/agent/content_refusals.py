"""Images and documents that a model's server refuses: what is tried without them, and in which order. Pure.

Rule: no words are believed. They only say what is left out first; refused is what a request is taken without that was
not taken with it, also not the second time where that may help. What a server names by its place goes first, then each
that may be meant alone, the newest first, then all of them. A refused request costs nothing but its time, so few are
made where each takes long.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from supervisor.agent.models.model import CONTENTS, Block, ModelRequest
from supervisor.errors import ModelError

Digests = frozenset[str]

_UNSAID: Final = frozenset({"invalid_request", "request_too_large", "context_full"})
"""Kinds of errors that contents may be the cause of where nothing is said of them; and of any where they are named."""
_SAID: Final = frozenset({*_UNSAID, "not_found", "api_error", "bad_response"})
_REPEATED: Final = frozenset({"api_error", "bad_response"})
"""Those that may be made several times before they are told."""
_WORDS: Final = {
    "image": re.compile(r"image|vision|multi-?modal|picture|media", re.IGNORECASE),
    "document": re.compile(r"pdf|document|\bpages?\b|\bfiles?\b|file_data|input_file|media", re.IGNORECASE),
}
"""How servers name what they refuse."""
_PLACE: Final = re.compile(r"\bmessages\.(\d+)\.content\.(\d+)(?:\.tool_result\.content\.(\d+))?")
"""How the Messages API names where it stands: "messages.2.content.0.pdf.source.base64.data: The PDF specified ..."."""
_TOO_MANY: Final = re.compile(
    r"(?:at most|maximum(?: of)?|up to|more than|no more than|limit(?:ed)?(?: is| of| to)?) (\d{1,4})\b|too many",
    re.IGNORECASE,
)
_PASSING: Final = re.compile(r"(could not|unable to|failed to) process|\bretry\b|try again", re.IGNORECASE)
"""How servers say what they may not say the next time (https://github.com/anthropics/anthropic-sdk-python/issues/903)."""
_ALONE: Final = 8
"""Contents that are left out one by one, at most; and those that are where a server names them."""


class _ShownContent(NamedTuple):
    digest: str
    kind: str
    """"image" or "document"."""
    message: int
    """The index of the last message that names it."""


class RefusalSearch:
    """Looks for what one request is refused for."""

    def __init__(self) -> None:
        self.left_out: Digests = frozenset()
        """The digests of what the next request is made without."""
        self.first: ModelError | None = None
        """The refusal that it began with."""
        self._certain: Digests = frozenset()
        self._trials: Iterator[Digests] | None = None

    def goes_on(self, error: ModelError, request: ModelRequest) -> bool:
        """Take a refusal of a request into account; say whether another is to be made, without `left_out`."""
        shown = _shown(request)
        if error.kind not in _SAID or not (shown or self.first):
            return False
        self.first = self.first or error
        place = _named(str(error), request)
        if place and len(self._certain) < _ALONE:
            self.left_out = self._certain = self.left_out | {place}
            return True
        if self._trials is None:
            self._trials = _trials(error, shown, request)
        trial = next(self._trials, None)
        if trial is not None:
            self.left_out = self._certain | trial
        return trial is not None


def _trials(error: ModelError, shown: list[_ShownContent], request: ModelRequest) -> Iterator[Digests]:
    """Yield what to leave out, each once, the likeliest first."""
    words = str(error)
    meant = [each for each in shown if _WORDS[each.kind].search(words)]
    newest = _since_the_last_reply(request)
    trials: list[list[_ShownContent]] = []
    again = [frozenset[str]()] if meant and error.kind not in _REPEATED and _PASSING.search(words) else []
    if meant:
        if many := _TOO_MANY.search(words):
            trials.append(meant[: -min(int(many[1] or 1) or 1, len(meant))])
        if error.kind not in _REPEATED:
            trials += [[each] for each in meant[: -_ALONE - 1 : -1]]
        trials += [[each for each in meant if each.message >= newest], meant, shown]
    elif error.kind in _UNSAID:
        trials.append([each for each in shown if each.message >= newest])
        trials += [shown] if error.kind != "context_full" else []  # what was said before was in its room
    return iter(dict.fromkeys([*again, *(frozenset(each.digest for each in trial) for trial in trials if trial)]))


def _since_the_last_reply(request: ModelRequest) -> int:
    replies = [index for index, message in enumerate(request.messages) if message["role"] == "assistant"]
    return replies[-1] + 1 if replies else 0


def _shown(request: ModelRequest) -> list[_ShownContent]:
    """Return what a request shows, each content once, the newest last."""
    found: dict[str, _ShownContent] = {}
    for index in sorted(request.with_media):
        for block in _blocks(request.messages[index]["content"]):
            digest = block["source"]["digest"]
            found.pop(digest, None)
            found[digest] = _ShownContent(digest, block["type"], index)
    return list(found.values())


def _blocks(blocks: list[Block]) -> Iterator[Block]:
    for block in blocks:
        if block["type"] in CONTENTS:
            yield block
        elif isinstance(within := block.get("content"), list):
            yield from _blocks(within)


def _named(words: str, request: ModelRequest) -> str:
    """Return the digest of the content whose place a server names; "" where it names none."""
    if (place := _PLACE.search(words)) is None:
        return ""
    found: object = request.messages
    for name, number in zip(("content", "content", ""), place.groups(), strict=True):
        if number is not None:
            if not isinstance(found, list) or int(number) >= len(found):
                return ""
            block = found[int(number)]
            found = block.get(name) if name else None
    return str(block["source"]["digest"]) if block.get("type") in CONTENTS else ""
