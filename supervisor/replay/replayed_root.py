"""The root of a recorded session as it was when the session was opened, as a copy that is thrown away.

Rule: the root is only read. What was committed on it since, by any session, is taken back in the copy from the packs,
the last first, as an undo does it; what no pack holds any more, and what others have changed since, is named.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import trio

from supervisor.errors import ConfigError, reason
from supervisor.journal.facts import CallDecided
from supervisor.journal.journal import Journal
from supervisor.session.session import Session
from supervisor.session.taking_back import undoing
from supervisor.undo.undo_plan import UndoStep

_MOST: Final = 8 * 2**30
"""Bytes of a root that is copied."""
_NAMED: Final = 10


class CommittedPack(NamedTuple):
    """A commit on the root; `pack` is empty where nothing of it was kept."""

    call: str
    pack: str
    paths: tuple[str, ...]
    problem: str = ""


def commits_since(journal: Journal, opened: int, root: str) -> list[CommittedPack]:
    """Return what was committed on a root since a row of the journal, the last first."""
    roots: dict[str, str] = {}
    found: list[CommittedPack] = []
    for seq, session, fact in journal.commits(0, journal.last()):
        if not isinstance(fact, CallDecided):
            roots[session] = fact.context.working_directory
        elif fact.committed and seq > opened and roots.get(session) == root:
            if fact.effects is not None and not fact.effects.totals:
                continue
            changes = fact.effects.changes if fact.effects is not None else ()
            problem = fact.cannot_undo or ("it ran outside of the sandbox" if fact.unconfined else "")
            found.append(CommittedPack(fact.call, fact.kept, tuple(each.path for each in changes), problem))
    return found[::-1]


async def copy_root(root: str, copy: Path) -> None:
    """Copy a directory with modes, times and links; a file system that can shares the content.

    Raises:
        ConfigError: it is too large, or cannot be copied.
    """
    size = await trio.to_thread.run_sync(_size, root)
    if size > _MOST:
        raise ConfigError(f"The root {root} holds {size / 2**30:.1f} GiB; at most {_MOST // 2**30} are copied.")
    command = ["cp", "-a", "--reflink=auto", "--", f"{root}/.", str(copy)]
    copy.mkdir(mode=0o700)
    done = await trio.run_process(command, check=False, capture_stderr=True, stdin=b"")
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(f"The root {root} cannot be copied: {told[0] if told else 'cp failed'}.")


def _size(root: str) -> int:
    """Return the bytes of the files beneath a directory, as far as needed to say that it is too large."""
    size = 0
    for directory, _, files in os.walk(root):
        for each in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(directory, each)).st_blocks * 512
        if size > _MOST:
            break
    return size


async def undo_commits(
    session: Session, commits: Sequence[CommittedPack], packs: Path, copies: Path, told: Callable[[str], None]
) -> list[str]:
    """Take back commits in the copy that a session works on; return what could not be had as it was, a clause each.

    Args:
        session: without a model.
        commits: the last first.
        packs: the directory of those there are.
        copies: that of the session, which gets them.
        told: is told how far it is.

    Raises:
        ConfigError: a pack cannot be copied.
    """
    left: list[str] = []
    for number, each in enumerate(commits, 1):
        told(f"taking back {number} of {len(commits)} changes")
        if not each.pack or not (packs / each.pack).exists():
            why = each.problem or "nothing that was kept of it is there any more"
            left.append(f"{', '.join(each.paths[:_NAMED]) or each.call}: {why}")
            continue
        _link(packs / each.pack, copies / each.pack)
        step = UndoStep(each.call, "", "", 0.0, each.pack)
        ended, _ = await session.undo(undoing(step, force=False), by="replay")
        if not ended.ok:
            left.append(f"{each.call}: {ended.content}")
            ended, _ = await session.undo(undoing(step, force=True), by="replay")
        if not ended.ok:
            left.append(f"{each.call}: {ended.content}")
    return left


def _link(pack: Path, name: Path) -> None:
    """Let a pack have another name, or copy it where it cannot."""
    name.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        try:
            os.link(pack, name)
        except OSError:
            try:
                shutil.copy2(pack, name)
            except OSError as error:
                raise ConfigError(f"The pack {pack} cannot be copied: {reason(error)}.") from error
