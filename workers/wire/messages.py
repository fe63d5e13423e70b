"""The messages between supervisor and worker, and between worker and broker.

Rule: both sides import this, so it imports nothing of theirs. One tagged union a direction; unknown fields and unknown
tags are errors. `frames` says how they are sent.

    supervisor                          worker
        | -- Start ------------------------> |   confines itself
        | <------------- Ready or Refused -- |
        | -- Call(id) ---------------------> |
        | <------------------- Output(id) -- |   any number of times
        | <-------- Done(id) or Failed(id) - |   exactly one, then the next Call
        | -- end of file ------------------> |   exits

A call that would change something is only rehearsed, and its worker holds what it would do until that is decided:

        | <----------------- Proposed(id) -- |   instead of Done; nothing has changed
        | -- Keep(id) ---------------------> |   for undo, before a commit
        | <---- Original(id), Piece(id)* --- |   for each name that would change
        | <--------------------- Kept(id) -- |
        | -- Decide(id) -------------------> |
        | <-------- Done(id) or Failed(id) - |

A worker that may have connections asks for each on a socket of its own, also while it runs a call:

        | <--------------- Connect --------- |
        | -- Connected + socket, Declined -> |

A worker handles one call at a time. `id` is random, so an answer that is late, repeated or made up cannot be
taken for the answer to another call.
"""

from typing import Annotated, Final, Literal, TypeVar

import msgspec

from workers.changes.effects import UPLOAD, Effects, NodeState

VERSION: Final = 5
"""Both sides send it in the handshake; a difference is refused, never negotiated."""

FORKED_ROOT: Final = 3
"""The root's descriptor in a worker that a template forked, after its pipes."""
FORKED_BROKER: Final = 4
"""That of the socket on which it asks for connections."""

ErrorKind = Literal[
    "invalid_arguments",
    "unknown_tool",
    "not_found",
    "permission_denied",
    "path_escape",
    "not_a_file",
    "not_a_directory",
    "too_large",
    "not_text",
    "no_match",
    "conflict",
    "disk_full",
    "domain_not_allowed",
    "address_not_allowed",
    "fetch_failed",
    "command_not_allowed",
    "denied",
    "cancelled",
    "timeout",
    "resource_limit",
    "worker_crashed",
    "worker_unavailable",
    "outcome_unknown",
    "internal",
]
"""Every way a tool call can fail; the same words to the model, in the journal and on the command line."""

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"^[^/\x00-\x1f\x7f]+\Z")]


class Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an agent works on; validated once, then handed to the agent and to every tool."""

    working_directory: Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"^/[^\x00]*$")]
    environment: _Name | None = None
    group: _Name | None = None
    technology: _Name | None = None


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the kernel grants one worker process (setrlimit(2))."""

    memory_mb: Annotated[int, msgspec.Meta(ge=64, le=2**20, description="Megabytes of memory.")] = 512
    cpu_s: Annotated[
        int, msgspec.Meta(ge=1, le=10**7, description="Seconds of processor time over the worker's life.")
    ] = 3600
    open_files: Annotated[int, msgspec.Meta(ge=16, le=2**16, description="Files that are open at once.")] = 64
    file_mb: Annotated[int, msgspec.Meta(ge=1, le=2**20, description="Megabytes of the largest file.")] = 64
    processes: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            le=2**16,
            description="Processes and threads that it may start. The kernel counts all of the user's: enough to "
            "forbid them, too coarse to ration.",
        ),
    ] = 0


Moment = Literal["start", "call", "answer", "proposed", "keep", "decided", "committed"]
"""Where in a worker's work a fault happens; `workers.faults.kinds` says what each means."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault that a plan asks for, by name, and when it is to happen."""

    name: str
    at: Moment


class Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values that a category's workers need besides the root; a category that needs any derives its own."""


_Inputs = TypeVar("_Inputs", bound=Inputs)


def decode_inputs(data: bytes, kind: type[_Inputs]) -> _Inputs:
    """Decode `Start.inputs` strictly.

    Raises:
        ValueError: they are not of this `kind`.
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"the inputs that it was given are wrong: {error}") from error


class _Message(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Start(_Message, frozen=True):
    """The first frame: what to become. The root is the inherited descriptor `root_fd`, never a path."""

    version: int
    category: str
    context: Context
    root_fd: int
    writable: bool
    limits: Limits
    allow_degraded: tuple[str, ...] = ()
    call_s: float = 30.0
    """Seconds after which the supervisor gives a call up, and ends the worker."""
    inputs: bytes = b"\x80"
    """What the category's `prepare` needs besides: `Inputs` of its own, as msgpack."""
    broker_fd: int = -1
    """The inherited descriptor on which the worker asks for connections; -1 where it has none to ask for."""
    faults: bool = False
    """Whether calls may come with a fault. Decided here, for a worker that is locked in can import nothing any more."""
    fault: Fault | None = None
    """What happens to this worker before it is ready."""
    plan: bool = False
    """It rehearses and commits nothing: `writable` is False then, and whoever asks it to commit breaks the contract."""


