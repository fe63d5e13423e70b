"""A daemon that the tests of a module share, and the model behind it, whose lines each test brings itself."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

from supervisor.acp import extensions, schema
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.journal.journal import JournalEntry
from tests.daemon_process import DaemonProcess
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, Recorded, Response


class Shared:
    """The daemon. Use it in `with`."""

    def __init__(self, place: Path) -> None:
        self._server = MessagesServer(on_request=self._come)
        self._place = place
        self._listener: Callable[[Recorded], None] = lambda _: None

    def __enter__(self) -> Self:
        self._server.__enter__()
        self.daemon = DaemonProcess(self._place / "home", self._place, ANTHROPIC_BASE_URL=self._server.url)
        self.daemon.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.daemon.__exit__(None)
        self._server.__exit__(None, None, None)

    @property
    def requests(self) -> list[Recorded]:
        """What the model was asked since `play`."""
        return self._server.requests

    def play(self, responses: Iterable[Response], on_request: Callable[[Recorded], None] = lambda _: None) -> None:
        """Let the model behind every name answer so from here on."""
        self._listener = on_request
        self._server._script.clear()
        self._server.requests.clear()
        self._server.add(*responses)

    def _come(self, request: Recorded) -> None:
        self._listener(request)


class Guest(ForkedStrongroom):
    """The command line where that daemon runs. Its facts are those of sessions that came after it."""

    def __init__(self, shared: Shared, folder: Path) -> None:
        super().__init__(shared.daemon.home, folder)
        self.daemon = shared.daemon
        self.play = shared.play
        self._shared = shared
        self._known = {entry.session for entry in super().entries}

    @property
    def requests(self) -> list[Recorded]:
        return self._shared.requests

    @property
    def entries(self) -> list[JournalEntry]:
        return [entry for entry in super().entries if entry.session not in self._known]


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
