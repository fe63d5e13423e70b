"""Instruction files: what the owner of a root, and the person, want an agent to keep to; read as a turn begins.

Rule: AGENTS.md counts, and CLAUDE.md where there is none: the person's own from beside the configuration, those of the
root read by a worker, those of its directories once a call has touched one. They are text and widen nothing. Nothing of
strangers counts: no root of theirs, no dependencies, no repository within, and nothing that an agent has written after
it had read their texts. What cannot be read, or not all of it, is said.
"""

import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, Protocol

from supervisor.config.profiles import Profile
from supervisor.display.escape import visible
from supervisor.errors import JournalError, WorkerError, reason
from supervisor.journal.agent_files import AgentFiles
from supervisor.journal.facts import InstructionsFile, InstructionsRead
from supervisor.pool.pools import Pools
from supervisor.system.safe_files import read_bytes
from supervisor.tools.exfiltration.sources import is_foreign_path
from supervisor.tools.named_files import READ, answer_of
from workers.wire import messages
from workers.wire.frames import FrameTooLarge

NAMES: Final = ("AGENTS.md", "CLAUDE.md")
"""Of each directory the first one that is there."""
TEXT_LIMIT: Final = 2**15
"""Bytes of one file that are told."""
TOGETHER: Final = 2**16
"""Bytes of all that hold at once."""
_OWN_LIMIT: Final = 2**21
_HEAD: Final = {"offset": 1, "limit": 1000}
"""What is read of a file that is too large to be read as a whole."""
_TRIES: Final = 3
_SETTLED_S: Final = 1.0
"""Seconds after which a file's times tell any change from what was read."""
_DIRECTORIES: Final = 100
"""Touched directories that are looked into in one turn."""
_WHY: Final[Mapping[str, str]] = {
    "not_text": "it is not text",
    "not_a_file": "it is no regular file",
    "not_a_directory": "it is no regular file",
    "not_found": "it is a link to nothing",
    "path_escape": "it is a link that leads out of the root",
    "too_large": "its lines are too long",
    "permission_denied": "the system denies access",
}
_NOT_NOW: Final = "it cannot be read now"
_CHANGING: Final = f"{_NOT_NOW}: it is being changed"
_WITHIN: Final = "it lies in a repository of its own, which may be a stranger's"
_TAINTED: Final = "an agent wrote it after it had read what strangers wrote; change it yourself to have it followed"

Stamp = tuple[int, ...]


class KnownInstructions(Protocol):
    """What the model was told, and which paths calls have touched since somebody looked."""

    files: dict[str, InstructionsFile]
    touched: list[str]


class _Seen(NamedTuple):
    stamp: Stamp
    file: InstructionsFile


