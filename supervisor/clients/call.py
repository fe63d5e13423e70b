"""`strongroom call`: one tool, or a stream of tool calls, without a model.

Rule: the same policy, journal, pool and confinement as a model's call, for the daemon makes them. Answers come in the
order of the questions, each as soon as it is there; a bad line gets an error line of its own and the rest go on.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import msgspec

from supervisor.acp import extensions, schema
from supervisor.acp.jsonrpc import LineBuffer, TooLong
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import LinkEvent, PermissionPrompt, decline
from supervisor.clients.connection.spawn import StartingPrivate
from supervisor.clients.connection.start import connect_or_private
from supervisor.config.profiles import Profile
from supervisor.config.settings import Settings
from supervisor.display.escape import json_line
from supervisor.errors import ConfigError, DaemonRefused

LINE_LIMIT: Final = 64 * 2**20
"""Bytes of one line of standard input."""

_UNSEEN: Final = "--approve allows what a rehearsal has shown, and this cannot be rehearsed."
_STDIN: Final = 0
_CHUNK: Final = 2**16


Answer = dict[str, msgspec.Raw]
"""A call's outcome as scripts read it, its members as they were written: "ok", and "content" or "error"."""

Call = Callable[[str, str], Answer]
"""Runs one call: the name of a tool, and its arguments as JSON."""


def is_ok(answer: Answer) -> bool:
    """Say whether the tool did what it was asked."""
    return bytes(answer["ok"]) == b"true"


@contextmanager
def open_calls(
    settings: Settings,
    profile: Profile,
    *,
    approve: bool,
    mode: extensions.ModeName | None = None,
    starting: StartingPrivate | None = None,
) -> Iterator[Call]:
    """Open a session of single calls in the daemon that runs, or in one of its own.

    Args:
        settings: as this process has them; a daemon that runs has its own.
        profile: resolved.
        approve: answer yes to what a person would be asked.
        mode: which changes that is.
        starting: one of its own, where that starts already.

    Raises:
        ConfigError, JournalError: nothing was done.
    """
    listener = approve_shown if approve else decline
    with connect_or_private(settings, listener, "call", starting=starting) as connected:
        connected.warn()
        more = {"origin": "call", "attended": approve, "modelless": True, "mode": mode}
        options = requests.options(profile, **more)
        params = schema.NewSessionParams(cwd=profile.root, meta={extensions.OPTIONS: options})
        result = connected.link.request("session/new", params, schema.NewSessionResult)
        requests.same_root(profile, requests.session_facts(result.meta, result.session_id).root)
        yield partial(_call, connected.link, result.session_id)


def _call(link: Link, session: str, tool: str, arguments: str) -> Answer:
    """Run one call.

    Raises:
        JournalError: it cannot be recorded; nothing was done.
        DaemonLost: the daemon has gone; the call may have had its effect or not.
    """
    params = extensions.CallParams(session_id=session, tool=tool, arguments=arguments)
    try:
        result = link.request(extensions.CALL_METHOD, params, extensions.CallResult)
    except DaemonRefused as error:
        if error.kind != "too_large":
            raise
        return _failed(error.kind, str(error))
    return decoded(bytes(result.answer), Answer)


def approve_shown(event: LinkEvent) -> None:
    """Approve as the person who typed --approve: once, and only what a rehearsal has shown."""
    match event:
        case PermissionPrompt(request=extensions.ApprovalRequest(stage="direct")):
            event.reject(_UNSEEN)
        case PermissionPrompt():
            event.allow()
        case _:
            return


def call_once(
    settings: Settings,
    profile: Profile,
    tool: str,
    arguments: str,
    *,
    approve: bool,
    mode: extensions.ModeName | None = None,
    starting: StartingPrivate | None = None,
) -> Answer:
    """Run one call; `starting` as for `open_calls`.

    Raises:
        ConfigError, JournalError: nothing was done.
        DaemonLost: the daemon has gone; the call may have had its effect or not.
        KeyboardInterrupt: the daemon cancels the call, since nobody waits for it; its outcome is in the journal.
    """
    try:
        f"{tool}{arguments}".encode()
    except UnicodeEncodeError as error:
        raise ConfigError("The tool and its arguments must be UTF-8.") from error
    with open_calls(settings, profile, approve=approve, mode=mode, starting=starting) as call:
        return call(tool, arguments)


class _Id(msgspec.Struct, frozen=True):
    id: msgspec.Raw = msgspec.Raw(b"null")
    """What can be said of a line that is no question."""


class _StdinCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: msgspec.Raw
    """Whatever JSON it is, it comes back as it was written."""
    tool: str
    arguments: msgspec.Raw


def call_many(
    settings: Settings,
    profile: Profile,
    *,
    approve: bool,
    mode: extensions.ModeName | None = None,
    starting: StartingPrivate | None = None,
) -> bool:
    """Answer every line of standard input on standard output; return whether all were ok.

    Raises:
        ConfigError, JournalError, DaemonLost: nothing more was done.
        KeyboardInterrupt: as `call_once`.
    """
    if sys.stdin is None or sys.stdout is None:  # then the descriptors 0 and 1 are something else's
        raise ConfigError("Standard input or output is closed.")
    well = True
    with open_calls(settings, profile, approve=approve, mode=mode, starting=starting) as call:
        for line in _lines():
            answer = _answer(call, line)
            well = well and is_ok(answer)
            sys.stdout.write(json_line(answer))
            sys.stdout.flush()
    return well


def _answer(call: Call, line: bytes | TooLong) -> Answer:
    """Return the members of the answer to one line."""
    if isinstance(line, TooLong):
        return _bad(_Id().id, f"A line of more than {LINE_LIMIT} bytes; it was skipped.")
    try:
        question = msgspec.json.decode(line, type=_StdinCall)
        arguments = bytes(question.arguments).decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shape = '{"id": ..., "tool": "NAME", "arguments": {...}}'
        shown = line[:120].decode("utf-8", "backslashreplace")
        return _bad(_id_of(line), f"Not a call: {error}. A line is {shape}.", line=shown)
    return {"id": question.id} | call(question.tool, arguments)


def _bad(number: msgspec.Raw, message: str, **details: str) -> Answer:
    return {"id": number} | _failed("invalid_arguments", message, **details)


def _failed(kind: str, message: str, **details: str | int) -> Answer:
    members = {"ok": False, "error": {"kind": kind, "message": message, **details}}
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in members.items()}


def _id_of(line: bytes) -> msgspec.Raw:
    try:
        return msgspec.json.decode(line, type=_Id).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Id().id


def _lines() -> Iterator[bytes | TooLong]:
    """Yield the lines of standard input that are not blank, as they come.

    Raises:
        ConfigError: there is nothing that can be read.
    """
    lines = LineBuffer(LINE_LIMIT)
    chunk = b"-"
    while chunk:
        try:
            chunk = os.read(_STDIN, _CHUNK)
        except OSError as error:
            raise ConfigError(f"Standard input cannot be read: {error.strerror}.") from error
        for line in lines.feed(chunk or b"\n"):  # the last line needs no end
            if isinstance(line, TooLong) or line.strip():
                yield line
