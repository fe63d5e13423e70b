"""The files that agents wrote, in any session: a fold over what was committed.

Rule: a file counts as an agent's by its path, whatever the root, and by the digest of its content, wherever it lies;
what stems from foreign text also by each long line of words in it, whoever shows it.
Where a commit does not say all that it wrote, all of its root does. What a person wrote with a call of their own, or
took back, is no agent's. Kept are halves of digests, eight bytes each, and beside the journal, as the index.

Facts ignored: BatchStarted, CallEnded, CallStarted, Compacted, ContentsRefused, FaultsAllowed, InstructionsRead,
ModeChanged, ModelRetried, OptionChosen, Replied, ReplyCut, Rewound, RuleRevoked, SessionDeleted, ToolsChanged,
TurnEnded, TurnQuestioned, TurnResumed, TurnStarted.
"""

import hashlib
import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import trio

from supervisor.errors import JournalError
from supervisor.journal import saved_fold
from supervisor.journal.facts import Author, CallDecided, SessionChanged, SessionOpened
from supervisor.journal.journal import Journal, Position, open_journal
from supervisor.version import VERSION
from workers.changes.effects import Change

_SIZE: Final = 8
"""Bytes that are kept of a digest."""
_SAVE_AFTER: Final = 5_000
"""Rows that a program may read instead of writing the file anew."""
_AT_ONCE: Final = 200
"""Rows that are read in a few milliseconds."""
_LARGE: Final = 2**18
"""Bytes of a file that is read in more."""
_ALL: Final = "*"
"""Stands for every path of a root."""
_LINE: Final = 24
"""Letters of a line that does not stand in two files by chance."""
_SENTENCE: Final = re.compile(r"\b(?:[^\W\d_]++[,:]? ){5}[^\W\d_]")
_IMPORT: Final = re.compile(r"\s*from\s+\S+\s+import\s")
"""What tells a line of words from one of code, which stands in many files."""
_LINES: Final = 2_000
"""Lines of one text that are looked up."""
_WRITTEN: Final = frozenset({"added", "modified", "replaced"})


def marks_of(changes: Iterable[Change]) -> bytes:
    """Return what a fact keeps of written files: of each the mark of its path, and that of its content."""
    return b"".join(_mark(_plain(each.path)) + _content(each) for each in changes if _is_written(each))


