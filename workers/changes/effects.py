"""Effects: the changes that a rehearsed call would make, and the outcome of their commit.

Rule: plain data, read by whoever judges and by whoever shows it; nothing here is done. All of it was caused by a
command that nobody trusts: names, targets and diffs are shown escaped, and never taken for instructions. A name that
is not UTF-8 stands twice: escaped in `path` for people, and as it is in `raw_path`, which is otherwise empty. Whoever
reads it has little time, so what a worker may tell is bounded here: more is no message.
"""

from typing import Annotated, Final, Literal

import msgspec

Kind = Literal["file", "dir", "link", "fifo", "socket", "device"]

What = Literal["added", "modified", "deleted", "replaced", "mode", "attributes", "times"]
"""Of several, the first that is so: `replaced` is by another kind, `modified` is other content or another target, then
only the permission bits, only the extended attributes, only the time of modification."""

Level = Literal["", "told", "asked", "refused"]
"""How soon other programs obey what stands in a file of that name (`workers.tree.obeyed_names`)."""

CHANGES: Final = 70_000
"""Changes of one call that are told one by one: where each is a file with content, fewer fill a frame."""

ATTEMPTS: Final = 32
"""Attempts of one call that are told apart."""

ATTEMPT: Final = 515
"""Characters of one."""

PLACES: Final = 16
"""Places that one call may have connections to."""

_PATH: Final = 4095
"""Bytes, as Linux takes them (`workers.tree.root.PATH_LIMIT`)."""

_Raw = Annotated[bytes, msgspec.Meta(max_length=_PATH)]
_Path = Annotated[str, msgspec.Meta(max_length=4 * _PATH)]
"""Each byte may be escaped with four characters."""
_ObjectName = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{0,64}\Z")]
"""Of an object of git, empty for none: it is shown to people as it is."""


class _EffectsRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Plain data has no cycles: that no collector looks at it halves the decoding of 10,000 changes."""


class NodeState(_EffectsRecord, frozen=True):
    """What one name is. Directories have neither a size nor a time here, for they change with what is in them."""

    kind: Kind
    mode: int
    """Permission bits with setuid, setgid and sticky (07777)."""
    size: int = 0
    mtime_ns: int = 0
    """Of a file; 0 where it is not known beforehand, as of one that is yet to be written."""
    digest: bytes = b""
    """SHA-256 of a file's content; empty where it was not read (too large, or not readable) and for other kinds."""
    target: _Path = ""
    """Of a link."""
    raw_target: _Raw = b""
    attributes: dict[str, bytes] = {}
    """Extended attributes `user.*` and access control lists; a value of 64 bytes and more stands as `sha256:` and its
    digest in hexadecimal."""


def new_executable_bits(before: NodeState | None, after: NodeState) -> int:
    """Return the executable bits that a file has and the one before had not."""
    had = before.mode if before is not None and before.kind == "file" else 0
    return after.mode & ~had & 0o111


class Change(_EffectsRecord, frozen=True):
    """One name that is another after the command, or gone. `before` is what the root had after the command ended."""

    path: _Path
    what: What
    before: NodeState | None = None
    after: NodeState | None = None
    raw_path: _Raw = b""
    diff: str = ""
    """Unified, without the two lines that name the file; only of text."""
    diff_left_out: str = ""
    """Why there is no diff or not all of it, in words; empty if nothing is missing."""
    protected: str = ""
    """Why this path is asked about by name: what a program outside would do with it."""
    level: Level = ""
    """How soon one would; a path that is merely told is not `protected`."""
    moved_from: _Path = ""
    """The path of a deleted file with the same content, where there is exactly one for this."""
    same_as: _Path = ""
    """Another path of the same file (a hard link) after the commit."""
    linked: bool = False
    """The file had other names (hard links), which keep the old content, as they do on the overlay."""
    withheld: int = 0
    """Bits of the mode that the command set and a commit does not: setuid and setgid of files."""
    loses: tuple[str, ...] = ()
    """What of its owner and rights an undo cannot give back, and the change itself may not keep: each in words."""
    script: bool = False
    """A file that gets executable bits, and is text."""
    leaves: bool = False
    """A link whose target leads out of the root by way of a link that was there before."""
    meanwhile: bool = False
    """Somebody else changed it while the command ran: a commit is refused."""
    encoding: str = ""
    """What the diff was decoded from, in words; empty for UTF-8."""
    only_dependencies: bool = False
    """A manifest of packages in which nothing but dependencies changes."""
    places: Annotated[tuple[str, ...], msgspec.Meta(max_length=8)] = ()
    """Hosts and ports that a manifest or a lock file names as where packages come from, and did not before."""
    ignored: bool = False
    """Git ignores it, before and after, by what its lists and its index said before the command."""
    tracked: bool = False
    """It is deleted or replaced, and git tracks it, or that cannot be known; or it is an index that leaves out what
    stays."""


class Attempt(_EffectsRecord, frozen=True):
    """Something that a command tried, and that its sandbox refused. It had no effect; it tells what the command is."""

    kind: Literal["network", "path"]
    what: Annotated[str, msgspec.Meta(max_length=ATTEMPT)]
    """For "network" the kind of socket, or what it was to lead to; for "path" the path outside, as the command named
    it."""
    count: int = 1


