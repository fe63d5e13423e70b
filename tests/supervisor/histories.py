"""A journal that only remembers, scripts for the scripted model, and the judge of what a model is shown."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from supervisor.agent.models.model import Model
from supervisor.agent.models.scripted import open_script
from supervisor.agent.transcript import Transcript
from supervisor.errors import JournalError
from supervisor.journal.facts import (
    CallDecided,
    CallEnded,
    CallStarted,
    Fact,
    Replied,
    SessionOpened,
    TurnEnded,
    TurnStarted,
    decode,
)
from supervisor.journal.journal import Journal, JournalEntry
from tests.messages_server import fault_in
from workers.wire.messages import Context

Line = dict[str, Any]


class Memory:
    """Keeps what is committed together; what else a journal has beside it is in `folder`.

    Numbers in `refused` (from 1) are the appends that fail, as on a full disk.
    """

    def __init__(self, folder: Path, kept: Sequence[tuple[Fact, ...]] = (), refused: Sequence[int] = ()) -> None:
        self.path = folder / "journal.db"
        self.kept = list(kept)
        self.appends = 0
        self._refused = refused

    @property
    def facts(self) -> list[Fact]:
        return [fact for together in self.kept for fact in together]

    def append(self, _session: str, *new: Fact) -> None:
        self.appends += 1
        if self.appends in self._refused:
            raise JournalError("journal_io", "The journal cannot be used: the disk is full.")
        self.kept.append(new)

    def begin(self, rows: Sequence[tuple[str, Sequence[bytes]]]) -> None:
        for session, bodies in rows:
            self.append(session, *map(decode, bodies))

    def commit(self) -> None:
        """Nothing: what was begun is remembered."""

    def of_session(self, session: str) -> list[JournalEntry]:
        return [JournalEntry(number, session, float(number), fact) for number, fact in enumerate(self.facts, 1)]

    def as_journal(self) -> Journal:
        return cast("Journal", self)


def fault_in_history(messages: Sequence[Any]) -> str | None:
    """Say what the Messages API would refuse if the user went on from here, or None."""
    going_on = list(messages)
    if not going_on or going_on[-1]["role"] == "assistant":
        going_on.append({"role": "user", "content": [{"type": "text", "text": "next"}]})
    return fault_in({"model": "m", "max_tokens": 1, "stream": True, "messages": going_on})


def fault_in_facts(facts: Sequence[Fact]) -> str | None:
    """Say what is wrong with a session that is at rest, or None.

    Turns have one end each, calls one outcome each and one commit at most, and what the model is shown is valid. A
    commit after which a call is begun anew was none: its worker had ended before. Only what was committed may have an
    unknown outcome.
    """
    turns = [fact.turn for fact in facts if isinstance(fact, TurnStarted)]
    if [fact.turn for fact in facts if isinstance(fact, TurnEnded)] != turns:
        return f"turns {turns} have other ends"
    wanted = [
        block["id"]
        for fact in facts
        if isinstance(fact, Replied)
        for block in fact.content
        if block["type"] == "tool_use"
    ]
    wanted += [fact.call for fact in facts if isinstance(fact, CallStarted) and fact.check]
    outcomes = [fact.call for fact in facts if isinstance(fact, CallEnded)]
    if sorted(outcomes) != sorted(wanted):
        return f"calls {wanted} have the outcomes {outcomes}"
    committed: list[str] = []
    for fact in facts:
        if isinstance(fact, CallStarted) and fact.again and fact.call in committed:
            committed.remove(fact.call)
        if isinstance(fact, CallDecided) and fact.committed:
            committed.append(fact.call)
    if len(set(committed)) != len(committed):
        return f"calls {committed} were committed, one of them twice"
    rehearsed = {fact.call for fact in facts if isinstance(fact, CallStarted) and fact.rehearsed}
    unknown = {fact.call for fact in facts if isinstance(fact, CallEnded) and fact.kind == "outcome_unknown"}
    if unknown & rehearsed - set(committed):
        return f"of the calls {committed} that were committed, {unknown} are said to be unknown"
    started = [fact.call for fact in facts if isinstance(fact, CallStarted) and not fact.again]
    if len(set(started)) != len(started) or not set(started) <= set(wanted):
        return f"calls {wanted} were started as {started}"
    return fault_in_history(Transcript(facts).messages)


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}


def opening_fact(
    root: Path, model: str = "offline", profile: str = "project", *tools: str, attended: bool = True
) -> SessionOpened:
    """Return the fact that opens an editor's session on a root; it may read unless other tools are named."""
    context = Context(working_directory=str(root))
    return SessionOpened(profile, model, context, tools or ("read_file",), "acp", "0", (), str(root), attended)


READ: Final[Line] = {"text": "I look.", "calls": [call("read_file", path="a.txt")]}
MARK: Final = call("edit_file", path="log.txt", old="|end", new="|one|end")
"""A call whose effect shows how often it happened."""
DONE: Final[Line] = {"text": "Done."}
ASKING: Final = (
    "[profiles.asking]\nroot = '.'\ntools = ['read_file', 'write_file', 'edit_file']\nask = ['write_file']\n"
)
"""A profile in which writing a file is asked about."""


def script(folder: Path, *lines: Line) -> Path:
    file = folder / "script.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def scripted(folder: Path, *lines: Line) -> Model:
    return open_script(script(folder, *lines))
