"""The agent in a Python session, plain or IPython or a notebook.

    >>> from supervisor.clients.repl import start, chat, history, clear
    >>> start(model="offline", root="vault")
    ('ok', 4711)
    >>> chat("read notes/idea.md")

Rule: what went wrong is a line and a value, not a traceback. The functions talk to one agent, which `start` opens;
`Agent` is for those who want several.
"""

import os
import sys
from queue import SimpleQueue
from typing import Any, Final, Self

import msgspec

from supervisor.acp import ours, schema
from supervisor.clients.link import Link, Question, decoded
from supervisor.clients.start import Connected, connect
from supervisor.config import Settings, load
from supervisor.errors import DaemonLost, DaemonRefused, StrongroomError
from supervisor.render import visible

Outcome = str | tuple[str, str]
""""ok", or ("error", kind)."""

_CLIENT: Final = "repl"
_NOTHING: Final = b"null"
"""The result where there was no turn to go on with."""
_SHOWN: Final = 10_000
"""Characters of a call's arguments that are shown before a person decides."""


def start(model: str | None = None, profile: str | None = None, root: str | None = None) -> tuple[str, int]:
    """Open a conversation with the agent; start its daemon if none runs.

    Args:
        model: "offline", "scripted:FILE", "claude-..."; default: the configured one, or offline without a key.
        profile: what the agent may use; default: the configured one.
        root: the directory it works on; default: the profile's own, beneath the current directory.

    Returns:
        ("ok", the daemon's pid). Called again, it ends the conversation and begins another.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be had.
    """
    return _the.start(model, profile, root)


def chat(text: str) -> Outcome:
    """Ask the agent something and print its answer as it comes.

    Returns:
        "ok", or ("error", kind) after one line that says what went wrong; Ctrl-C makes it ("error", "cancelled").

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _the.agent.chat(text)


def history() -> list[dict[str, Any]]:
    """Return the conversation so far, in order.

    Each is {"role": "user" | "assistant", "content"} or {"role": "tool", "name", "input", "output" | "error"}.

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _the.agent.history()


def clear() -> Outcome:
    """Begin anew: the same agent, an empty conversation. The old one stays in the journal.

    Raises:
        StrongroomError: there is no agent yet; call `start()`.
    """
    return _the.agent.clear()


class Agent:
    """A conversation with the agent. Use it in `with`, or `close` it.

    Args:
        model, profile, root: as `start` has them.

    Raises:
        StrongroomError: the daemon, the model, the profile or the root cannot be had.
    """

    def __init__(self, model: str | None = None, profile: str | None = None, root: str | None = None) -> None:
        self._settings: Settings = load()
        self._options = ours.SessionOptions(
            profile=profile, model=_absolute_model(model), root=_absolute(root), origin=_CLIENT
        )
        self._heard = _Heard()
        self._record = Record()
        self._connected = self._connect()
        try:
            self._session = self._open()
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

    @property
    def session(self) -> str:
        """The session's id, as `strongroom history` takes it."""
        return self._session

    def chat(self, text: str) -> Outcome:
        """As the function of that name."""
        try:
            if self._heard.is_lost:
                self._reconnect()
            self._record.said(text)
            prompt = schema.PromptParams(session_id=self._session, prompt=[{"type": "text", "text": text}])
            return self._turn("session/prompt", prompt)
        except KeyboardInterrupt:
            return _failed("cancelled", "Stopped before it began.")
        except DaemonRefused as error:
            return _failed(error.kind, str(error))
        except DaemonLost as error:
            self._heard.is_lost = True
            return _failed("daemon_lost", f"{error} The next chat() connects again.")
        except StrongroomError as error:
            return _failed("unavailable", str(error))

    def history(self) -> list[dict[str, Any]]:
        """As the function of that name."""
        return self._record.messages()

    def clear(self) -> Outcome:
        """As the function of that name."""
        self._leave()
        if self._heard.is_lost:
            self._connected.close()
            self._connected = self._connect()
        self._session = self._open()
        self._record = Record()
        return "ok"

    def close(self) -> None:
        """End the conversation; the daemon runs on."""
        self._leave()
        self._connected.close()

    # --- the connection -------------------------------------------------------------------------------------------

    @property
    def _link(self) -> Link:
        return self._connected.link

    def _connect(self) -> Connected:
        self._heard = _Heard()
        connected = connect(self._settings, self._heard, _CLIENT)
        for notice in connected.notices:
            _print(f"({notice})")
        return connected

    def _open(self) -> str:
        params = schema.NewSessionParams(cwd=os.getcwd(), meta={ours.OPTIONS: self._options})
        result = self._link.request("session/new", params, schema.NewSessionResult)
        _notify(result.meta)
        return result.session_id

    def _leave(self) -> None:
        try:
            self._link.request("session/close", schema.SessionParams(session_id=self._session), msgspec.Raw)
        except DaemonLost:
            self._heard.is_lost = True
        except StrongroomError:
            pass  # it was closed already

    def _reconnect(self) -> None:
        """Take the session up in the next daemon, with all that has happened, and let a turn that was cut off end."""
        self._connected.close()
        self._connected = self._connect()
        params = schema.TakeUpParams(session_id=self._session, cwd=os.getcwd(), meta={ours.OPTIONS: self._options})
        result = self._link.request("session/load", params, schema.SessionResult)
        _notify(result.meta)
        self._record = Record()
        for event in self._heard.so_far():
            self._record.take(event)
        self._turn(ours.CONTINUE_METHOD, schema.SessionParams(session_id=self._session))

    def _turn(self, method: str, params: schema.PromptParams | schema.SessionParams) -> Outcome:
        """Send what begins a turn, or goes on with one, and show what happens until its end."""
        self._heard.listen()
        future = self._link.submit(method, params)
        future.add_done_callback(lambda _future: self._heard.end())
        printer = _Printer()
        while True:
            try:
                event = self._heard.next()
                if event is None:
                    break
                self._record.take(event)
                printer.take(event)
                if isinstance(event, Question):
                    _decide(event)
            except KeyboardInterrupt:
                self._link.cancel(self._session)
        printer.end()
        result = future.result()
        if result != _NOTHING and decoded(result, schema.PromptResult).stop_reason == "cancelled":
            return _failed("cancelled", "The turn was cancelled.")
        return "ok"


