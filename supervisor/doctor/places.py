"""Checks by place: configuration, home, journal, socket, and the directory of undo packs.

Rule: one result for each, whatever the others are like; what lies in a home that cannot be used is not touched.
Nothing is changed except what every start makes: the home itself, and an empty journal. An unnamed file is written
beside the journal, to see whether there is room for more of it.
"""

import errno
import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from supervisor.categories.restore import UndoConfig
from supervisor.config.settings import Settings
from supervisor.daemon.process.lock import Published, running
from supervisor.doctor.table import CheckResult
from supervisor.errors import ConfigError, JournalError
from supervisor.journal.journal import open_journal
from supervisor.system.safe_files import own_directory, secure_home

_MB: Final = 2**20
_BLOCK: Final = 512
"""Bytes of one of `st_blocks` (stat(2))."""

_NOTHING_RUNS: Final = "Nothing can be recorded, so nothing runs."

_ROOM: Final = 2**20
"""Bytes that the journal must be able to grow by: a call with all that it says, and what SQLite writes besides."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_places(settings: Settings, problem: str = "") -> Iterator[CheckResult]:
    """Look at all of them; `problem` says why the configuration does not count."""
    yield _configuration(settings, problem)
    home = check_home(settings)
    yield home
    usable = home.verdict == "ok"
    lost, unkept = "it lies in the home, which cannot be used", "Nothing can be kept, so nothing can be changed."
    yield check_journal(settings) if usable else CheckResult("journal", "missing", lost, _NOTHING_RUNS)
    yield check_socket(settings)
    yield check_undo(settings) if usable else CheckResult("undo", "missing", "what it needs lies in the home", unkept)


def _configuration(settings: Settings, problem: str) -> CheckResult:
    if problem:
        advice = (
            "Correct it, or set STRONGROOM_HOME where it is not yours. Everything else was checked with the defaults."
        )
        return CheckResult("configuration", "missing", problem, advice)
    file = settings.config_file
    there = os.path.lexists(file)
    detail = f"{file} can be used" if there else f"there is no {file}: the defaults hold"
    return CheckResult("configuration", "ok", detail)


def check_home(settings: Settings) -> CheckResult:
    """Look whose the home is, and who may enter it; it is made if need be."""
    home = settings.home
    try:
        owner = home.stat().st_uid if os.path.lexists(home) else os.geteuid()
        if owner != os.geteuid():
            return _of_another("home", home, owner)
        secure_home(home)
    except ConfigError as error:
        return CheckResult("home", "missing", str(error), _NOTHING_RUNS)
    except OSError as error:
        return CheckResult("home", "missing", f"The directory {home} cannot be used: {error.strerror}.", _NOTHING_RUNS)
    return CheckResult("home", "ok", f"{home} is for its owner alone")


def check_journal(settings: Settings) -> CheckResult:
    """See whether there is room for more of it, and read the whole journal."""
    folder = settings.journal.parent
    try:
        _write(folder)
    except OSError as error:
        mended = f"Make room on its disk, {_ROOM // _MB} MB at least" if error.errno in _FULL else "Make it writable"
        detail = f"no more can be written in {folder}: {error.strerror}"
        return CheckResult("journal", "missing", detail, f"{_NOTHING_RUNS} {mended}, or set STRONGROOM_HOME.")
    try:
        with open_journal(settings.journal) as journal:
            verdict = journal.verify()
    except JournalError as error:
        return CheckResult("journal", "missing", str(error), _NOTHING_RUNS)
    if verdict.problem:
        advice = "Keep the file; start with another STRONGROOM_HOME."
        return CheckResult("journal", "missing", verdict.problem, advice)
    return CheckResult("journal", "ok", f"{verdict.rows} facts, the chain is intact")


def _write(directory: Path) -> None:
    """Write `_ROOM` bytes to the disk, and remove them again.

    Raises:
        OSError: the system does not take them.
    """
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        rest = memoryview(os.urandom(_ROOM))  # for zeros some file systems need no room at all
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file)


def check_socket(settings: Settings) -> CheckResult:
    """Look at who can reach the socket: of the daemon that runs, else of one that would be started."""
    daemon = daemon_of(settings)
    path = settings.socket
    if daemon is not None and daemon.socket not in ("", str(path).encode("utf-8", "replace").decode()):
        path = Path(daemon.socket)
    try:
        above = path.parent.stat()
        mode = path.lstat().st_mode if os.path.lexists(path) else None
    except FileNotFoundError:
        detail = f"{path} is made, with its directory, when the daemon starts"
        return CheckResult("socket", "ok", detail) if daemon is None else _gone(path, daemon)
    except OSError as error:
        return CheckResult("socket", "missing", f"{path}: {error.strerror}", "Choose another with --socket.")
    if (unsafe := _unsafe(path.parent, above)) is not None:
        return unsafe
    if mode is not None:
        return _present(path, mode)
    return CheckResult("socket", "ok", f"no daemon listens at {path} now") if daemon is None else _gone(path, daemon)


def daemon_of(settings: Settings) -> Published | None:
    """Return what the daemon that runs says of itself; None where none does, or the home cannot be used."""
    try:
        return running(settings)
    except ConfigError:  # the home's own row tells it
        return None


def _unsafe(directory: Path, status: os.stat_result) -> CheckResult | None:
    if status.st_uid != os.geteuid():
        return _of_another("socket", directory, status.st_uid)
    if status.st_mode & 0o077:
        return CheckResult("socket", "missing", f"{directory} is open to others", f"chmod 700 {directory}")
    return None


def _gone(path: Path, daemon: Published) -> CheckResult:
    if not daemon.socket:
        return CheckResult("socket", "ok", "a daemon is just starting, or ending")
    detail = f"the daemon (pid {daemon.pid}) runs, but its socket {path} is gone: nobody can reach it"
    advice = f"kill {daemon.pid} ends it gracefully; the next command starts another, which resumes its turns."
    return CheckResult("socket", "missing", detail, advice)


def _present(path: Path, mode: int) -> CheckResult:
    if not stat.S_ISSOCK(mode):
        return CheckResult(
            "socket", "missing", f"{path} is not a socket, so no daemon can listen there", "Move it away."
        )
    if mode & 0o077:
        return CheckResult("socket", "degraded", f"others may use {path}", f"chmod 600 {path}")
    return CheckResult("socket", "ok", f"{path} is for its owner alone")


def _of_another(subject: str, place: Path, owner: int) -> CheckResult:
    """Say that a directory belongs to another user: no mode of it helps."""
    whose, us = _name(owner), _name(os.geteuid())
    advice = f"Set STRONGROOM_HOME to a directory of your own, or run strongroom as {whose}."
    return CheckResult(subject, "missing", f"{place} belongs to {whose}, and this is {us}: it cannot be used", advice)


def _name(user: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name} (user {user})"
    except KeyError:
        return f"user {user}"


def check_undo(settings: Settings) -> CheckResult:
    """Look at where the old content of what calls change is kept for undo; change nothing there."""
    place, limits = settings.packs, settings.config.section(UndoConfig)
    if not limits.total_mb:
        detail = "nothing is kept: total_mb of [undo] is 0"
        return CheckResult("undo", "degraded", detail, "No change can be undone until you raise it.")
    begun = os.path.lexists(place)
    try:
        shared = own_directory(place if begun else settings.home, "Move it away.") & 0o077
        files = [each for each in os.scandir(place) if each.is_file(follow_symlinks=False)] if begun else []
        packs = [each.stat(follow_symlinks=False) for each in files]
        free = shutil.disk_usage(settings.home).free / _MB
    except (ConfigError, OSError) as error:
        return CheckResult("undo", "missing", str(error), "Nothing can be kept there, so nothing can be changed.")
    used = sum(each.st_blocks for each in packs) * _BLOCK / _MB
    detail = f"{len(packs)} calls can be undone; they take {used:.1f} of {limits.total_mb} MB in {place}"
    if begun and shared:
        linked = f"Move it away: it is a link to {place.resolve()}, and no undo follows a link."
        advice = linked if place.is_symlink() else f"chmod 700 {place}"
        return CheckResult("undo", "degraded", f"others may look into {place}", advice)
    if used > limits.total_mb:
        return CheckResult("undo", "degraded", detail, "The oldest are deleted with the next change that is kept.")
    if free < min(limits.call_mb, limits.total_mb - used):
        detail += f", and only {free:.0f} MB of its disk are free"
        return CheckResult("undo", "degraded", detail, "Make room there: what cannot be kept is not changed.")
    return CheckResult("undo", "ok", detail)
