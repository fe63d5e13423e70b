"""Extensions of Strongroom to the Agent Client Protocol: methods and `_meta` keys that start with `_strongroom/`.

Rule: additions only; a client that knows none of them is served in full. All of them are announced in
`agentCapabilities._meta["_strongroom/extensions"]`, and notifications of ours go only to clients that say in
`clientCapabilities._meta["_strongroom/client"]` that they know them.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from supervisor.acp.schema import Object, OfSession, PermissionParams, PermissionResult

# --- keys of `_meta` -----------------------------------------------------------------------------------------------

CLIENT: Final = "_strongroom/client"
"""In clientCapabilities: true says that the client knows our notifications, and may answer with an edited input."""
ANSWERS_ONLY: Final = "_strongroom/answers_only"
"""In clientCapabilities: true says that the client wants no updates of sessions, but what it is asked and answered."""
KEY_VARIABLES: Final = "_strongroom/key_variables"
"""In initialize's result: the names of the variables that the daemon takes as `ClientVariables.keys`."""
EXTENSIONS: Final = "_strongroom/extensions"
"""In agentCapabilities: the methods and keys that there are."""
DAEMON: Final = "_strongroom/daemon"
"""In initialize's result: `Daemon`."""
OPTIONS: Final = "_strongroom/session"
"""In session/new: `SessionOptions`. In results of session/new, load and resume: `SessionFacts`. In session/list, with a
session that has them: {group, technology}."""
EDITED: Final = "_strongroom/edited_input"
"""In a permission's result: the arguments as the person changed them, a JSON object."""
REMARK: Final = "_strongroom/remark"
"""In a permission's result: why, in the person's words; the model is told."""
SCOPE: Final = "_strongroom/scope"
"""In a permission's result: for how long a yes holds, `Scope`; more than "once" only with `ApprovalRequest.covers`."""
RULE: Final = "_strongroom/rule"
"""In a permission's result, with `SCOPE`: what the person made of `ApprovalRequest.rule`, as `EDITABLE` names it."""
UNCONFINED: Final = "_strongroom/unconfined"
"""In a permission's result: true lets this one command run unconfined. Only with `ApprovalRequest.escalation`."""
REVIEW: Final = "_strongroom/review"
"""In a permission's params: `ApprovalRequest`, what is asked about, and why."""
TURN: Final = "_strongroom/turn"
"""In a prompt's result: `TurnSummary`."""
FORK_TURN: Final = "_strongroom/fork_turn"
"""In session/fork: the number of the turn at whose end the session is forked; by default the last that has ended."""
ANSWER_SCHEMA: Final = "_strongroom/answer_schema"
"""In a prompt: the JSON Schema that its final answer must be valid by."""
TURN_CHECK: Final = "_strongroom/turn_check"
"""In a prompt: the command that must pass before the turn ends well, where it changes something; "" for none."""
CALL: Final = "_strongroom/call"
"""In tool_call and tool_call_update: `CallFacts`."""

BUDGETS: Final = "_strongroom/budgets"
"""In usage_update: a list of `BudgetUse`, where there are budgets."""
SUSPENDED: Final = "_strongroom/suspended"
"""In the agent_thought_chunk that tells of it: `Suspension`, why a turn goes no further for now."""
COMPACTION: Final = "_strongroom/compaction"
"""In the agent_thought_chunk that tells of it: `CompactionDone`."""

# --- methods -------------------------------------------------------------------------------------------------------

