"""`strongroom "PROMPT"`: one turn, its answer on standard output.

Rule: nobody is there to be asked, so what would be asked about is denied, named on stderr, and the exit code is 1. The
turn is one of the daemon that runs, else of a private one; it is in the journal as any other, so `--continue` goes on
with it. What programs read is the same as a line of `batch`.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import msgspec

from supervisor.acp import extensions, schema
from supervisor.agent.receipts.receipt_text import receipt_lines
from supervisor.clients.batch.items import Result, summarize
from supervisor.clients.connection import requests
from supervisor.clients.connection.attachments import blocks_of, named_in
from supervisor.clients.connection.link import Link
from supervisor.clients.connection.link_events import LinkEvent, PermissionPrompt
from supervisor.clients.connection.spawn import StartingPrivate
from supervisor.clients.connection.start import connect_or_private
from supervisor.clients.piped_text import piped_text
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import Settings
from supervisor.display.command_text import text_of
from supervisor.display.escape import json_line, one_line
from supervisor.errors import ConfigError, DaemonRefused
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, TurnStarted
from supervisor.journal.journal import JournalEntry, open_journal

OutputFormat = Literal["text", "json", "stream-json"]

_LOOK: Final = 0.5
"""Seconds after which a wait begins anew, so that Ctrl-C is seen."""
_LAST_WORDS: Final = 15.0
"""Seconds that a turn has to end when it is stopped."""
_SHOWN: Final = 120
"""Characters of a denied call that are told."""
_RETRY: Final = 70
"""Of why the model is asked again: less than a row."""


class PromptOptions(msgspec.Struct, frozen=True):
    """What was typed; None leaves a value to the configuration."""

    prompt: str
    profile: str | None = None
    root: str | None = None
    """Absolute."""
    names: Names = NO_NAMES
    model: str | None = None
    mode: extensions.ModeName | None = None
    session: str | None = None
    """The id of a session to go on with, or the end of it."""
    continue_: bool = False
    """Go on with the newest session of this directory."""
    output: OutputFormat = "text"
    answer_schema: dict[str, Any] | None = None
    """The JSON Schema that the answer must be valid by."""
    check: str | None = None
    """The command that must pass where the turn changes something."""


_DOES: Final = {"Thinking": "thinking", "Executing": "running", "Suspended": "waiting"}
"""What is shown of a turn's states."""


class Printers(NamedTuple):
    """What prints a line: on standard output, and on stderr for a person, for good or until it goes on."""

    put: Callable[[str], None]
    warn: Callable[[str], None]
    progress: Callable[[str], None]


class PromptListener:
    """Hears the events of the turn, and denies what would be asked."""

    def __init__(self, output: OutputFormat, printers: Printers) -> None:
        self.denied: list[str] = []
        """The calls that a person would have been asked about."""
        self.session = ""
        self.failed: OSError | None = None
        """Why an event could not be printed; nothing is after it."""
        self._streams = output == "stream-json"
        self.printers = printers

    def hear(self, event: LinkEvent) -> None:
        match event:
            case PermissionPrompt(request=asked):
                self.denied.append(f"{asked.tool} {one_line(text_of(asked.tool, asked.arguments), _SHOWN)}".strip())
                event.decline("Nobody is there to be asked.")
            case schema.SessionUpdate() if self._streams and event.session_id == self.session:
                self._print({"type": "update", "update": event.update})
            case extensions.TurnState() if event.session_id == self.session:
                if self._streams:
                    self._print({"type": "state", "state": event.state, "retry": event.retry})
                    return
                with suppress(OSError):  # of a terminal that is gone
                    self.printers.progress(one_line(event.retry, _RETRY).rstrip(" .") or _DOES.get(event.state, ""))
            case _:
                pass

    def _print(self, event: dict[str, Any]) -> None:
        try:
            if self.failed is None:
                self.printers.put(_json(event))
        except OSError as error:  # for the main thread, which ends the turn
            self.failed = error


def ask_once(settings: Settings, options: PromptOptions, starting: StartingPrivate | None, printers: Printers) -> int:
    """Run the turn and print what came of it; return the exit code.

    Args:
        settings: as this process has them.
        options: what was typed.
        starting: a private daemon, where one starts already.
        printers: what people and programs read.

    Raises:
        ConfigError: nothing was asked.
        DaemonLost: the daemon has gone; the turn is in the journal, and is resumed when one starts.
        KeyboardInterrupt: the turn was cancelled.
        OSError: nothing more can be printed; the turn was cancelled, too.
    """
    blocks = _blocks(options.prompt, printers.warn)
    listener = PromptListener(options.output, printers)
    with connect_or_private(settings, listener.hear, "prompt", starting=starting) as connected:
        connected.warn()
        link = connected.link
        listener.session = session = _opened(link, options)
        with open_journal(settings.journal) as journal:
            before = journal.of_session(session)
            failure = _turn(link, listener, blocks, requests.turn_meta(options.answer_schema, options.check))
            entries = journal.of_session(session, before[-1].seq if before else 0)
        if failure is None:  # else a turn of somebody else's may run
            link.request("session/close", schema.SessionParams(session_id=session), msgspec.Raw)
    denied = listener.denied or _unasked(entries)
    return _told(_result(session, entries, failure), denied, options.output, printers)