_Event = schema.SessionUpdate | ours.TurnState | Question


class _Heard:
    """What the link hears, for whoever chats: it is printed, and a person asked, in that one's thread."""

    def __init__(self) -> None:
        self.is_lost = False
        self._events: SimpleQueue[_Event | None] = SimpleQueue()
        self._awaited = False

    def listen(self) -> None:
        """Somebody begins to wait for a turn's end."""
        self.so_far()
        self._awaited = True

    def next(self) -> _Event | None:
        """Wait for the next event; None is the turn's end."""
        return self._events.get()

    def so_far(self) -> list[_Event]:
        """Return the events that are there, without waiting."""
        events = [self._events.get() for _ in range(self._events.qsize())]
        return [event for event in events if event is not None]

    def end(self) -> None:
        """The turn that was waited for has its answer."""
        self._awaited = False
        self._events.put(None)

    def updated(self, update: schema.SessionUpdate) -> None:
        """Keep it."""
        self._events.put(update)

    def entered(self, state: ours.TurnState) -> None:
        """Keep it."""
        self._events.put(state)

    def asked(self, question: Question) -> None:
        """Keep it for the person, or decline where none waits."""
        if self._awaited:
            self._events.put(question)
        else:
            question.reject()

    def withdrawn(self, question: Question) -> None:
        """Nothing to do: an answer that comes too late is not sent."""

    def lost(self, _why: str) -> None:
        """Whoever waits for an answer is told by that."""
        self.is_lost = True