STATUS_METHOD: Final = "_strongroom/status"
"""{} -> `Status`."""
RELOAD_METHOD: Final = "_strongroom/reload"
"""{} -> `ReloadResult`: the configuration was read again, for what is opened from then on."""
WHY_METHOD: Final = "_strongroom/why"
"""{toolCallId, sessionId?} -> everything that the journal knows of one call."""
CALL_METHOD: Final = "_strongroom/call"
"""`CallParams` -> `CallResult`: one tool, no model."""
CHECK_METHOD: Final = "_strongroom/check"
"""`SessionOptions` -> `SessionCheck`: whether a session could be opened so, before anything is; else an error."""
CONTINUE_METHOD: Final = "_strongroom/continue"
"""`ContinueParams` -> a prompt's result, or null: resume a turn that was interrupted, or wait for the one that runs."""
UNDO_METHOD: Final = "_strongroom/undo"
"""`UndoParams` -> `UndoResult`: take back what calls of a session have changed."""
REWIND_METHOD: Final = "_strongroom/rewind"
"""`RewindParams` -> `RewindResult`: talk and files go back to the end of a turn; or what that would come to."""
RULES_METHOD: Final = "_strongroom/rules"
"""`RulesParams` -> `RulesResult`: the rules that count in a session; one of them revoked, or one kept."""
COMPACT_METHOD: Final = "_strongroom/compact"
"""`CompactParams` -> `CompactResult`: keep the older part of a conversation in short, from here on."""
PRUNE_METHOD: Final = "_strongroom/prune"
"""`PruneParams` -> `PruneResult`: tell which sessions nobody has used for long, or delete such."""
FIND_METHOD: Final = "_strongroom/find"
"""`FindParams` -> `FindResult`: the files of a session's root that fit a few letters best."""
SEARCH_METHOD: Final = "_strongroom/search"
"""`SearchParams` -> `SearchResult`: where the journal holds some words, in all sessions or in some."""
ATTACH_METHOD: Final = "_strongroom/attach"
"""`AttachParams` -> `AttachResult`: files of a session's root, read for a prompt that names them."""
INBOX_METHOD: Final = "_strongroom/inbox"
"""No parameters -> `InboxResult`: the questions of all sessions that wait for an answer."""
ANSWER_METHOD: Final = "_strongroom/answer"
"""`AnswerParams` -> `AnswerResult`: answer one of those, without taking part in its session."""
TURN_STATE: Final = "_strongroom/turn_state"
"""Notification, `TurnState`: a turn of the session has entered a state."""
VARIABLES: Final = "_strongroom/variables"
"""Notification of a client, at any time: what of the person's environment holds for the sessions that it opens."""

DROPPED: Final = "_strongroom/dropped"
"""Notification: this client reads too slowly and is about to be dropped; nothing of the session is lost."""

ANNOUNCED: Final = (
    *(
        EDITED,
        REMARK,
        SCOPE,
        UNCONFINED,
        REVIEW,
        OPTIONS,
        VARIABLES,
        KEY_VARIABLES,
        TURN,
        CALL,
        SUSPENDED,
        FORK_TURN,
        BUDGETS,
        TURN_STATE,
        DROPPED,
    ),
)
"""Keys and notifications that the daemon announces, besides its methods."""


class Daemon(Object, frozen=True):
    """The process at the other end."""

    pid: int
    version: str
    home: str
    model: str
    profile: str
    private: bool = False


ModeName = Literal["ask", "edits", "plan"]


class SessionOptions(Object, frozen=True):
    """How a session shall be, where it is not by default. `root` wins over what the profile makes of `cwd`."""

    profile: str | None = None
    model: str | None = None
    root: str | None = None
    group: str | None = None
    """Of the profile `librarian`: with `technology` what its root is found by; by default what `cwd` lies in."""
    technology: str | None = None
    environment: str | None = None
    """The configured one by default; "" is none."""
    origin: str = "acp"
    attended: bool = True
    """False: nobody is there to be asked; what policy asks about is denied."""
    mode: ModeName | None = None
    """Which changes are asked about; `edits` by default."""
    modelless: bool = False
    """True: a session of single calls (`_strongroom/call`)."""
    batch_budget: dict[str, float] | None = None
    """Of the batch that it is for, in place of the configured one: `tokens`, `cost`, `seconds`."""
    variables: dict[str, str] | None = None
    """Of the person's environment: PATH, by which commands find programs; where version managers and environments
    are; LANG, TZ, JAVA_HOME and files of certificates. Others are ignored; by default, those that the client sent once
    for all its sessions (`VARIABLES`), else the daemon's own."""


class ClientVariables(Object, frozen=True):
    """What a client tells of the person's environment."""

    variables: dict[str, str]
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    """Of the variables that `KEY_VARIABLES` names: keys of models' providers, and their servers. Never recorded."""

    def __repr__(self) -> str:
        return f"ClientVariables({self.variables!r}, ...)"


class SessionCheck(Object, frozen=True):
    """What `SessionOptions` come to. `model` is the name that the journal will hold."""

    profile: str
    root: str
    model: str


class Suspension(Object, frozen=True):
    """Why a turn goes no further for now. It stays open; `/go`, typed as a prompt, lets it go on."""

    kind: str
    """As in `TurnSuspended` of the journal: "loop", ..."""
    why: str
    until: float | None = None
    """When it goes on by itself, in seconds since the epoch."""


