"""Tools: arguments, a function, a docstring.

Rule: a tool that declines raises `ToolError`, whose text is for the model and says what to do instead. A tool
with a bug raises anything else: that ends the worker, and a fresh one takes its place. Tool modules import
light, because the supervisor reads the catalog from them: no dataclasses (they import inspect, 9 ms of each
worker's start), but msgspec.Struct.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from workers.changes.effects import UPLOAD, Effects, NodeState
from workers.errors import ToolError
from workers.tree.root import Root
from workers.wire.messages import Context

ToolKind = Literal["read", "edit", "search", "execute", "fetch", "think", "other"]
"""What a call does, in the words of ACP."""

_ECHO = 120
"""Characters of an offending value that an error repeats."""


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of one tool. Every field carries a description: it is what the model reads."""


class ToolContext(msgspec.Struct, frozen=True):
    """What a tool can reach: the context of its agent, the root, and a way to show progress."""

    agent: Context
    root: Root
    output: Callable[[str], None] = lambda _text: None
    engine: Any = None
    """What the category's `prepare` made; its tools know what it is."""
    later: Callable[[Callable[[], None]], None] = lambda act: act()
    """Takes what is to be done once the answer is on its way."""
    queued_s: float = 0.0
    """Seconds of the call's time that had gone by when it began."""
    call_s: float = 0.0
    """Seconds that the call may take; 0 where it is as `Start` says."""
    without_rehearsal: bool = False
    """A person lets it change things without a rehearsal: then no `Proposal` is asked for."""
    unlisted: bool = False
    """A person lets a program start that is not listed."""
    network: bool = False
    """A person lets it use the network that its profile names."""
    upload: int = UPLOAD
    """Bytes that it may send there."""
    places: tuple[str, ...] = ()
    """The part of that network that it may reach; all of it if empty."""
    content: bytes = b""
    """What the call is about, where its tool reads no file."""


class ResultWithNote(NamedTuple):
    """A result with a remark for the reader that is not part of the data ("first 2000 of 20000")."""

    value: str | list[Any] | dict[str, Any]
    note: str
    lacked: tuple[str, ...] = ()
    """What a command was refused by its sandbox."""


class ContentResult(NamedTuple):
    """A result with content that is no text: an image, a document; or, of one, what it says."""

    value: str | dict[str, Any]
    content: bytes


Result = str | list[Any] | dict[str, Any] | ResultWithNote | ContentResult


class Proposal:
    """What a call would change, once it is decided; until then nothing has changed.

    The worker calls `originals` and `cached` at most once, before `commit`; then that at most once, and at the end
    `close`.
    """

    def __init__(self, effects: Effects) -> None:
        self.effects = effects
        self.number = 0
        """The call's, by which a commit is known that was killed; nobody knows it but the loop and the journal."""

    def originals(self, each: int, total: int) -> "Iterator[Replaced | bytes]":
        """Yield each name that a commit changes, parents first, and after a `kept` one its content in chunks.

        A chunk has 1 to `wire.PIECE` bytes.

        Args:
            each: bytes of one file above which its content is left out.
            total: the same of all files together.

        Raises:
            ToolError: `conflict`, something is no longer what it was.
        """
        raise NotImplementedError

    def cached(self, _total: int) -> "Iterator[Replaced | bytes]":
        """Yield what was left in caches of package managers, as `originals` does, at most so many bytes."""
        return iter(())

    def commit(self) -> Result:
        """Make exactly these changes, durably, and return the call's result.

        Raises:
            ToolError: `conflict`, something is no longer what it was; or the system refused. Nothing has changed then,
                unless the message says so.
        """
        raise NotImplementedError

    def expected(self) -> Result:
        """Return the call's result if a commit has nothing to remark: for the case that its end is not seen."""
        raise NotImplementedError

    def discarded(self) -> Result:
        """Return what the rehearsal has shown, where none of its changes are made."""
        return ""

    def close(self) -> None:
        """Let go of what is held for it, which nobody waits for; what was not committed leaves everything as it is."""


class Replaced(NamedTuple):
    """One name that a commit changes; as `wire.Original`, whose fields these are."""

    path: str
    before: NodeState | None
    after: NodeState | None
    raw_path: bytes = b""
    attributes: Mapping[str, bytes] = MappingProxyType({})
    kept: bool = False
    gist: bytes = b""


class Tool(msgspec.Struct, frozen=True, eq=False):
    """One row of the catalog, made by `@tool`."""

    name: str
    description: str
    args: type[Args]
    run: Callable[[Any, ToolContext], Result | Proposal]
    effect: bool
    """True when a call may change something. It returns a `Proposal` then, or a result where it changes nothing."""
    kind: ToolKind
    subject: str
    """The argument that says what a call is about; "" where none does."""
    profiles: tuple[str, ...]
    """The built-in profiles that have it."""
    private: bool
    """True when what it returns may be the person's own; False where it comes from the public web."""
    runs: Literal["", "program", "script"]
    """Of a command: one program with its arguments, or a text for the shell, which can hold anything."""
    offered: bool
    """Whether a profile may name it; another tool is called where a person asks for what it does."""
    _decoder: msgspec.json.Decoder[Any]

    def decode(self, raw: bytes) -> Any:
        """Decode the model's JSON strictly.

        Raises:
            ToolError: `invalid_arguments`, with the value's path and what was expected.
        """
        try:
            return self._decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            given = raw[:_ECHO].decode("utf-8", "backslashreplace") + ("..." if len(raw) > _ECHO else "")
            wanted = ", ".join(self.args.__struct_fields__)
            raise ToolError(
                "invalid_arguments",
                f"Invalid arguments for {self.name}: {error}. Send one JSON object with: {wanted}.",
                arguments=given,
            ) from error


_A = TypeVar("_A", bound=Args)


def tool(
    args: type[_A],
    *,
    effect: bool,
    kind: ToolKind = "other",
    subject: str = "",
    profiles: tuple[str, ...] = (),
    private: bool = True,
    runs: Literal["", "program", "script"] = "",
    offered: bool = True,
) -> Callable[[Callable[[_A, ToolContext], Result | Proposal]], Tool]:
    """Make a `Tool` of a function named as the tool and documented for the model; the fields of `Tool` say the rest.

    Raises:
        TypeError: at import, when the function has no docstring, or its arguments no such subject.
    """

    def make(function: Callable[[_A, ToolContext], Result | Proposal]) -> Tool:
        if not function.__doc__:
            raise TypeError(f"tool {function.__name__} has no docstring, so the model would not know it")
        if subject and subject not in args.__struct_fields__:
            raise TypeError(f"tool {function.__name__} has no argument {subject!r}")
        description = " ".join(function.__doc__.split())
        decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(args)
        name = function.__name__
        about = (effect, kind, subject, profiles, private, runs, offered)
        return Tool(name, description, args, function, *about, decoder)

    return make
