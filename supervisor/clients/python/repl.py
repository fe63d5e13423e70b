"""`start`, `chat`, `history` and `clear`: one conversation, as functions of a Python session.

    >>> import strongroom
    >>> strongroom.start(model="offline", root="vault")
    ('ok', 4711)
    >>> strongroom.chat("read idea.md")

Rule: an error of a turn is a line and a value, not a traceback. The functions talk in one conversation, which `start`
opens.
"""

from typing import Any, Final, Self

from supervisor.clients.python.blocking import BlockingClient, BlockingSession
from supervisor.clients.python.dialogue import Dialogue, put
from supervisor.clients.python.typed_events import PathText, TurnResult
from supervisor.config.repositories import Names
from supervisor.display.escape import visible
from supervisor.errors import DaemonLost, StrongroomError

Outcome = str | tuple[str, str]
"""The word "ok", or ("error", kind)."""

_conversations: Final[list["Chat"]] = []
"""The one that the functions of this module talk in, once it was started."""


def start(
    model: str | None = None,
    profile: str | None = None,
    root: PathText | None = None,
    *,
    group: str | None = None,
    technology: str | None = None,
    environment: str | None = None,
    home: PathText | None = None,
) -> tuple[str, int]:
    """Open a conversation with the agent; start its daemon if none runs.

    Args:
        model: "offline", "scripted:FILE", "claude-..."; default: the configured one, or offline without a key.
        profile: what the agent may use; default: the configured one.
        root: the directory it works on; default: the profile's own, beneath the current directory.
        group: of the profile "librarian"; with `technology` what it works on.
        technology: default: that of the current directory.
        environment: what the agent is told of where it is; default: the configured one; "" for none.
        home: of the daemon; default: what the environment says.

    Returns:
        ("ok", the daemon's pid). Called again, it ends the conversation and begins another.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be used.
    """
    while _conversations:
        _conversations.pop().close()
    _conversations.append(Chat(model, profile, root, Names(group, technology, environment), home))
    return ("ok", _conversations[0].pid)


def chat(text: str) -> Outcome:
    """Ask the agent something and print its answer as it comes.

    Returns:
        "ok", or ("error", kind) after one line that says what went wrong; Ctrl-C makes it ("error", "cancelled").

    Raises:
        StrongroomError: there is no conversation yet; call `start()`.
    """
    return _current().chat(text)


def history() -> list[dict[str, Any]]:
    """Return the conversation so far, in order.

    Each is {"role": "user" | "assistant", "content"} or {"role": "tool", "name", "input", "output" | "error"}.

    Raises:
        StrongroomError: there is no conversation yet; call `start()`.
    """
    return _current().history()


def clear() -> Outcome:
    """Begin anew: the same agent, an empty conversation. The old one stays in the journal.

    Raises:
        StrongroomError: there is no conversation yet; call `start()`.
    """
    return _current().clear()


def is_started() -> bool:
    """Say whether there is a conversation."""
    return bool(_conversations)


class Chat:
    """A conversation on a terminal or in a notebook, with the arguments of `start`. Use it in `with`, or `close` it.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be used.
    """

    def __init__(
        self,
        model: str | None = None,
        profile: str | None = None,
        root: PathText | None = None,
        names: Names | None = None,
        home: PathText | None = None,
    ) -> None:
        self._profile = profile
        self._root = root
        self._names = names or Names(None, None, None)
        self._dialogue = Dialogue()
        self._client = BlockingClient(home, model, self._dialogue.decide)
        for notice in self._client.notices:
            put(f"({visible(notice)})")
        try:
            self.session = self._open()
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The daemon's process id."""
        return self._client.pid()

    def chat(self, text: str) -> Outcome:
        """As the function of that name."""
        turn = self.session.ask(text)
        ended = TurnResult("ok")
        while True:
            try:
                event = next(turn, None)
            except KeyboardInterrupt:
                if turn.began:
                    continue  # it was cancelled, and its end comes
                return _failed("cancelled", "Stopped before it began.")
            except DaemonLost as error:
                return _failed(error.kind, f"{error} The next chat() connects again.")
            except StrongroomError as error:
                return _failed(error.kind, str(error))
            if event is None:
                break
            self._dialogue.take(event)
            ended = event if isinstance(event, TurnResult) else ended
        self._dialogue.end_line()
        match ended.status:
            case "cancelled":
                return _failed("cancelled", "The turn was cancelled.")
            case "error":
                return _failed(ended.kind, ended.message)
            case _:
                return "ok"

    def history(self) -> list[dict[str, Any]]:
        """As the function of that name."""
        return self.session.history()

    def clear(self) -> Outcome:
        """As the function of that name."""
        self.session.close()
        self.session = self._open()
        return "ok"

    def close(self) -> None:
        """End the conversation; the daemon runs on."""
        self._client.close()

    def _open(self) -> BlockingSession:
        session = self._client.open(root=self._root, profile=self._profile, names=self._names)
        for notice in session.facts.notices:
            put(f"({visible(notice)})")
        return session


def _current() -> Chat:
    if not _conversations:
        raise StrongroomError("There is no conversation yet: call start() first.")
    return _conversations[0]


def _failed(kind: str, message: str) -> Outcome:
    put(f"error ({kind}): {visible(message)}")
    return ("error", kind)