class BudgetUse(Object, frozen=True):
    """What was used of one budget."""

    of: str
    """"turn", "session", "batch" or "day"."""
    used: str
    """In words: "12,000 of 500,000 tokens"."""


class SessionFacts(OfSession, frozen=True):
    """What a session is."""

    profile: str
    model: str
    root: str
    tools: tuple[str, ...]
    context: dict[str, str] = msgspec.field(default_factory=dict)
    """What the agent and every tool are told about where they are."""
    state: str = "-"
    turns: int = 0
    mode: str = "edits"
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """What was chosen of the model's replies: effort, max_tokens, temperature; without those that are as by default."""
    suspended: Suspension | None = None
    notices: tuple[str, ...] = ()
    """Sentences that the person should see, such as that the model is not a real one."""


Stage = Literal["call", "effects", "direct", "network", "turn", "switch", "narrow", "refused"]
"""What is asked about: the call as a text; what its rehearsal has changed; whether it may run on the root itself, for
it cannot be rehearsed; whether it may be rehearsed again with the network that its profile names; whether a command
that was refused something runs on the real system, which takes `UNCONFINED`: any other answer leaves it as it is."""

Scope = Literal["once", "session", "always"]


class ChangedName(Object, frozen=True):
    """One name that would be another, or gone. Nothing here is escaped."""

    path: str
    what: str
    """added, modified, deleted, replaced, mode, attributes or times."""
    kind: str = "file"
    about: str = ""
    """What it is and was, in a few words."""
    protected: str = ""
    """Why this path is asked about by name."""
    diff: str = ""
    """Unified, of text alone."""
    diff_left_out: str = ""
    """Why there is no diff, or not all of it."""
    encoding: str = ""
    """What the diff was decoded from; empty for UTF-8."""
    unseen: str = ""
    """Why this change cannot be shown in full; empty if it can."""
    tracked: bool = False
    """It is deleted or replaced, and git tracks it, or that cannot be known."""
    ignored: bool = False
    """Git ignores it, and nobody would be asked about it alone: it is merely counted."""


class BlockedAttempt(Object, frozen=True):
    """Something that was tried, and refused by the sandbox."""

    kind: str
    """network or path."""
    what: str
    count: int = 1


class ProposedEffects(Object, frozen=True):
    """What a call would change. `totals` count all changes, `left_out` those that are not listed."""

    changes: list[ChangedName] = msgspec.field(default_factory=list)
    totals: dict[str, int] = msgspec.field(default_factory=dict)
    left_out: dict[str, int] = msgspec.field(default_factory=dict)
    refused: list[BlockedAttempt] = msgspec.field(default_factory=list)
    refused_left_out: int = 0
    lacked: str = ""
    """What it was refused by what it printed, a clause; only where `ApprovalRequest.escalation` offers a way."""
    cannot_undo: str = ""
    """Why a commit of it could not be undone, or not all of it: a clause."""
    traffic: str = ""
    """What it has sent to which host of its network, and what came back: a clause."""
    unseen: int = 0
    """Changes that cannot be shown in full, or are not listed: they want a yes of their own."""
    git: str = ""
    """What became of repositories, in git's words: a clause."""
    packages: dict[str, str] = msgspec.field(default_factory=dict)
    """Directories of packages in which much changes, each with how much: a clause."""
    rehearsed_in: str = ""
    """Where it ran, where that was not an overlay of the root: a clause."""


class ApprovalRequest(Object, frozen=True):
    """A call that a person decides about. `arguments` is the JSON text that would run, exactly."""

    tool: str
    arguments: str
    reason: str
    editable: bool = True
    stage: Stage = "call"
    effects: ProposedEffects | None = None
    """With the stage "effects": exactly these are committed after a yes."""
    covers: str = ""
    """What a yes for longer than once would allow, as a sentence; empty where there is no such yes."""
    rule: dict[str, Any] = msgspec.field(default_factory=dict)
    """The rule that `covers` says, by the keys of `[[rules]]`; empty where there is none."""
    escalation: bool = False
    """Whether the person may let this one command run outside of the sandbox."""


