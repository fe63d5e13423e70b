"""Messages of a conversation as a format has made them: each once, not at every step.

Rule: a memo. A message is the same as long as it is the same object, with the same origin, after the same ones; what is
made of it is not changed by anybody.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from supervisor.journal.facts import ReplyOrigin

Json = dict[str, Any]


class _MadeMessage(NamedTuple):
    message: Json
    origin: ReplyOrigin | None
    parts: list[Json]


class MadeMessages:
    """Those of one conversation, in the format that it was last sent in."""

    def __init__(self) -> None:
        self._sent_to = ("", "")
        self._made: list[_MadeMessage] = []

    def forget(self) -> None:
        """Make all of them again the next time."""
        self._made = []

    def parts(
        self,
        sent_to: tuple[str, str],
        messages: Sequence[Json],
        origins: Mapping[int, ReplyOrigin],
        make: Callable[[Json, Sequence[Json]], Iterable[Json]],
    ) -> Iterator[Json]:
        """Yield what `make` makes of each message, and of the items of a reply that goes back to who sent it.

        `sent_to` are the format and the provider; nothing else may change what is made.
        """
        if sent_to != self._sent_to:
            self._sent_to, self._made = sent_to, []
        known = len(self._made)
        for index, message in enumerate(messages):
            origin = origins.get(index)
            if index < known and (made := self._made[index]).message is message and made.origin is origin:
                yield from made.parts
                continue
            if index < known:
                del self._made[index:]
                known = index
            own = origin is not None and (origin.format, origin.provider) == sent_to
            made = _MadeMessage(
                message, origin, list(make(message, origin.items if origin is not None and own else ()))
            )
            self._made.append(made)
            yield from made.parts
