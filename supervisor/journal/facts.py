"""Facts, the rows of the journal: each a thing that happened and cannot un-happen.

Rule: a fact is written before what it allows (a call starts, an answer is shown) and never changed. A conversation is
a fold over its facts (`supervisor.agent.transcript`). Fields are added, with a default; old journals stay readable.
"""

import re
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from supervisor.journal.kept_content import KeptContent
from supervisor.journal.receipt import Receipt
from supervisor.rules.rule import Mode, Rule
from workers.changes.effects import Effects
from workers.wire.messages import Context, ErrorKind

Scope = Literal["once", "session", "always"]
"""For how long a person's yes holds."""


SourceKind = Literal["person", "file", "agent_file", "foreign_file", "page", "output", "attachment", "foreign_tool"]
"""Who wrote a text: the person; in a file the person, an agent (in any session), or somebody else (a dependency, a root
of others); a page of the web; a command; what an editor sent along; a tool that is not ours."""


SuspensionKind = Literal["loop", "budget", "limit"]
"""Why a turn is suspended: a call repeats without anything new; a budget holds no further request; the model's server
says that a limit is reached, or is down, and nobody has said whether another model is asked."""


Author = Literal["", "agent", "tainted"]
"""Of a file: nobody that is known of, an agent, or one that had seen foreign text before."""