class Call(_Message, frozen=True):
    """Run one tool. `args` is the model's JSON, still unparsed: the worker decodes it strictly."""

    id: int
    tool: str
    args: bytes
    queued_s: float = 0.0
    """Seconds of its time that have gone by before it reached the worker."""
    call_s: float = 0.0
    """Seconds that it may take, where that is not what `Start` says."""
    without_rehearsal: bool = False
    """A person has said that it may change things without having been rehearsed."""
    network: bool = False
    """A person has said that it may use the network that its profile names."""
    upload: int = UPLOAD
    """Bytes that it may send there."""
    places: tuple[str, ...] = ()
    """The part of that network that it may reach, each "host:port"; all of it if empty."""
    unlisted: bool = False
    """A person has said that it may start a program that is not listed."""
    content: bytes = b""
    """What it is about, where its tool reads no file."""
    fault: Fault | None = None
    """What happens to this call; a breach of the contract where `Start` did not allow faults."""


class Keep(_Message, frozen=True):
    """Send what the proposed changes would replace: files of at most `each` bytes, `total` in all."""

    id: int
    each: int
    total: int
    caches: bool = False
    """Instead, what it has left in caches of package managers: each an `Original` that is there afterwards."""


class Decide(_Message, frozen=True):
    """Commit the proposed changes, or discard them."""

    id: int
    commit: bool


class Probe(_Message, frozen=True):
    """Try every door from inside (`strongroom doctor`); answered by `Probed`."""


Down = Start | Call | Keep | Decide | Probe


class Ready(_Message, frozen=True):
    """Confined and waiting. `tools` is only compared with the catalog, never offered."""

    version: int
    category: str
    tools: tuple[str, ...]
    enforced: tuple[str, ...]
    degraded: tuple[str, ...] = ()


class Refused(_Message, frozen=True):
    """The worker will not serve: a protection named in `missing` is unavailable. It fails closed."""

    missing: str
    message: str


class Output(_Message, frozen=True):
    """A part of a running call's output, for people to watch; the result stands in `Done`."""

    id: int
    text: str


class Done(_Message, frozen=True):
    """The result. `content` is text for the model; with form "json" it is a JSON document."""

    id: int
    content: str
    form: Literal["text", "json"] = "text"
    note: str = ""
    lacked: tuple[str, ...] = ()
    """What a command seems to have been refused by its sandbox, in words."""
    data: bytes = b""
    """Content that is no text, as `content` describes it."""


class Failed(_Message, frozen=True):
    """The tool declined. `message` says what to do instead; `details` holds the offending values."""

    id: int
    kind: ErrorKind
    message: str
    details: dict[str, str | int] = {}


class Proposed(_Message, frozen=True):
    """The call has been rehearsed, and this is what it would change.

    The worker waits for `Decide`, and for nothing else but one `Keep` of each kind before it.
    """

    id: int
    effects: Effects
    said: Done | None = None
    """How it will be answered if all of this is made, but for what making it remarks; None where that takes much."""


class Unrehearsable(_Message, frozen=True):
    """The call cannot be rehearsed, and nothing has changed; `why` is for the person, who may let it run anyway."""

    id: int
    why: str


class Original(_Message, frozen=True):
    """One name as it is before the commit, and as it will be after it.

    If `kept`, the content of the file before follows in pieces, `before.size` bytes.
    """

    id: int
    path: str
    before: NodeState | None = None
    after: NodeState | None = None
    raw_path: bytes = b""
    attributes: dict[str, bytes] = {}
    """Those of `before`, in full."""
    kept: bool = False
    gist: bytes = b""
    """Of git's index after it (`workers.tree.git_index.gist`): git writes it anew when it merely looks."""


class Piece(_Message, frozen=True):
    """The next part of the content of the last `Original`."""

    id: int
    data: bytes


PIECE: Final = 2**20
"""Bytes of one `Piece`, at most."""


class Kept(_Message, frozen=True):
    """All originals have been sent. `left_out` is the number of files whose content is not among them."""

    id: int
    names: int
    size: int = 0
    left_out: int = 0


class Door(msgspec.Struct, frozen=True):
    """One attempt to break out: what was tried, whether it was stopped, and how it ended."""

    name: str
    shut: bool
    detail: str


class Probed(_Message, frozen=True):
    """The outcome of a `Probe`."""

    doors: tuple[Door, ...]


class Connect(_Message, frozen=True):
    """Ask the broker for a connection. `host` is a name, never an address."""

    host: str
    port: int
    id: int = 0
    """Comes back with the answer: whoever asks on where another left off knows which one is not for it."""


class Connected(_Message, frozen=True):
    """The connection, a stream socket, comes with this message (SCM_RIGHTS)."""

    address: str
    id: int = 0


class Declined(_Message, frozen=True):
    """There is no connection. `kind` and `message` are for the model."""

    kind: ErrorKind
    message: str
    id: int = 0


Brokered = Connected | Declined

BROKER_LIMIT: Final = 4096
"""Bytes of one message between a worker and the broker: msgpack, without a length, each a datagram of its own
(SOCK_SEQPACKET)."""

Answer = Ready | Refused | Done | Failed | Proposed | Unrehearsable | Kept | Probed
"""What ends an exchange."""

Part = Output | Original | Piece
"""What comes before it."""

Up = Answer | Part