def _opened(link: Link, options: PromptOptions) -> str:
    """Open the session, a new one or the one that is gone on with; return its id."""
    cwd = os.getcwd()
    meta = {extensions.OPTIONS: requests.chosen_options(options, origin="prompt", attended=False)}
    session = _earlier(link, options, cwd)
    if session is None:
        new = schema.NewSessionParams(cwd=cwd, meta=meta)
        return link.request("session/new", new, schema.NewSessionResult).session_id
    taken_up = schema.ReopenParams(session_id=session, cwd=cwd, meta=meta)
    facts = requests.session_facts(link.request("session/resume", taken_up, schema.SessionResult).meta, session)
    for option, value in requests.changes(options, facts):
        params = schema.SetOptionParams(session_id=session, config_id=option, value=value)
        link.request("session/set_config_option", params, schema.OptionsResult)
    return session


def _earlier(link: Link, options: PromptOptions, cwd: str) -> str | None:
    """Return the session to go on with, if any was asked for."""
    if options.session is None and not options.continue_:
        return None
    found: list[schema.SessionInfo] = []
    cursor: str | None = None
    for _ in range(1 if options.continue_ else requests.LISTED_PAGES):
        params = schema.ListParams(cwd=cwd if options.continue_ else None, cursor=cursor)
        page = link.request("session/list", params, schema.ListResult)
        found += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            break
    if options.session is None:
        session = requests.newest(found, options.names)
        if session is None:
            raise ConfigError("There is no session of this directory to continue. Leave out --continue.")
        return session
    info = requests.ending_in(options.session, found)
    return info.session_id if info is not None else options.session


def _turn(
    link: Link, listener: PromptListener, blocks: list[dict[str, Any]], meta: dict[str, Any] | None
) -> DaemonRefused | None:
    """Wait for the turn's end; return why there was none, where it was refused.

    Ctrl-C cancels it, and so does an event that cannot be printed.
    """
    params = schema.PromptParams(session_id=listener.session, prompt=blocks, meta=meta)
    future: Future[bytes] | None = None
    try:
        future = link.submit("session/prompt", params)
        _wait(future, listener)
    except (KeyboardInterrupt, OSError):
        link.cancel(listener.session)
        with suppress(NotYet, DaemonRefused):
            if future is None:  # Ctrl-C came while it was sent: the session's end waits for the turn's
                link.request("session/close", schema.SessionParams(session_id=listener.session), msgspec.Raw)
            else:
                future.result(_LAST_WORDS)
        raise
    except DaemonRefused as error:
        return error
    finally:
        with suppress(OSError):
            listener.printers.progress("")
    return None


def _wait(future: "Future[bytes]", listener: PromptListener) -> None:
    while True:
        if listener.failed is not None:
            raise listener.failed
        try:
            future.result(_LOOK)
        except NotYet:
            continue  # and a signal that came just before the wait is seen, or what could not be printed
        return


def _result(session: str, entries: Sequence[JournalEntry], failure: DaemonRefused | None) -> Result:
    """Return what came of the turn, from its facts.

    Raises:
        DaemonRefused: it never began.
    """
    if failure is not None and not any(isinstance(entry.fact, TurnStarted) for entry in entries):
        raise failure
    return summarize("", session, entries)


def _unasked(entries: Sequence[JournalEntry]) -> list[str]:
    """Return the calls that were denied because the daemon knew of nobody to ask; not those that may not be."""
    facts = [entry.fact for entry in entries]
    calls = {fact.call: fact for fact in facts if isinstance(fact, CallStarted)}
    asked = {fact.call for fact in facts if isinstance(fact, CallStarted | CallDecided) and fact.decision == "ask"}
    return [
        f"{calls[fact.call].tool} {one_line(calls[fact.call].arguments, _SHOWN)}".strip()
        for fact in facts
        if isinstance(fact, CallEnded) and fact.kind == "denied" and fact.call in asked
    ]


def _told(result: Result, denied: Sequence[str], output: OutputFormat, printers: Printers) -> int:
    """Print a result, and on stderr what is wrong with it; return the exit code."""
    whole = msgspec.json.decode(result.line())
    del whole["id"]
    if output == "text":
        if result.answer:
            printers.put(result.answer)
        elif result.status == "ok":
            printers.warn("note: the model's answer is empty")
    else:
        printers.put(_json({"type": "result", **whole} if output == "stream-json" else whole))
    if result.error is not None and output == "text":
        printers.warn(f"error: {result.error['message']} ({result.error['kind']})")
    if result.note and output == "text":
        printers.warn(f"note: {result.note}")
    for line in receipt_lines(result.receipt) if output == "text" else ():
        printers.warn(line)
    for each in denied:
        printers.warn(f"denied, because nobody is there to be asked: {each}")
    return 0 if result.status == "ok" and not denied else 1


def _json(value: Any) -> str:
    """Return a value as JSON on one line."""
    return json_line(value).rstrip("\n")


def _blocks(prompt: str, warn: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the prompt, with what stands in standard input before it.

    Raises:
        ConfigError: one of them is no text, both are empty, or an image that it names cannot go along.
    """
    context = piped_text(warn)
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("The prompt must be UTF-8.") from error
    given: list[dict[str, Any]] = [{"type": "text", "text": prompt}] if prompt.strip() else []
    given = [*blocks_of(named_in(prompt)), *given]
    if context.strip() and given:
        resource = {"uri": "stdin:", "mimeType": "text/plain", "text": context}
        return [{"type": "resource", "resource": resource}, *given]
    if not given and not context.strip():
        raise ConfigError("There is no prompt: write it as an argument, or to standard input.")
    return given or [{"type": "text", "text": context}]