class Source(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Where a text that the model was shown comes from."""

    kind: SourceKind
    name: str
    """Its path, address, command or query."""
    digest: bytes = b""
    """SHA-256 of the text as it was shown."""
    size: int = 0
    """Characters of it."""
    file: bytes = b""
    """SHA-256 of the whole file, where that was seen."""
    foreign: bool = False
    """Whether it may say what a stranger wrote, whoever put it there."""


class _Fact(msgspec.Struct, frozen=True, tag_field="fact", tag=True, omit_defaults=True):
    pass


class _SetupFact(_Fact, frozen=True):
    profile: str
    model: str
    context: Context
    tools: tuple[str, ...]


class _TurnFact(_Fact, frozen=True):
    turn: int


class _CallFact(_TurnFact, frozen=True):
    call: str
    """Its id, unique in the session."""


class ForkPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where another session was forked: its facts up to a row are those that a new one begins with."""

    session: str
    turn: int
    """At whose end; 0 is before the first one."""
    row: int
    """Of the journal: the last that counts."""
    title: str = ""
    """Of that session, as listings show it."""


class SessionOpened(_SetupFact, frozen=True):
    """A session began. `origin` says for whom: "batch:RUN:ITEM", "call", ..."""

    origin: str
    version: str
    degraded: tuple[str, ...] = ()
    cwd: str = ""
    """The client's directory, absolute; the root may be beneath it. Empty where there is no client."""
    attended: bool = True
    """Whether somebody is there to be asked; else what policy asks about is denied."""
    mode: Mode = "edits"
    fork: ForkPoint | None = None
    """Whose conversation it goes on with; None where it is a new one."""


class SessionChanged(_SetupFact, frozen=True):
    """The person chose another profile or model between two turns; both count from the next turn on."""


class ModeChanged(_Fact, frozen=True):
    """The person chose which changes are asked about; it counts from the next call on, also within a turn."""

    mode: Mode
    by: str = ""


OptionName = Literal["effort", "max_tokens", "temperature"]
"""What can be chosen of a model's replies."""


class OptionChosen(_Fact, frozen=True):
    """The person chose how the model replies; it counts from the next request on, also within a turn."""

    option: OptionName
    value: str
    """Empty: as the configuration and the catalogue say, again."""
    by: str = ""


class SessionDeleted(_Fact, frozen=True):
    """The person deleted the session: no listing shows it any more. The journal forgets nothing."""


class BatchStarted(_Fact, frozen=True):
    """A batch began to write `output` (an absolute path), or got another budget; `run` is in its sessions' origin."""

    run: str
    output: str
    budget: dict[str, float] | None = None


class FaultsAllowed(_Fact, frozen=True):
    """A daemon began with a fault plan: until its end, what workers do may be what `plan` asks for."""

    plan: str
    """The absolute path of its file."""
    digest: str
    """SHA-256 of that file."""
    seed: int


class InstructionsFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file of instructions, as it was read."""

    path: str
    """Relative to the root; absolute for the person's own."""
    digest: str = ""
    """SHA-256 of what was read of it, as hexadecimal digits; empty where it was not."""
    size: int = 0
    """Bytes of that."""
    text: str = ""
    """What the model is told; nothing where the file does not count."""
    problem: str = ""
    """Why it does not count, or not all of it: a clause."""


class InstructionsRead(_TurnFact, frozen=True):
    """The model is told these files' instructions from here on, in place of what they said before.

    It stands before the turn's start, or after the step that has touched their directories.
    """

    files: tuple[InstructionsFile, ...] = ()
    gone: tuple[str, ...] = ()
    """Paths of those that are there no more."""


class TurnStarted(_TurnFact, frozen=True):
    """A user's line was accepted."""

    text: str
    sources: tuple[Source, ...] = ()
    """Of its parts one after the other, where not all of it was typed; their sizes add up to its length."""
    answer_schema: dict[str, Any] | None = None
    """The JSON Schema that the final answer must be valid by; None where it may be anything."""
    contents: tuple[KeptContent, ...] = ()
    """Images and documents that came with it."""
    refused: bool = False
    """One of those could not be taken: the turn ends without the model being asked."""
    check: str = ""
    """The command that must pass before the turn ends well, where it changes something; empty: none."""


class TurnResumed(_TurnFact, frozen=True):
    """A turn goes on that another process had left open, or that was suspended.

    Those since its last reply are counted: a turn may be what kills processes.
    """

    by: str = ""
    """Whose word it was, for example "console"; empty where it goes on by itself."""


class ModelSwitched(_TurnFact, frozen=True):
    """Another model is asked until the turn's end, or is not, where a person said no; that holds for the session."""

    before: str
    """The model that gave no reply."""
    model: str
    because: str
    approved: bool | None = None
    """What the person said, where one was asked."""
    by: str = ""


class TurnSuspended(_TurnFact, frozen=True):
    """A turn goes no further for now, and stays open; nothing of it runs."""

    kind: SuspensionKind
    why: str
    """Sentences for a person: what happened, and what to do."""
    until: float = 0.0
    """When it goes on by itself, in seconds since the epoch; 0: when a person says so, or what is missing is there."""
    tokens: int = 0
    """Of a budget: what the next request takes at least."""
    since: float = 0.0
    """Of a limit: when the first wait for the next reply began."""


class BudgetReserved(_TurnFact, frozen=True):
    """A request is made that may use so much, where a budget counts; negative: the last one was never billed.

    The next reply's own figures take its place; where none comes, it counts in full.
    """

    tokens: int
    cost: int = 0
    """In `amount.UNIT`ths of the currency."""


class BudgetChanged(_Fact, frozen=True):
    """The person gave this session's turn, until its end, or the session itself another budget."""

    of: Literal["turn", "session"]
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    by: str = ""


class ModelRetried(_TurnFact, frozen=True):
    """A request failed and is made again after `delay` seconds."""

    attempt: int
    kind: str
    message: str
    delay: float
    text: str = ""
    """What was shown of the reply that failed, and of its thinking."""
    thinking: str = ""


class ReplyCut(_TurnFact, frozen=True):
    """No more comes of a reply of which people have read something; the model sees its text where no other followed."""

    step: int
    text: str
    thinking: str = ""


CompactionCause = Literal["near", "full", "asked"]
"""Why a conversation is compacted: it came near its model's window, a server said that it is full, a person asked."""

SummaryFailure = Literal[
    "", "no_reply", "timeout", "budget", "cut", "called_tools", "empty", "nonsense", "too_long", "not_wanted"
]
"""Why a compaction has no summary; the last one: another that was just made has one, or little is left out."""


class Compacted(_TurnFact, frozen=True):
    """What was said before a step is kept in short from here on. What that comes to follows from this and the facts."""

    step: int
    """The first reply that stays as it is, with all that came after it."""
    size: int
    """Bytes that stand for all before it, at most; the line of an open turn is whole all the same."""
    result: int
    """Bytes that stay of each result that comes after it."""
    because: CompactionCause
    before: int = 0
    """Tokens of the request that came next, without it; estimated where no server has counted them."""
    after: int = 0
    """With it; estimated."""
    summary: str = ""
    """In a model's words, what of it the rest does not say."""
    failure: SummaryFailure = ""
    model: str = ""
    """Was asked for the summary; empty where none was."""
    usage: dict[str, int] = {}
    """Of that request."""
    cost: int = 0
    """In `amount.UNIT`ths of the currency of `[budgets]`, where the price is known."""
    ms: int = 0
    remark: str = ""
    """What the person wants to be kept in mind."""
    by: str = ""


class ContentsRefused(_TurnFact, frozen=True):
    """A model's server has refused a request with these images and documents, and taken it without them.

    From here on this model reads words in their place.
    """

    model: str
    contents: tuple[KeptContent, ...]
    because: str
    """The server's words."""


class ToolsChanged(_TurnFact, frozen=True):
    """The model is offered other tools from its next request on: a category's workers failed, or work again."""

    category: str
    tools: tuple[str, ...]
    """Those of the session's tools that the category runs."""
    because: str = ""
    """Why they are gone, and when their workers are tried again; empty: they are back."""


class ReplyOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who wrote a reply, and how it must come back to them."""

    provider: str
    """The beginning of the model's name: "anthropic", "openai", ..., or the operator's name of a provider."""
    model: str
    """As the server calls it."""
    format: str = ""
    """Of `items`; empty where the reply's content is as the server sent it."""
    items: list[dict[str, Any]] = []
    """The reply as the server sent it, with what only it can read: signatures, encrypted reasoning."""
    answering: str = ""
    """The model that the server says it answered with, where that is another."""


class Replied(_TurnFact, frozen=True):
    """The model's reply, complete. `content` is what the model is shown again: blocks of the Messages API."""

    step: int
    content: list[dict[str, Any]]
    stop_reason: str
    usage: dict[str, int]
    origin: ReplyOrigin | None = None
    refused: str = ""
    """Why it is not taken for the turn's answer: what is wrong with it by the schema, as the model is told."""
    check_failed: str = ""
    """The same, where the turn's check has failed: how, and the end of what it printed."""
    cost: int = 0
    """In `amount.UNIT`ths of the currency of `[budgets]`, where the price is known."""
    ms: int = 0
    """How long it took."""
    left_out: int = 0
    """How many images and documents its request had words for, because there was no room or they are not kept."""


class Flow(msgspec.Struct, frozen=True):
    """What an address says to its site beyond what was known before, in a session that has read something private."""

    bits: float
    way: str
    """How it was arrived at (`supervisor.tools.exfiltration.address_price`)."""
    over: bool = False
    """The session's budget does not cover it, so that a person was to decide. A yes begins the count anew."""


class CallStarted(_CallFact, frozen=True):
    """A tool call was judged, and starts if `decision` is "allow"."""

    tool: str
    arguments: str
    """The model's raw JSON text."""
    effect: bool
    decision: Literal["allow", "ask", "deny"]
    reason: str
    approved: bool | None = None
    """What the person said, where one was asked."""
    edited: str | None = None
    """The arguments as the person changed them, raw JSON; then these are what runs."""
    remark: str = ""
    """What the person added, for the model."""
    decided_by: str = ""
    """Who was asked, for example "console"."""
    again: bool = False
    """The same call, with other arguments or after its rehearsal was lost: the one before has changed nothing."""
    rehearsed: bool = False
    """It changes nothing before a `CallDecided` says that it is committed."""
    scope: Scope = "once"
    rule: Rule | None = None
    """That the person made with the answer: a program that may start; or None."""
    flow: Flow | None = None
    """Of a call that fetches an address; None where none is counted."""
    typed_by: str = ""
    """The client whose person typed it, for example "console"; the model did not ask for it, and is told of it then."""
    check: bool = False
    """It is the turn's check, which the model did not ask for: it is rehearsed, and nothing of it is committed."""


class CallDecided(_CallFact, frozen=True):
    """It was decided whether a call changes what its rehearsal, or its text, says.

    With `committed` it changed the root from here on, unless the call is begun anew afterwards: then its worker had
    ended before it learned of this, or what it had done was taken back. A call with an effect that has none of these
    has changed nothing.
    """

    decision: Literal["allow", "ask", "deny"]
    """The policy's, about the effects; for a call without a rehearsal, about the text."""
    reason: str
    committed: bool
    effects: Effects | None = None
    """What was rehearsed, cut where there is very much of it; None where nothing was."""
    approved: bool | None = None
    """What the person said, where one was asked."""
    remark: str = ""
    decided_by: str = ""
    scope: Scope = "once"
    rule: Rule | None = None
    """That the person made with this answer; or None."""
    covered_by: str = ""
    """The rule that decided, as a sentence."""
    edited: str | None = None
    """The person asked for these arguments instead; what they come to is the next such fact."""
    kept: str = ""
    """The name of what was kept for undo; empty where nothing was."""
    not_kept: int = 0
    """Files whose old content was not kept."""
    unrehearsed: str = ""
    """Why it was not rehearsed."""
    network: bool = False
    """It could use the network that its profile names."""
    unconfined: bool = False
    """It ran outside of the sandbox."""
    undoes: str = ""
    """The call that this one takes back."""
    undoes_also: tuple[str, ...] = ()
    """Others that it takes back with that one, the last first."""
    cannot_undo: str = ""
    """Why it cannot be undone, or not all of it: a clause."""
    files: bytes = b""
    """The marks of what it wrote and `effects` does not list (`agent_files.marks_of`)."""
    unlisted: bool = False
    """It wrote more than its rehearsal told one by one."""
    foreign: bool = False
    """The session had been shown foreign text before."""
    own_words: bool = False
    """Of what it printed, models are shown the own words of package managers alone."""
    number: int = 0
    """By which its worker's commit is known, if that is killed; 0 where there was none."""
    end: "CallEnded | None" = None
    """How the call ends if all of it is made and nobody sees that; None where it is not known before."""


class RuleRevoked(_Fact, frozen=True):
    """A rule that a person made in this session, with the call `call`, counts no longer."""

    rule: str
    """Its id, as `strongroom rules` shows it."""
    call: str
    by: str = ""


class CallEnded(_CallFact, frozen=True):
    """A tool call has its one outcome. With `ok`, `content` is the result; else the error's message."""

    tool: str
    ok: bool
    content: str
    form: Literal["text", "json"] = "text"
    note: str = ""
    kind: ErrorKind | None = None
    details: dict[str, str | int] = {}
    seconds: float = 0.0
    sources: tuple[Source, ...] = ()
    """Of what it says: the first of all of it, the others of lines of files within. None for our own words."""
    contents: tuple[KeptContent, ...] = ()
    """Images and documents that it has found."""
    changed_by_others: bool = False
    """Others have changed the root since the call first had this result; looked up where it repeats itself."""


class TurnQuestioned(_TurnFact, frozen=True):
    """A person was asked whether a turn goes on, of which they had rejected so many calls, and has answered."""

    rejected: int
    approved: bool
    decided_by: str = ""
    remark: str = ""


class TurnEnded(_TurnFact, frozen=True):
    """A turn has its one end. `kind` is a model error's or "cancelled", "interrupted", "internal"."""

    status: Literal["ok", "error", "cancelled"]
    answer: str
    stop_reason: str = ""
    kind: str = ""
    message: str = ""
    note: str = ""
    """What the person is to know of it, a sentence: files that it wrote, and that they will run."""
    receipt: Receipt | None = None
    """What it did, and what its answer claims without that; None where there is nothing to say."""


class Rewound(_TurnFact, frozen=True):
    """The conversation stands as at the end of `turn` from here on: at once, or when `call` has ended well.

    The numbers of the turns that stand no more are not given again.
    """

    call: str = ""
    """The undo that takes back what was changed since; "" where nothing was. Its own undo takes this back, too."""
    by: str = ""


class Unreadable(_Fact, frozen=True):
    """A row that cannot be read: made while reading, and never written."""

    why: str


Fact = (
    SessionOpened
    | SessionChanged
    | ModeChanged
    | OptionChosen
    | SessionDeleted
    | BatchStarted
    | FaultsAllowed
    | InstructionsRead
    | TurnStarted
    | TurnResumed
    | TurnSuspended
    | ModelSwitched
    | BudgetReserved
    | BudgetChanged
    | ModelRetried
    | ReplyCut
    | Compacted
    | ContentsRefused
    | ToolsChanged
    | Replied
    | CallStarted
    | CallDecided
    | RuleRevoked
    | CallEnded
    | TurnQuestioned
    | TurnEnded
    | Rewound
    | Unreadable
)

UNKNOWN: Final = SessionOpened("?", "", Context(working_directory=""), (), "lost", "")
"""Stands for an opening that cannot be read."""

_TEXTS: Final = re.compile(rb'"(profile|model|working_directory|cwd|origin|version)":("(?:[^"\\]|\\.)*")')

_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Fact]] = msgspec.json.Decoder(Fact)


def effective(call: CallStarted) -> str:
    """Return the arguments that run: the person's, where one changed them, else the model's."""
    return call.arguments if call.edited is None else call.edited


def encode(fact: Fact) -> bytes:
    """Return the fact as one JSON document."""
    return _encoder.encode(fact)


def decode(body: bytes) -> Fact:
    """Return the fact of a JSON document.

    Raises:
        msgspec.DecodeError: not a fact that this version knows.
    """
    try:
        return _decoder.decode(body)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def opening_in(body: bytes) -> SessionOpened | None:
    """Return what is left of an opening that cannot be decoded, so that its session can be: where it works, and how."""
    found = {}
    for key, text in _TEXTS.findall(body) if b'"SessionOpened"' in body else ():
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            found[key.decode()] = msgspec.json.decode(text, type=str)
    root = found.pop("working_directory", "")
    if not root.startswith("/") or "profile" not in found:
        return None
    given = {"model": "", "origin": "lost", "version": ""} | found
    return SessionOpened(context=Context(working_directory=root), tools=(), **given)