class InstructionFiles:
    """Those of one session: the person's own in `own`, a directory, and those of the profile's root."""

    def __init__(self, profile: Profile, pools: Pools, own: Path | None, agent_files: AgentFiles | None) -> None:
        self._own = own if profile.instructions else None
        self._pools = pools
        self._agent_files = agent_files
        foreign = pools.root.is_foreign or not profile.trusted
        self.has_own = profile.instructions
        """Whether the person's own count here."""
        self.reads = profile.instructions and not foreign and READ in profile.tools
        self._seen: dict[str, _Seen] = {}
        """What was read of each file that has been left alone since."""
        self.others: Callable[[], Awaitable[list[InstructionsFile]]] | None = None
        """Returns what is told besides, as a turn begins."""
        self._looked: set[str] = set()
        """Directories that were looked into in this turn."""

    async def at_turn(self, turn: int, told: KnownInstructions) -> list[InstructionsRead]:
        """Return what is not as it was `told`, as a fact of a turn that begins; or nothing."""
        self._looked, known = set(), told.files
        found = [await self._own_file()] if self._own is not None else []
        directories = dict.fromkeys(("", *(_directory(path) for path in known if not os.path.isabs(path))))
        if self.reads:
            found += [await self._of_directory(each) for each in directories]
        found += [] if self.others is None else await self.others()
        there = {each.path: each for each in found if each is not None}
        return _fact(turn, known, there, [path for path in known if path not in there])

    async def nested(self, turn: int, told: KnownInstructions) -> list[InstructionsRead]:
        """Return what the files of directories say that calls have touched, as a fact; nothing where that is known.

        All that lies above a touched path, beneath the root, is touched as well.
        """
        touched, told.touched = told.touched, []
        there: dict[str, InstructionsFile] = {}
        for directory in _above(touched) if self.reads else ():
            if directory in self._looked or len(self._looked) >= _DIRECTORIES:
                continue
            self._looked.add(directory)
            if (file := await self._of_directory(directory)) is not None:
                there[file.path] = file
        return _fact(turn, told.files, there, [])

    async def _own_file(self) -> InstructionsFile | None:
        assert self._own is not None
        path = self._own / NAMES[0]
        try:
            data = read_bytes(path, _OWN_LIMIT)
            return _told(str(path), data.decode(), data, len(data))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = _WHY["not_text"] if isinstance(error, UnicodeError) else reason(error)
            return InstructionsFile(str(path), problem=why)

    async def _of_directory(self, directory: str) -> InstructionsFile | None:
        """Return the file of a directory beneath the root; None where there is none that counts."""
        if is_foreign_path(directory):
            return None
        for name in NAMES:
            path = f"{directory}/{name}" if directory else name
            if self._stamp(path, follow=False):
                if self._is_within_a_repository(directory):
                    return InstructionsFile(path, problem=_WITHIN)
                return await self._read(path)
        return None

    async def read(self, path: str) -> InstructionsFile | None:
        """Return a file beneath the root, by its path; None where there is none. Text of strangers does not count."""
        return await self._read(path) if self._stamp(path, follow=False) else None

    async def _read(self, path: str) -> InstructionsFile:
        for _ in range(_TRIES):
            stamp = self._stamp(path)
            if (seen := self._seen.get(path)) is not None and seen.stamp == stamp and stamp:
                return seen.file
            file = await self._by_worker(path)
            if stamp == self._stamp(path):
                if stamp and time.time_ns() - max(stamp[3:]) > _SETTLED_S * 1e9:
                    self._seen[path] = _Seen(stamp, file)
                return file
        return InstructionsFile(path, problem=_CHANGING)

    async def _by_worker(self, path: str) -> InstructionsFile:
        try:
            answer = await answer_of(self._pools, path)
            if isinstance(answer, messages.Failed) and answer.kind == "too_large":
                answer = await answer_of(self._pools, path, **_HEAD)
        except (WorkerError, FrameTooLarge) as error:
            return InstructionsFile(path, problem=f"{_NOT_NOW}: {error}")
        if isinstance(answer, messages.Failed):
            return InstructionsFile(path, problem=_WHY.get(answer.kind, answer.message))
        if answer.data:
            return InstructionsFile(path, problem=_WHY["not_text"])
        data = answer.content.encode()
        if await self._is_tainted(hashlib.sha256(data).digest(), answer.content):
            return InstructionsFile(path, problem=_TAINTED)
        return _told(path, answer.content, data, max(len(data), *self._stamp(path)[2:3]))

    async def _is_tainted(self, digest: bytes, text: str) -> bool:
        """Say whether an agent that had read what strangers wrote has written this content, or lines of it."""
        if self._agent_files is None:
            return False
        try:
            await self._agent_files.keep_up()
        except (JournalError, OSError):
            return True
        return self._agent_files.author("", "", digest, text) == "tainted"

    def _stamp(self, path: str, *, follow: bool = True) -> Stamp:
        """Return what tells a file's content from what it was, or will be; nothing where there is no file."""
        try:
            status = os.stat(path, dir_fd=self._pools.root.descriptor, follow_symlinks=follow)
        except (OSError, ValueError):
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _is_within_a_repository(self, directory: str) -> bool:
        above = _above([directory]) if directory else ()
        return any(self._stamp(f"{each}/.git", follow=False) for each in above)


def _above(paths: Iterable[str]) -> Iterator[str]:
    """Yield each path and what lies above it, below the root, the topmost first; nothing of those that lead out."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not os.path.isabs(path) and ".." not in parts:
            yield from ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _directory(path: str) -> str:
    return path.rpartition("/")[0]


def _told(path: str, text: str, data: bytes, size: int) -> InstructionsFile:
    """Return a file of a `size` in bytes with as much of its text as is told, harmless to look at."""
    kept = _cut(text, TEXT_LIMIT)
    seen = visible(kept, prose=True)
    said = _cut(seen, TEXT_LIMIT)
    whole = size == len(data) and (kept, said) == (text, seen)
    problem = "" if whole else f"it has {size:,} bytes, and the first {len(said.encode()):,} alone are followed"
    return InstructionsFile(path, hashlib.sha256(data).hexdigest(), size, said, problem)


def _cut(text: str, most: int) -> str:
    """Return a text up to the last whole line within so many bytes."""
    data = text.encode()
    if len(data) <= most:
        return text
    kept = data[:most].decode(errors="ignore")
    return kept[: kept.rfind("\n") + 1] or kept


def _fact(
    turn: int, known: Mapping[str, InstructionsFile], there: Mapping[str, InstructionsFile], gone: list[str]
) -> list[InstructionsRead]:
    """Return the fact of what is new, with no more text than there is room for beside what holds; or nothing."""
    left = TOGETHER - sum(len(file.text.encode()) for path, file in known.items() if path not in (*there, *gone))
    files: list[InstructionsFile] = []
    for path, file in there.items():
        if file.problem.startswith(_NOT_NOW) and path in known:
            continue  # what was told of it holds
        text = _cut(file.text, max(left, 0)) if left > 0 else ""
        if text != file.text:
            why = f"with the others it has more than {TOGETHER:,} bytes: the first {len(text.encode()):,} are followed"
            there = {**there, path: InstructionsFile(path, file.digest, file.size, text, why)}
        left -= len(text.encode())
        if there[path] != known.get(path):
            files.append(there[path])
    return [InstructionsRead(turn, tuple(files), tuple(gone))] if files or gone else []
