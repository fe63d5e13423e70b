"""The terminal as Textual drives it, with Alt-Enter told apart from Enter.

Rule: an adapter for Textual only. Where a terminal sends Alt as an Escape before the key, Textual drops it from Enter,
and so a new line in a question's text would let the call run.
"""

import os
import select
from codecs import getincrementaldecoder
from collections.abc import Iterable
from typing import Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_CHUNK: Final = 4096
_TICK: Final = 0.05
"""Seconds after which it is looked whether an Escape is the key itself."""


_ALT: Final = {f"\x1b{key}": f"alt+{name}" for key, name in zip("\r\nsau", ("enter", "enter", *"sau"), strict=True)}
"""Keys with Alt that mean something; what follows them at once is another key."""


class KeyParser(XTermParser):
    """Tells Alt-Enter from Enter."""

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        named = _ALT.get(sequence)
        return [events.Key(named, None)] if named else super()._sequence_to_key_events(sequence, alt)


class KeyDriver(LinuxDriver):
    """Reads keys as `KeyParser` tells them."""

    def run_input_thread(self) -> None:
        """Read until the end; a terminal that is gone has no keys."""
        parser = KeyParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        while not self.exit_event.is_set():
            if select.select([self.fileno], [], [], _TICK)[0]:
                try:
                    chunk = os.read(self.fileno, _CHUNK)
                except OSError:
                    return
                if not chunk:
                    return
                for event in parser.feed(decode(chunk)):
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
