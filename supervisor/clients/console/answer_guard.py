"""Keys that answer a question: which of them are meant. Pure; times are arguments, in seconds of one clock.

Rule: a key answers only what could be read for `READABLE_S`, `QUIET_S` after the key before it, and alone: what comes
in one burst was pasted. Who types in the line goes on with it: for `TYPIST_S` after its last key, letters belong to it,
and a "y" counts when no key follows for as long.

    a question is shown -> the line has the keys while it is unfinished or just typed in -> the question has them
"""

import math
from typing import Final

READABLE_S: Final = 1.0
QUIET_S: Final = 0.7
TYPIST_S: Final = 3.0
BURST_S: Final = 0.05
"""Keys that come within this were not typed one by one."""


class AnswerGuard:
    """What was shown and pressed so far."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the last key."""
        self._shown = math.inf
        self._pressed = self._before = self._typed = -math.inf

    def shown(self, now: float) -> None:
        """Take note that a question, or the next one about it, can be read."""
        self._shown = now

    def pressed(self, now: float) -> None:
        """Take note of any key, before it does anything."""
        self._before, self._pressed = self._pressed, now
        self.last += 1

    def typed(self, now: float) -> None:
        """Take note that a key went to the line."""
        self._typed = now

    def wait(self, now: float) -> float:
        """Return in how many seconds a key will answer, if none is pressed before; not above 0 where it will now."""
        return max(self._shown + READABLE_S, self._pressed + QUIET_S) - now

    def rests(self, now: float) -> float:
        """Return in how many seconds a question may have the keyboard, where the line is empty."""
        return self._typed + QUIET_S - now

    def answers(self) -> bool:
        """Say whether the last key may answer."""
        return self._pressed >= max(self._shown + READABLE_S, self._before + QUIET_S)

    def is_readable(self) -> bool:
        """Say whether the question could be read before the last key."""
        return self._pressed >= self._shown + READABLE_S

    def is_typist(self) -> bool:
        """Say whether the last key may be one of a line."""
        return self._pressed < self._typed + TYPIST_S