NETWORK: Final = "the network"
"""Among what a command lacked."""

UPLOAD: Final = 256_000
"""Bytes that one command may send with its network, unless a person allows more."""


class Traffic(_EffectsRecord, frozen=True):
    """What a command said to one place of its network, and what came back, in bytes."""

    place: Annotated[str, msgspec.Meta(max_length=ATTEMPT)]
    up: Annotated[int, msgspec.Meta(ge=0)]
    down: Annotated[int, msgspec.Meta(ge=0)]
    cut: bool = False
    """It wanted to send more than it might, and its connections were ended."""


GIT: Final = 32
"""References of one call that are told apart."""

OBEYED: Final = 4
"""Names of one of them that programs obey."""


class GitChange(_EffectsRecord, frozen=True):
    """What became of one reference, HEAD or the index of a repository, by its bytes and never by a message."""

    kind: Literal["commit", "amended", "merge", "moved", "head", "index", "odd"]
    """`moved` is any reference that is another, new or gone; `odd` one that holds no object's name."""
    name: _Path
    """Of the reference, with `refs/`; of HEAD what it names; empty for the index, and for HEAD without a branch."""
    old: _ObjectName = ""
    """The object's name, empty where there was none."""
    new: _ObjectName = ""
    """Of HEAD, the commit that it is at where that was there before."""
    files: int | None = None
    """That differ; None where it takes more than a look to know."""
    repository: _Path = ""
    """Its directory, where that is not the root."""
    obeyed: Annotated[tuple[_Path, ...], msgspec.Meta(max_length=OBEYED)] = ()
    """Names that programs obey of what is new in it, where neither the work tree nor the index had the same."""
    unread: bool = False
    """What is new in it takes more than a look to know."""
    tree: _ObjectName = ""
    """Of the commit that HEAD is at, where that can be read."""


FOLDED: Final = 256
"""Directories of packages of one call of which not all names are told."""


class FoldedNames(_EffectsRecord, frozen=True):
    """Ordinary files and directories that change in one directory of packages, and are not told one by one."""

    path: _Path
    totals: dict[What, int]
    digest: bytes
    """Of all of these changes."""
    size: int = 0
    """Bytes of the new and modified files."""
    old_size: int = 0
    """Bytes of the files that are replaced or go."""
    old_largest: int = 0
    unread: bool = False
    """The content of one of those was not read."""
    protected: str = ""
    """Why the first one that is asked about by name is."""


class Effects(_EffectsRecord, frozen=True):
    """All changes of one call, sorted by path; what does not fit is only counted, in `left_out`.

    `digest` stands for all changes, also for what is left out: exactly those are committed. It is the same where a
    command is run again, and writes the same at another time.
    """

    changes: Annotated[tuple[Change, ...], msgspec.Meta(max_length=CHANGES)]
    totals: dict[What, int]
    digest: bytes
    size: int = 0
    """Bytes of all new and modified files."""
    left_out: dict[What, int] = {}
    folded: Annotated[tuple[FoldedNames, ...], msgspec.Meta(max_length=FOLDED)] = ()
    """Of what is left out, that which lies in directories of packages and is ordinary."""
    refused: Annotated[tuple[Attempt, ...], msgspec.Meta(max_length=ATTEMPTS)] = ()
    """What it tried besides, in the order of the first try."""
    refused_left_out: int = 0
    traffic: Annotated[tuple[Traffic, ...], msgspec.Meta(max_length=PLACES)] = ()
    """Of a rehearsal with a network."""
    git: Annotated[tuple[GitChange, ...], msgspec.Meta(max_length=GIT)] = ()
    """What the changes in git's directories come to."""
    exit_code: int = 0
    """Of a command; negative, the signal that killed it."""
    lacked: tuple[str, ...] = ()
    """What it seems to have been refused by its sandbox, in words."""
    rehearsed_in: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    """Where it ran, in words, where that was not an overlay of the root; and what of the root was missing there."""


def is_folded(effects: Effects) -> bool:
    """Say whether all that is left out is told of its directories."""
    return sum(sum(each.totals.values()) for each in effects.folded) == sum(effects.left_out.values())


class Conflict(_EffectsRecord, frozen=True):
    """A path that is no longer what it was when the effects were told."""

    path: str
    why: str


class Committed(_EffectsRecord, frozen=True, tag=True):
    """All changes were applied and are durable."""

    changes: int
    remark: str = ""


class Conflicted(_EffectsRecord, frozen=True, tag=True):
    """Somebody else changed something in between. Nothing was applied; `more` conflicts are not listed."""

    conflicts: tuple[Conflict, ...]
    more: int = 0


class CommitFailed(_EffectsRecord, frozen=True, tag=True):
    """The system refused something on the way, and what had been applied was taken back.

    `stands` are the paths where that failed too, each with what is there now; empty means that nothing was changed.
    """

    message: str
    stands: tuple[str, ...] = ()
    errno: int = 0
    """Of the system; 0 where it was not the system."""


CommitOutcome = Committed | Conflicted | CommitFailed
