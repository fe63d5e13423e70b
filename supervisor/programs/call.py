"""`strongroom call`: one tool, or a stream of tool calls, without a model.

Rule: the same policy, journal, pool and confinement as a model's call. Answers come in the order of the questions,
each as soon as it is there; a bad line gets an error line of its own and the rest go on.
"""

import os
import sys
from collections import deque
from typing import Any, Final

import msgspec
import trio

from supervisor.config import Settings
from supervisor.core import Core, with_core
from supervisor.errors import ConfigError
from supervisor.facts import CallEnded, CallStarted
from supervisor.profiles import Profile
from supervisor.render import json_line
from supervisor.session import Session
from supervisor.tools.router import as_error

LINE_LIMIT: Final = 64 * 2**20
"""Bytes of one line of standard input."""

_STDIN: Final = 0
_CHUNK: Final = 2**16


class _Id(msgspec.Struct, frozen=True):
    id: msgspec.Raw = msgspec.Raw(b"null")
    """What can be said of a line that is no question."""


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: msgspec.Raw
    """Whatever JSON it is, it comes back as it was written."""
    tool: str
    arguments: msgspec.Raw


def as_answer(ended: CallEnded) -> dict[str, Any]:
    """Return a call's outcome as scripts read it."""
    if not ended.ok:
        return {"ok": False, "error": as_error(ended)}
    content: Any = msgspec.Raw(ended.content.encode()) if ended.form == "json" else ended.content
    return {"ok": True, "content": content} | ({"note": ended.note} if ended.note else {})


def call_once(settings: Settings, profile: Profile, tool: str, arguments: str, *, approve: bool) -> CallEnded:
    """Run one call.

    Raises:
        ConfigError, JournalError: nothing was done.
    """
    try:
        f"{tool}{arguments}".encode()
    except UnicodeEncodeError as error:
        raise ConfigError("The tool and its arguments must be UTF-8.") from error

    async def use(core: Core) -> CallEnded:
        return await _session(core, profile, approve=approve).call(tool, arguments)

    return trio.run(with_core, settings, use)


def call_many(settings: Settings, profile: Profile, *, approve: bool) -> bool:
    """Answer every line of standard input on standard output; return whether all were ok.

    Raises:
        ConfigError, JournalError: nothing more was done.
    """
    if sys.stdin is None or sys.stdout is None:  # then the descriptors 0 and 1 are something else's
        raise ConfigError("Standard input or output is closed.")

    async def use(core: Core) -> bool:
        session = _session(core, profile, approve=approve)
        lines, well = _Lines(), True
        while (line := await lines.next()) is not None:
            answer = await _answer(session, line)
            well = well and answer["ok"] is True
            sys.stdout.write(json_line(answer))
            sys.stdout.flush()
        return well

    return trio.run(with_core, settings, use)


def _session(core: Core, profile: Profile, *, approve: bool) -> Session:
    async def yes(_call: CallStarted) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    config = core.settings.config
    return Session(
        core.journal,
        core.pools(profile),
        profile,
        None,
        origin="call",
        approve=yes if approve else None,
        degraded=config.allow_degraded,
    )


async def _answer(session: Session, line: bytes) -> dict[str, Any]:
    if len(line) > LINE_LIMIT:
        return {"id": None} | _bad(f"A line of more than {LINE_LIMIT} bytes; it was skipped.")
    try:
        question = msgspec.json.decode(line, type=_Question)
        arguments = bytes(question.arguments).decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shape = '{"id": ..., "tool": "NAME", "arguments": {...}}'
        shown = line[:120].decode("utf-8", "backslashreplace")
        return {"id": _id_of(line)} | _bad(f"Not a call: {error}. A line is {shape}.", line=shown)
    return {"id": question.id} | as_answer(await session.call(question.tool, arguments))


def _bad(message: str, **details: str) -> dict[str, Any]:
    return {"ok": False, "error": {"kind": "invalid_arguments", "message": message, **details}}


def _id_of(line: bytes) -> msgspec.Raw:
    try:
        return msgspec.json.decode(line, type=_Id).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Id().id


class _Lines:
    """Standard input by lines, as they come.

    It is not read through `sys.stdin`: a thread that still waits for a line holds that one's lock, and the
    interpreter, when it ends, would wait for the lock.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._lines = deque[bytes]()
        self._ended = False

    async def next(self) -> bytes | None:
        """Return the next line that is not blank, or None at the end.

        One that is too long comes cut, just long enough to be seen as such.

        Raises:
            ConfigError: there is nothing that can be read.
        """
        while not self._lines and not self._ended:
            try:
                chunk = await trio.to_thread.run_sync(os.read, _STDIN, _CHUNK, abandon_on_cancel=True)
            except OSError as error:
                raise ConfigError(f"Standard input cannot be read: {error.strerror}.") from error
            self._ended = not chunk
            first, *others = chunk.split(b"\n")
            self._extend(first)
            for piece in others:
                self._end_line()
                self._extend(piece)
            if self._ended:
                self._end_line()
        return self._lines.popleft() if self._lines else None

    def _extend(self, piece: bytes) -> None:
        self._rest += piece[: LINE_LIMIT + 1 - len(self._rest)]

    def _end_line(self) -> None:
        if self._rest.strip():
            self._lines.append(bytes(self._rest))
        self._rest.clear()