class Record:
    """A conversation, made of the updates of its session, live or replayed."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}
        self._message = ""
        """The id of the message that is being added to; "" while none is."""

    def messages(self) -> list[dict[str, Any]]:
        """Return a copy of it."""
        return [dict(message) for message in self._messages]

    def said(self, text: str) -> None:
        """Take what the person asks, which the daemon does not tell the one who asked."""
        self._messages.append({"role": "user", "content": text})
        self._message = ""

    def take(self, event: _Event) -> None:
        """Take one more event into account."""
        match event:
            case ours.TurnState() if event.retry and self._message:
                del self._messages[-1]  # the model is asked again, and says it anew
                self._message = ""
            case schema.SessionUpdate(update=update):
                self._add(update)
            case _:
                return

    def _add(self, update: schema.Update) -> None:
        match update:
            case schema.UserMessageChunk(content=content):
                self.said(content.text)
            case schema.AgentMessageChunk(content=content, message_id=number):
                self._answer(content.text, number or "answer")
            case schema.ToolCall():
                facts = _facts(update)
                name = facts.tool if facts is not None else update.title
                call = {"role": "tool", "name": name, "input": update.raw_input}
                self._calls[update.tool_call_id] = call
                self._messages.append(call)
                self._message = ""
            case schema.ToolCallUpdate() if update.tool_call_id in self._calls:
                self._change(self._calls[update.tool_call_id], update)
            case _:
                return

    def _answer(self, text: str, number: str) -> None:
        if number == self._message:
            self._messages[-1]["content"] += text
        else:
            self._messages.append({"role": "assistant", "content": text})
            self._message = number

    def _change(self, call: dict[str, Any], update: schema.ToolCallUpdate) -> None:
        if update.raw_input is not None:
            call["input"] = update.raw_input
        text = "".join(each.content.text for each in update.content or () if isinstance(each, schema.Content))
        match update.status:
            case "completed":
                call["output"] = text
            case "failed":
                facts = _facts(update)
                call["error"] = {"kind": facts.kind if facts is not None else None, "message": text}
            case _:
                return


class _Printer:
    """Prints an answer as it comes, a tool's call as a line of its own."""

    def __init__(self) -> None:
        self._in_line = False
        self._message: str | None = None

    def take(self, event: _Event) -> None:
        """Print what a person wants to see of an event."""
        match event:
            case ours.TurnState(retry=why) if why:
                self._note(f"({visible(why)})")
            case Question(review=review):
                self._note(f"{review.tool} {visible(review.arguments[:_SHOWN])}")
            case schema.SessionUpdate(update=schema.AgentMessageChunk() as chunk):
                if chunk.message_id != self._message:
                    self.end()
                    self._message = chunk.message_id
                _print(visible(chunk.content.text), end="")
                self._in_line = not chunk.content.text.endswith("\n")
            case schema.SessionUpdate(update=schema.ToolCall(title=title)):
                self._note(f"[{visible(title)}]")
            case _:
                return

    def _note(self, line: str) -> None:
        self.end()
        _print(line)

    def end(self) -> None:
        """End the line that was begun."""
        if self._in_line:
            _print("")
            self._in_line = False


class _TheAgent:
    """The one that the functions of this module talk to."""

    def __init__(self) -> None:
        self._agent: Agent | None = None

    @property
    def agent(self) -> Agent:
        """The agent that was started.

        Raises:
            StrongroomError: none was.
        """
        if self._agent is None:
            raise StrongroomError("There is no agent yet: call start() first.")
        return self._agent

    def start(self, model: str | None, profile: str | None, root: str | None) -> tuple[str, int]:
        """Open an agent in place of the one before."""
        before, self._agent = self._agent, None
        if before is not None:
            before.close()
        self._agent = Agent(model, profile, root)
        return ("ok", self._agent.pid)


_the: Final = _TheAgent()


def _decide(question: Question) -> None:
    """Ask the person about a call that has been shown; where nobody can be asked, decline."""
    reason = visible(question.review.reason)
    if sys.stdin is None or not sys.stdin.isatty():
        _print(f"(declined: {reason}; nobody can be asked here)")
        question.reject()
        return
    said = "n"
    try:
        said = input(f"{reason}. Let it run? [y/N, or why not] ").strip()
    except EOFError:
        _print("")
    finally:
        if said.lower() in ("y", "yes"):
            question.allow()
        else:
            question.reject("" if said.lower() in ("", "n", "no") else said)


def _failed(kind: str, message: str) -> Outcome:
    _print(f"error ({kind}): {visible(message)}")
    return ("error", kind)


def _facts(update: schema.ToolCall | schema.ToolCallUpdate) -> ours.CallFacts | None:
    meta = (update.meta or {}).get(ours.CALL)
    return None if meta is None else msgspec.convert(meta, ours.CallFacts)


def _notify(meta: dict[str, Any] | None) -> None:
    facts = (meta or {}).get(ours.OPTIONS)
    for notice in msgspec.convert(facts, ours.SessionFacts).notices if facts is not None else ():
        _print(f"({visible(notice)})")


def _absolute(path: str | None) -> str | None:
    """Return a path as the daemon understands it, which stands in another directory."""
    return None if path is None else os.path.abspath(os.path.expanduser(path))


def _absolute_model(name: str | None) -> str | None:
    kind, colon, file = (name or "").partition(":")
    return f"{kind}:{_absolute(file)}" if kind == "scripted" and colon else name


def _print(text: str, end: str = "\n") -> None:
    sys.stdout.write(text + end)
    sys.stdout.flush()
