"""The model that a server says it answers with, where that is another than the one that was asked. Pure.

Rule: one model has several names. A date or a version behind a name, what stands before its last slash, and "latest" do
not make it another: claude-haiku-4-5 and claude-haiku-4-5-20251001, llama3 and llama3:latest.
"""

import re
from typing import Final

import msgspec

from supervisor.agent.models.model import Reply
from supervisor.journal.facts import ReplyOrigin

_NAMED: Final = re.compile(rb'"(?:model|modelVersion)"\s*:\s*"([^"\\]{1,200})"')
"""As the first events of all formats say it; within a string, the quotes of such words are escaped."""
_EVENTS: Final = 3
"""Events of an answer that are looked at."""
_LATEST: Final = re.compile(r"[:-]latest$")


class AnsweringModel:
    """What one answer says of who writes it."""

    def __init__(self) -> None:
        self._name = ""
        self._left = _EVENTS

    def see(self, data: bytes) -> None:
        """Take the next event of the answer."""
        if self._left and not self._name:
            self._left -= 1
            if (found := _NAMED.search(data)) is not None:
                self._name = found[1].decode("utf-8", "replace")

    def other_than(self, asked: str) -> str:
        """Return the name of the model, if it is another than the one that was asked; else ""."""
        mine, its = _core(asked), _core(self._name)
        return "" if not its or mine.startswith(its) or its.startswith(mine) else self._name

    def signed(self, reply: Reply, provider: str, asked: str) -> Reply:
        sent = reply.origin or ReplyOrigin("", "")
        origin = msgspec.structs.replace(sent, provider=provider, model=asked, answering=self.other_than(asked))
        return msgspec.structs.replace(reply, origin=origin)


def answered_by(origin: ReplyOrigin) -> str:
    """Return what a person is told of who wrote a reply; "" where it is who was asked."""
    if not origin.answering:
        return ""
    return f"{origin.provider}/{origin.model} was asked; its server says that {origin.answering} has answered."


def _core(name: str) -> str:
    return _LATEST.sub("", name.lower().rpartition("/")[2])
