"""The reply that is just coming in, as far as it was shown.

Rule: a piece stands in the session's file before it is shown, and what stands there is a fact once no more of the reply
comes: as the request is made again, as the model fails, as the turn ends or is left to the next process, or as the
session is opened after this one was killed. The kernel has the file then: what a loss of power leaves may be less.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from supervisor.agent.models.model import TextDelta, ThoughtDelta
from supervisor.agent.transcript import Transcript
from supervisor.errors import ConfigError, JournalError, reason
from supervisor.journal.facts import ReplyCut
from supervisor.system.plain_name import plain
from supervisor.system.safe_files import own_file, read_bytes

_log: Final = logging.getLogger("strongroom.agent")


class _WhichReply(msgspec.Struct, frozen=True):
    """Which reply is coming in: the open turn's, by what had ended before it."""

    turn: int
    step: int
    cuts: int


_Line = _WhichReply | tuple[bool, str]
"""A line of the file: the beginning of a reply, or a piece, with whether it is of its thinking."""
_DECODER: Final = msgspec.json.Decoder(_Line)


def file_of(journal: Path, session: str) -> Path:
    """Return the file of a session, beside the journal."""
    return journal.with_name("replies") / plain(session)


def left_behind(path: Path, known: Transcript) -> list[ReplyCut]:
    """Return the fact that no more comes of a reply which a process was showing as it was killed.

    There is none where the facts of the session say already what became of that reply.
    """
    try:
        lines = read_bytes(path, own=True).split(b"\n")[:-1]  # the last one was not written to its end
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("what was shown of a reply cannot be read: %s: %s", path, reason(error))
        return []
    which, shown = None, _ShownPieces()
    with suppress(msgspec.DecodeError):
        for each in map(_DECODER.decode, lines):
            if isinstance(each, _WhichReply):
                which, shown = each, _ShownPieces()
            else:
                shown.add(*each)
    return shown.cut(known) if known.open_turn is not None and which == _which(known) else []


class _ShownPieces:
    """What has come in of one reply: its text, and its thinking."""

    def __init__(self) -> None:
        self._pieces: tuple[list[str], list[str]] = [], []

    def __bool__(self) -> bool:
        return any(self._pieces)

    def add(self, is_thinking: bool, text: str) -> None:
        self._pieces[is_thinking].append(text)

    @property
    def texts(self) -> tuple[str, str]:
        text, thinking = map("".join, self._pieces)
        return text, thinking

    def cut(self, known: Transcript) -> list[ReplyCut]:
        return [ReplyCut(known.turn, known.step, *self.texts)] if any(self.texts) else []


class ShownReply:
    """What was shown of a reply that is no fact yet.

    Args:
        path: of the session's file.
        known: the session's facts so far.
    """

    def __init__(self, path: Path, known: Transcript) -> None:
        self._path = path
        self._known = known
        self._shown = _ShownPieces()
        self._file = -1

    def add(self, piece: TextDelta | ThoughtDelta) -> None:
        """Take a piece that is about to be shown.

        Raises:
            JournalError: it cannot be kept, and so must not be shown.
        """
        entry = isinstance(piece, ThoughtDelta), piece.text
        line = msgspec.json.encode(entry) + b"\n"
        if not self._shown:
            line = msgspec.json.encode(_which(self._known)) + b"\n" + line
        self._write(line)
        self._shown.add(*entry)

    @property
    def texts(self) -> tuple[str, str]:
        return self._shown.texts

    def cut(self) -> list[ReplyCut]:
        """Return the fact that no more of it comes, unless nothing was shown."""
        return self._shown.cut(self._known)

    def forget(self) -> None:
        """Forget what is a fact now."""
        self._shown = _ShownPieces()

    def close(self) -> None:
        """Let go of the file, which stays where it has what is no fact."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        if not self._shown:
            remove(self._path)

    def _write(self, line: bytes) -> None:
        try:
            if self._file < 0:
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                self._file = own_file(self._path, os.O_WRONLY | os.O_APPEND | os.O_TRUNC)
            written = os.write(self._file, line)
        except (OSError, ConfigError) as error:
            raise JournalError("journal_io", f"What a model says cannot be kept: {reason(error)}.") from error
        if written < len(line):
            raise JournalError("journal_io", "What a model says cannot be kept: no space left on the disk.")


def remove(path: Path) -> None:
    """Remove a session's file, if there is one."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _which(known: Transcript) -> _WhichReply:
    return _WhichReply(known.turn, known.step, known.cuts)
