"""Pieces of a reply that came together, shown together.

Rule: nothing is held back: what one read from a socket brought is shown before the next, also if it ends in an error.
Each piece that is shown is kept and told to every client, so a fast server would cost more than it must.
"""

from collections.abc import Callable
from typing import Self

from supervisor.agent.models.model import Progress, TextDelta, ThoughtDelta


class JoinedPieces:
    """What `show` is still to be told; use it in `with` for each read."""

    def __init__(self, show: Callable[[Progress], None]) -> None:
        self._show = show
        self._kind: type[TextDelta | ThoughtDelta] = TextDelta
        self._texts: list[str] = []

    def add(self, event: Progress) -> None:
        if isinstance(event, TextDelta | ThoughtDelta):
            if type(event) is not self._kind:
                self._flush()
                self._kind = type(event)
            self._texts.append(event.text)
        else:
            self._flush()
            self._show(event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._flush()

    def _flush(self) -> None:
        if self._texts:
            whole = self._kind("".join(self._texts))
            self._texts.clear()
            self._show(whole)