class Decided(Object, frozen=True):
    """What became of the effects of a call."""

    committed: bool
    changed: str = ""
    """What, counted in words."""
    by: str = ""
    """Who decided; empty where nobody was asked."""
    scope: Scope = "once"
    covered_by: str = ""
    """The rule that decided, as a sentence."""
    kept: bool = False
    """Whether it can be undone."""
    not_kept: int = 0
    """Files whose old content was not kept."""
    unconfined: bool = False
    undoes: str = ""
    """The call that this one takes back."""
    cannot_undo: str = ""
    """Why it cannot be undone, or not all of it: a clause."""
    differences: list[ChangedName] = msgspec.field(default_factory=list)
    """Of the texts that it has changed, as far as the journal has them; told when it has ended."""


class CallFacts(Object, frozen=True):
    """What our own clients show of a call."""

    tool: str
    arguments: str = ""
    decision: str = ""
    reason: str = ""
    kind: str | None = None
    """The error's, where it failed."""
    note: str = ""
    seconds: float = 0.0
    edited: str | None = None
    decided: Decided | None = None
    """What became of its effects, once that is known."""


class TurnSummary(Object, frozen=True):
    """How a turn ended, or that it is suspended: then `kind` and `message` say why."""

    turn: int
    status: Literal["ok", "error", "cancelled", "suspended"]
    answer: str
    kind: str = ""
    message: str = ""
    steps: int = 0
    note: str = ""
    receipt: dict[str, Any] | None = None
    """What the turn did, and what its answer claims without that: `supervisor.journal.receipt.Receipt`."""


class TurnState(OfSession, frozen=True):
    """A turn's state, as in `supervisor.agent.turn`; `retry` says why the model is asked again."""

    state: str
    turn: int
    retry: str = ""
    suspended: Suspension | None = None
    """With the state "Suspended"."""
    other_model: str = ""
    """The model that the turn asks in place of the session's own."""


class ContinueParams(OfSession, frozen=True):
    """`_strongroom/continue`; with `go`, a suspended turn goes on, as with `/go`."""

    go: bool = False


class ReloadResult(Object, frozen=True):
    """What became of reading the configuration again; with a `problem` what was read before stays in force."""

    file: str
    problem: str = ""


class WhyParams(Object, frozen=True):
    """`_strongroom/why`."""

    tool_call_id: str
    session_id: str | None = None


class CallParams(OfSession, frozen=True):
    """`_strongroom/call`. `arguments` is JSON text, exactly as the worker shall decode it."""

    tool: str
    arguments: str
    typed: bool = False
    """A person typed it: clients see it as any other call, and the model is told of it with the next line."""


class CallResult(Object, frozen=True):
    """One call's outcome: `answer` is the document that `strongroom call` prints."""

    call: str
    answer: msgspec.Raw


class RulesParams(OfSession, frozen=True):
    """`_strongroom/rules`. `revoke` is the number or the id of a rule that a person made, `keep` that of an offer."""

    revoke: str = ""
    keep: str = ""


class RulesResult(OfSession, frozen=True):
    """What to show, a rule a line."""

    lines: tuple[str, ...]


class CompactParams(OfSession, frozen=True):
    """`_strongroom/compact`. `remark` is what shall be kept in mind."""

    remark: str = ""


class CompactResult(OfSession, frozen=True):
    """What came of it, a sentence; `compacted` is false where nothing could be left out, or a turn runs first."""

    compacted: bool
    said: str


class CompactionDone(Object, frozen=True):
    """What of a conversation's older part is kept in short from here on. Sizes are in tokens, estimated."""

    because: Literal["near", "full", "asked"]
    before: int
    after: int
    summary: str = ""
    """A model's words, and nobody else's."""
    failure: str = ""
    """Why there is none, a word; empty where there is one."""
    model: str = ""
    """Was asked for it."""
    cost: float = 0.0
    """In the currency of the budgets; 0 where the price is not known."""


class PruneParams(Object, frozen=True):
    """`_strongroom/prune`. `before` is in seconds since the epoch; `delete` has the ids that a person has agreed to."""

    before: float
    delete: tuple[str, ...] | None = None


class OldSession(OfSession, frozen=True):
    """A session that nobody has used since then, in seconds since the epoch."""

    title: str
    updated_at: float
    kept: int
    """Bytes of what is kept for it alone: images and documents, and what undo needs."""
    stays: str = ""
    """Why it is not deleted, a clause; empty where it is."""


class PruneResult(Object, frozen=True):
    """What became of those that were to be deleted; without such, all that are so old. The oldest first."""

    sessions: list[OldSession]


class SearchParams(Object, frozen=True):
    """`_strongroom/search`. Without a session, or the end of its id, and without an absolute directory: everywhere."""

    words: str
    """As a person types them: "phrases", beginnings*, and -words that must not be there."""
    session_id: str = ""
    directory: str = ""
    most: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 20