class AgentFiles:
    """What agents wrote, as of the last `refresh`; `close` it.

    Args:
        path: of the journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open = ExitStack()
        self._journal: Journal | None = None
        self._agent: set[bytes] = set()
        self._tainted: set[bytes] = set()
        self._roots: dict[str, str] = {}
        self._turn = trio.Lock()
        self._seq = self._saved = 0

    def close(self) -> None:
        self._open.close()
        self._journal = None

    async def keep_up(self) -> None:
        """Refresh it, in a thread where that may take long.

        Raises:
            JournalError: as `refresh`.
            OSError: what is saved cannot be looked at.
        """
        async with self._turn:
            begins_large = self._journal is None and self._file.exists() and self._file.stat().st_size > _LARGE
            if begins_large or not self.refresh(_AT_ONCE):
                await trio.to_thread.run_sync(self.refresh)

    async def author_in(self, root: str) -> Callable[[str, bytes, str], Author]:
        """Return who says which files of a root agents wrote, as of now, also to a turn that is cancelled.

        Where that cannot be looked up, all of them are.
        """
        try:
            with trio.CancelScope(shield=True):
                await self.keep_up()
        except (JournalError, OSError):
            return lambda *_file: "agent"
        return partial(self.author, root)

    def refresh(self, most: int = sys.maxsize) -> bool:
        """Take into account what was recorded since the last time, whoever did; not where that is more than so much.

        Raises:
            JournalError: it cannot be read.
        """
        journal = self._connected()
        last = journal.last()
        if last - self._seq > most:
            return False
        for seq, session, fact in journal.commits(self._seq, last):
            if isinstance(fact, CallDecided):
                self._add(seq, session, fact)
            else:
                self._roots[session] = fact.context.working_directory
        self._seq = max(last, self._seq)
        if self._seq >= self._saved + _SAVE_AFTER and (seen := journal.position(self._seq)) is not None:
            self._saved = self._seq
            saved_fold.save(self._file, _SavedFiles(_SAVED_BY, seen, b"".join(self._agent), b"".join(self._tainted)))
        return True

    def author(self, root: str, path: str, digest: bytes = b"", text: str = "") -> Author:
        """Return who wrote a file.

        Args:
            root: the root's path.
            path: relative to it; a link on the way may be an agent's too.
            digest: SHA-256 of the content, where it is known.
            text: lines of it, as they were shown.
        """
        parts = _absolute(root, path).split("/")
        marks = {_mark("/".join(parts[:count])) for count in range(2, len(parts) + 1)}
        marks |= {_in_root(root, each) for each in (_mark(_plain(path)), _mark(_ALL))}
        marks |= {digest[:_SIZE]} if digest else set()
        marks |= set(islice(_lines(text.splitlines()), _LINES)) if self._tainted else set()
        return "tainted" if marks & self._tainted else "agent" if marks & self._agent else ""

    @property
    def _file(self) -> Path:
        return self._path.with_suffix(".agents")

    def _connected(self) -> Journal:
        if self._journal is None:
            self._journal = journal = self._open.enter_context(open_journal(self._path))
            if (saved := saved_fold.load(self._file, journal, _SAVED_BY, _decoder.decode)) is not None:
                self._agent, self._tainted = set(_each(saved.agent)), set(_each(saved.tainted))
                self._seq = self._saved = saved.seen.seq
        return self._journal

    def _add(self, seq: int, session: str, fact: CallDecided) -> None:
        if not fact.committed or fact.undoes or not fact.turn:
            return
        root = self._root(seq, session)
        marks = [_in_root(root, mark) for mark in self._unlisted(fact)]
        for each in fact.effects.changes if fact.effects is not None else ():
            if _is_written(each) and not (each.moved_from and not self.author(root, each.moved_from, _full(each))):
                marks += [_mark(_absolute(root, each.path)), _content(each)]
                if fact.foreign:
                    marks += _lines(line[1:] for line in each.diff.splitlines() if line.startswith("+"))
        marks += [_mark(_absolute(root, each.path)) for each in (fact.effects.folded if fact.effects else ())]
        for at in range(0, len(fact.files), 2 * _SIZE):
            name, content = fact.files[at : at + _SIZE], fact.files[at + _SIZE : at + 2 * _SIZE]
            marks += [_in_root(root, name), content]
        (self._tainted if fact.foreign else self._agent).update(each for each in marks if any(each))

    def _unlisted(self, fact: CallDecided) -> list[bytes]:
        """Return the mark of all of a root, where nobody knows what was written in it."""
        unknown = fact.effects is None or bool(fact.effects.left_out and not fact.files)
        return [_mark(_ALL)] if unknown or fact.unlisted else []

    def _root(self, seq: int, session: str) -> str:
        if session not in self._roots:
            entries = self._connected().of_session(session)
            used = [each.fact for each in entries if each.seq < seq]
            roots = [
                fact.context.working_directory for fact in used if isinstance(fact, SessionOpened | SessionChanged)
            ]
            self._roots[session] = roots[-1] if roots else ""
        return self._roots[session]


def _is_written(change: Change) -> bool:
    return change.what in _WRITTEN and change.after is not None and change.after.kind in ("file", "link")


def _full(change: Change) -> bytes:
    return change.after.digest if change.after is not None else b""


def _content(change: Change) -> bytes:
    """Return the mark of what a file holds; zeros where it is not known, or where there is nothing in it."""
    known = _full(change) if change.after is not None and change.after.size else b""
    return known[:_SIZE] or bytes(_SIZE)


def _mark(path: str) -> bytes:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).digest()[:_SIZE]


def _lines(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield the marks of long lines of words, without what numbers and quotes them."""
    said = (line for line in lines if _SENTENCE.search(line) and not _IMPORT.match(line))
    letters = ("".join(filter(str.isalpha, line.casefold())) for line in said)
    return (_mark(line) for line in letters if len(line) >= _LINE)


def _in_root(root: str, mark: bytes) -> bytes:
    return hashlib.sha256(root.encode("utf-8", "surrogatepass") + b"\0" + mark).digest()[:_SIZE]


def _absolute(root: str, path: str) -> str:
    return f"{root.rstrip('/').casefold()}/{_plain(path)}"


def _plain(path: str) -> str:
    """Return one form of a path beneath a root, however it was written."""
    return posixpath.normpath(path).lstrip("/").casefold()


def _each(marks: bytes) -> Iterator[bytes]:
    return (marks[at : at + _SIZE] for at in range(0, len(marks), _SIZE))


class _SavedFiles(msgspec.Struct, frozen=True, array_like=True):
    by: tuple[str, ...]
    seen: Position
    agent: bytes
    tainted: bytes


_SAVED_BY: Final = (VERSION, *_SavedFiles.__struct_fields__)
_decoder: Final = msgspec.msgpack.Decoder(_SavedFiles)
