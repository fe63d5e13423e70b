"""Conversations with the agent as Python functions.

    >>> from supervisor.clients import repl
    >>> repl.start(model="offline", root="vault")
    ('ok', 4711)
    >>> repl.chat("read idea.md")

Rule: an error is a line and a value, not a traceback. The functions talk to one agent, which `start` opens; `Agent` is
for those who want several.
"""

import os
from typing import Any, Final, Self

import msgspec

from supervisor.acp import extensions, schema
from supervisor.clients.connection import requests
from supervisor.clients.connection.link import Link, decoded
from supervisor.clients.connection.link_events import PermissionPrompt
from supervisor.clients.connection.start import ConnectedDaemon, connect
from supervisor.clients.repl.dialogue import EventQueue, Printer, decide, put
from supervisor.clients.repl.message_history import MessageHistory
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import Settings, load
from supervisor.display.escape import visible
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError

Outcome = str | tuple[str, str]
""""ok", or ("error", kind)."""

_CLIENT: Final = "repl"
_NOTHING: Final = b"null"
"""The result where there was no turn to go on with."""


_agents: Final[list["Agent"]] = []
"""The one that the functions of this module talk to, once it was started."""


def start(
    model: str | None = None,
    profile: str | None = None,
    root: str | None = None,
    *,
    group: str | None = None,
    technology: str | None = None,
    environment: str | None = None,
) -> tuple[str, int]:
    """Open a conversation with the agent; start its daemon if none runs.

    Args:
        model: "offline", "scripted:FILE", "claude-..."; default: the configured one, or offline without a key.
        profile: what the agent may use; default: the configured one.
        root: the directory it works on; default: the profile's own, beneath the current directory.
        group: of the profile "librarian"; with `technology` what it works on.
        technology: default: that of the current directory.
        environment: what the agent is told of where it is; default: the configured one; "" for none.

    Returns:
        ("ok", the daemon's pid). Called again, it ends the conversation and begins another.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be used.
    """
    while _agents:
        _agents.pop().close()
    _agents.append(Agent(model, profile, root, Names(group, technology, environment)))
    return ("ok", _agents[0].pid)


def chat(text: str) -> Outcome:
    """Ask the agent something and print its answer as it comes.

    Returns:
        "ok", or ("error", kind) after one line that says what went wrong; Ctrl-C makes it ("error", "cancelled").

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _current().chat(text)


def history() -> list[dict[str, Any]]:
    """Return the conversation so far, in order.

    Each is {"role": "user" | "assistant", "content"} or {"role": "tool", "name", "input", "output" | "error"}.

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _current().history()


def clear() -> Outcome:
    """Begin anew: the same agent, an empty conversation. The old one stays in the journal.

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _current().clear()


class Agent:
    """A conversation with the agent. Use it in `with`, or `close` it.

    Args:
        model, profile, root: as `start` has them.
        names: of a repository; group, technology and environment as `start` has them.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be used.
    """

    def __init__(
        self, model: str | None = None, profile: str | None = None, root: str | None = None, names: Names = NO_NAMES
    ) -> None:
        self._settings: Settings = load()
        self._options = extensions.SessionOptions(
            profile=profile,
            model=requests.absolute_model(model) if model is not None else None,
            root=requests.absolute(root),
            origin=_CLIENT,
            **names._asdict(),
        )
        self._history = MessageHistory()
        self._connected = self._connect()
        try:
            self.session = self._open()
            """Its id, as `strongroom history` takes it."""
        except BaseException:
            self._connected.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        daemon = self._link.daemon
        return daemon.pid if daemon is not None else 0

    def chat(self, text: str) -> Outcome:
        """As the function of that name."""
        try:
            if self._events.is_lost:
                self._reconnect()
            self._history.said(text)
            return self._turn("session/prompt", requests.prompt(self.session, text))
        except KeyboardInterrupt:
            return _failed("cancelled", "Stopped before it began.")
        except DaemonRefused as error:
            return _failed(error.kind, str(error))
        except DaemonLost as error:
            self._events.is_lost = True
            return _failed("daemon_lost", f"{error} The next chat() connects again.")
        except StrongroomError as error:
            return _failed("unavailable", str(error))

    def history(self) -> list[dict[str, Any]]:
        """As the function of that name."""
        return self._history.messages()

    def clear(self) -> Outcome:
        """As the function of that name."""
        self._leave()
        if self._events.is_lost:
            self._connected.close()
            self._connected = self._connect()
        self.session = self._open()
        self._history = MessageHistory()
        return "ok"

    def close(self) -> None:
        """End the conversation; the daemon runs on."""
        self._leave()
        self._connected.close()

    # --- the connection -------------------------------------------------------------------------------------------

    @property
    def _link(self) -> Link:
        return self._connected.link

    def _connect(self) -> ConnectedDaemon:
        self._events = EventQueue()
        connected = connect(self._settings, self._events.hear, _CLIENT)
        for notice in connected.notices:
            put(f"({notice})")
        return connected

    def _open(self) -> str:
        params = schema.NewSessionParams(cwd=os.getcwd(), meta={extensions.OPTIONS: self._options})
        result = self._link.request("session/new", params, schema.NewSessionResult)
        self._notify(requests.session_facts(result.meta, result.session_id))
        return result.session_id

    def _notify(self, facts: extensions.SessionFacts) -> None:
        for notice in facts.notices:
            put(f"({visible(notice)})")

    def _leave(self) -> None:
        try:
            self._link.request("session/close", schema.SessionParams(session_id=self.session), msgspec.Raw)
        except DaemonLost:
            self._events.is_lost = True
        except StrongroomError:
            pass  # it was closed already

    def _reconnect(self) -> None:
        """Take the session up in the next daemon, with all that has happened, and let a turn that was cut off end."""
        self._connected.close()
        self._connected = self._connect()
        params = schema.ReopenParams(session_id=self.session, cwd=os.getcwd(), meta={extensions.OPTIONS: self._options})
        result = self._link.request("session/load", params, schema.SessionResult)
        self._notify(requests.session_facts(result.meta, self.session))
        self._history = MessageHistory()
        for event in self._events.drain():
            self._history.take(event)
        self._turn(extensions.CONTINUE_METHOD, schema.SessionParams(session_id=self.session))

    def _turn(self, method: str, params: schema.PromptParams | schema.SessionParams) -> Outcome:
        """Send what begins a turn, or goes on with one, and show what happens until its end."""
        self._events.begin_turn()
        future = self._link.submit(method, params)
        future.add_done_callback(lambda _future: self._events.end_turn())
        printer = Printer()
        while True:
            try:
                event = self._events.next_event()
                if event is None:
                    break
                self._history.take(event)
                printer.take(event)
                if isinstance(event, PermissionPrompt):
                    decide(event)
            except KeyboardInterrupt:
                self._link.cancel(self.session)
        printer.end_line()
        result = future.result()
        if result != _NOTHING and decoded(result, schema.PromptResult).stop_reason == "cancelled":
            return _failed("cancelled", "The turn was cancelled.")
        return "ok"


def _current() -> Agent:
    if not _agents:
        raise StrongroomError("There is no agent yet: call start() first.")
    return _agents[0]


def _failed(kind: str, message: str) -> Outcome:
    put(f"error ({kind}): {visible(message)}")
    return ("error", kind)
