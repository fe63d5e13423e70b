"""The command line where a daemon runs that the tests of a module share, with a model whose lines each test brings."""

import io
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.journal.journal import JournalEntry
from tests.daemon_process import DaemonProcess
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer
from tests.script_server import Recorded, Response

Begun = SimpleQueue[subprocess.Popen[bytes]]
"""Has a process for who hears of its deeds: that may be before it is known here that it was started."""


class Guest(ForkedStrongroom):
    """The command line where that daemon runs. Its facts are those of sessions that came after it."""

    def __init__(self, daemon: DaemonProcess, server: MessagesServer, folder: Path) -> None:
        super().__init__(daemon.home, folder)
        self.daemon = daemon
        self._server = server
        self._known = {entry.session for entry in super().entries}

    def play(self, responses: Iterable[Response], on_request: Callable[[Recorded], None] = lambda _: None) -> None:
        """Let the model behind every name answer so from here on."""
        self._server._on_request = on_request
        self._server._script.clear()
        self._server.requests.clear()
        self._server.add(*responses)

    @property
    def requests(self) -> list[Recorded]:
        """What the model was asked since `play`."""
        return self._server.requests

    @property
    def entries(self) -> list[JournalEntry]:
        return [entry for entry in super().entries if entry.session not in self._known]


class Errors(io.StringIO):
    """Standard error; before anything is written there, a deed is done."""

    def __init__(self, deed: Callable[[], None]) -> None:
        super().__init__()
        self._deed = deed

    def write(self, text: str, /) -> int:
        self._deed()
        return super().write(text)


def asked(**review: Any) -> tuple[PermissionPrompt, list[schema.PermissionResult]]:
    """Return a question, as a client hears it, and the list that takes its answers."""
    answers: list[schema.PermissionResult] = []
    params = schema.PermissionParams(
        session_id="s",
        tool_call=schema.PermissionCall(tool_call_id="c"),
        options=[],
        meta={extensions.REVIEW: extensions.ApprovalRequest(reason="why", **review)},
    )
    return PermissionPrompt("ask-1", params, answers.append), answers
