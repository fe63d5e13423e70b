"""Keys that answer a question: which of them are meant. Pure; times are arguments, in seconds of one clock.

Rule: a key answers only what could be read for `READABLE_S`, `QUIET_S` after the key before it, and alone: what comes
in one burst was pasted. A question can be read from the end of the drawing on that shows it. Keys that waited while
nothing was read, because the console was busy, count as pressed when it was last seen reading. Who types in the line
goes on with it: for `TYPIST_S` after its last key, letters belong to it, and a "y" counts when no key follows for as
long.

    a question is shown -> the line has the keys while it is unfinished or just typed in -> the question has them
"""

import math
from typing import Final

READABLE_S: Final = 1.0
QUIET_S: Final = 0.7
TYPIST_S: Final = 3.0
BURST_S: Final = 0.05
"""Keys that come within this were not typed one by one."""
BEAT_S: Final = 0.05
"""How often it is looked whether keys are read as they are pressed."""


class AnswerGuard:
    """What was shown and pressed so far."""

    def __init__(self) -> None:
        self.last = 0
        """The number of the last key."""
        self._shown = math.inf
        self._pressed = self._read = self._before = self._typed = self._beat = self._awake = -math.inf

    def hidden(self) -> None:
        """Take note that the question, or the next one about it, is not on the screen, or not as it was."""
        self._shown = math.inf

    def shown(self, now: float) -> None:
        """Take note that what was `hidden` can be read."""
        self._shown = min(self._shown, now)

    def beat(self, now: float) -> None:
        """Take note, each `BEAT_S`, that keys are read; a late beat does not know whether some still wait."""
        if now <= self._beat + 2 * BEAT_S:
            self._awake = now
        self._beat = now

    def pressed(self, now: float) -> None:
        """Take note of any key, before it does anything."""
        self._before, self._read = self._read, now
        self._pressed = now if now <= self._awake + 2 * BEAT_S else self._awake
        self.last += 1

    def typed(self, now: float) -> None:
        """Take note that a key went to the line."""
        self._typed = now

    def is_ready(self) -> bool:
        """Say whether a key would answer that is pressed next."""
        return self._awake >= max(self._shown + READABLE_S, self._read + QUIET_S)

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