class FoundText(OfSession, frozen=True):
    """Where words stand. Nothing here is escaped."""

    title: str
    """The session's."""
    turn: int
    """0 where it was no turn: a call that a person has typed."""
    at: float
    """Seconds since the epoch."""
    who: str
    """"you", "model", "tool", or "note" for what the end of a turn says."""
    tool: str
    call: str
    text: str
    """A line of what was said, cut."""
    marks: tuple[tuple[int, int], ...]
    """Where the words stand in it: from which character to which."""


class SearchResult(Object, frozen=True):
    """The newest first."""

    found: list[FoundText]


class FindParams(OfSession, frozen=True):
    """`_strongroom/find`. Hidden files are found where a component of what was `typed` begins with a dot."""

    typed: Annotated[str, msgspec.Meta(max_length=256)]
    most: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20


class FindResult(OfSession, frozen=True):
    """Paths relative to the root, the best first. Nothing here is escaped."""

    paths: tuple[str, ...]
    note: str = ""
    """Such as that not all files were looked at."""


class AttachParams(OfSession, frozen=True):
    """`_strongroom/attach`. Paths are relative to the root; those at which no file is are not answered."""

    paths: Annotated[tuple[str, ...], msgspec.Meta(max_length=40)]


class AttachedFile(Object, frozen=True):
    """A file: its text, or its type where it is an image or a document, or why it cannot go along, as a clause."""

    path: str
    uri: str
    size: int = 0
    text: str = ""
    media_type: str = ""
    problem: str = ""


class AttachResult(OfSession, frozen=True):
    """The files that are there, in the order in which they were named."""

    files: tuple[AttachedFile, ...]


class WaitingQuestion(Object, frozen=True):
    """A question that waits for a person, in whatever session. `since` is in seconds since the epoch."""

    id: str
    """Of exactly this question: another one about the same call has another."""
    title: str
    """The session's."""
    root: str
    since: float
    asked: PermissionParams
    """What the clients of the session are asked; its `REVIEW` is an `ApprovalRequest`."""
    printed: str = ""
    """What its rehearsal has printed, the end of it."""


class AnsweredQuestion(Object, frozen=True):
    """What was answered, and by whom; by nobody where there was nothing to answer any more."""

    id: str
    approved: bool
    by: str


class InboxResult(Object, frozen=True):
    """The oldest first. `answered` has the last ones of each open session."""

    questions: list[WaitingQuestion]
    answered: list[AnsweredQuestion] = msgspec.field(default_factory=list)


class AnswerParams(Object, frozen=True):
    """`_strongroom/answer`: what would answer `session/request_permission`."""

    question: str
    answer: PermissionResult


class AnswerResult(AnsweredQuestion, frozen=True):
    """Whether an answer counts; else the one that came first does."""

    counts: bool


class UndoParams(OfSession, frozen=True):
    """`_strongroom/undo`."""

    calls: tuple[str, ...] = ()
    """What to take back, in this order; without any, what `scope` says."""
    scope: Literal["last", "turn", "session"] = "last"
    """The last change that stands; all of the last turn that changed anything; all of the session."""
    force: bool = False
    """Also what has changed since, and without old content that was too large to keep; and go on after a failure."""


class Restored(Object, frozen=True):
    """A name that an undo has changed; `what` as in `ChangedName`."""

    path: str
    what: str


class Undone(Object, frozen=True):
    """What became of one call that was to be taken back."""

    call: str
    tool: str
    title: str
    ok: bool
    undo: str = ""
    """The call that took it back, or tried; empty where none could."""
    kind: str | None = None
    message: str = ""
    changes: tuple[Restored, ...] = ()
    more: int = 0
    """Changes that are not listed."""


class UndoResult(OfSession, frozen=True):
    """Up to the first failure, unless it was forced; without steps, nothing was there to be taken back."""

    steps: tuple[Undone, ...]


class RewindParams(OfSession, frozen=True):
    """`_strongroom/rewind`."""

    turn: int
    """At whose end the conversation and the files are to be; 0 is before the first."""
    look: bool = False
    """Only say what that would come to; nothing is done."""


class LeftName(Object, frozen=True):
    """A name that is left as it is, and why."""

    path: str
    why: str


class RemainingCall(Object, frozen=True):
    """A call that is not taken back, or not all of it, and why: a clause."""

    call: str
    title: str
    why: str


class RewindResult(OfSession, frozen=True):
    """What a rewinding has come to, or would."""

    turn: int
    turns: tuple[int, ...]
    """Those that stand no more."""
    again: tuple[int, ...]
    """Those that stand again."""
    changes: tuple[Restored, ...]
    left: tuple[LeftName, ...]
    remaining: tuple[RemainingCall, ...]
    more: int = 0
    """Changes that are not listed."""
    more_left: int = 0
    """Names that are left, and not listed."""
    call: str = ""
    """The undo that has changed the files; empty where none had to be changed, or nothing was done."""
    ok: bool = True
    """False: neither the conversation nor a file was changed, and `kind` and `message` say why."""
    kind: str | None = None
    message: str = ""


class WorkerLimits(Object, frozen=True):
    """What each worker of a category may use, as `[limits.CATEGORY]` says; of processes, those that it starts."""

    memory_mb: int
    cpu_s: int
    open_files: int
    file_mb: int
    processes: int
    soft_memory_mb: int = 0
    """A worker that holds more between two calls is replaced; 0 is any amount."""


class WorkerStatus(Object, frozen=True):
    """One worker, together with all that it has started. `memory` in bytes (resident), `cpu` in seconds."""

    category: str
    number: int
    root: str
    profile: str
    state: str
    pid: int | None = None
    restarts: int = 0
    last_death: str = ""
    memory: int | None = None
    cpu: float | None = None
    enforced: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    private: int | None = None
    """Bytes that no file backs: what the limits of memory count."""
    processes: int | None = None
    open_files: int | None = None
    """Of the process that has most: the limit is each one's."""
    cgroup: str = ""
    """The directory of its cgroup; empty where the limits of each process are all there is."""


class PoolStatus(Object, frozen=True):
    """One category on one root."""

    category: str
    root: str
    profile: str
    calls: int
    p50: float | None
    workers: list[WorkerStatus]
    failed_because: str = ""
    limits: WorkerLimits | None = None
    recycled: int = 0
    """Workers that were replaced because they held too much memory between two calls."""
    view: str = ""
    """Of commands, what they see besides the root: "machine", "private", or "copies" of it; empty where none runs."""


class OpenSessionStatus(OfSession, frozen=True):
    """One session that is open in the daemon."""

    profile: str
    model: str
    root: str
    state: str
    turns: int
    clients: int
    origin: str
    seconds_in_state: float = 0.0
    waiting_for: str = ""
    """The call that a person is asked about."""
    title: str = ""
    mode: str = "edits"
    context: dict[str, str] = msgspec.field(default_factory=dict)
    cache_possible: int = 0
    """Tokens of its requests that could have come from the provider's cache."""
    cache_reused: int = 0
    """Those of them that did."""
    cache_miss: str = ""
    """How much was missed last, and why."""
    options: dict[str, str] = msgspec.field(default_factory=dict)
    """As of `SessionFacts`."""
    suspended: Suspension | None = None
    other_model: str = ""
    """As of `TurnState`."""
    budgets: list[BudgetUse] = msgspec.field(default_factory=list)
    narrowed_by: str = ""
    """The file of its root that takes something away from its profile, and what."""
    instructions: tuple[str, ...] = ()
    """The files that the model was told as such, each with its digest."""


class Status(Object, frozen=True):
    """Everything that `strongroom status` shows."""

    daemon: Daemon
    started_at: float
    uptime: float
    clients: int
    sessions: list[OpenSessionStatus]
    pools: list[PoolStatus]
    memory: int | None = None
    cpu: float | None = None
    journal: str = ""
    log: str = ""
    config_problem: str = ""
    cgroups: tuple[str, ...] = ()
    """The controllers that limit each worker as a whole, besides the limits of each process."""
    no_cgroups: str = ""
    """Why there are none."""
    protections: tuple[str, ...] = ()
    """Every protection by name, in order; a worker's `enforced` says which hold."""
    fault_plan: str = ""
    """What makes workers fail, where the daemon was started with a fault plan."""
    faults: dict[str, int] = msgspec.field(default_factory=dict)
    """How often each fault was sent to a worker, by name."""
    journal_rows: int = 0
    """Rows of the journal that fit its chain, when all of it was last compared in the background."""
    journal_checked_at: float = 0.0
    """When that was; 0 before the first time."""
    journal_problem: str = ""
    """What did not fit."""
