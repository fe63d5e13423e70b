"""A command on an overlay of the root, and what is proposed of it.

Rule: one rehearsal at a time, on a file system of its own, which the worker mounts before the command and lets go of
when it is decided: then nothing of what was not committed is left, in memory or elsewhere. Until its layer is committed
nothing of the root is touched, by whomever; all of the command is dead before its effects are determined. What ran is
exactly what was written; however a command ends, what it printed until then is kept. Only what was known before
a command offers a run without a rehearsal: what it did to its own is its error, and nothing has changed.

    PID 1     Rehearsal(...)                              layer: effects() -> originals() -> commit() -> close()
    child                    mount(...), the command, end
"""

import errno
import os
import re
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from workers.changes.effects import Effects
from workers.commit.upper_layer import LayerProposal, UpperLayer
from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.errors import CannotRehearse, RehearsalRefused, ToolError, TooMuch
from workers.shell.command_line import exit_result, not_started
from workers.shell.command_runner import MARGIN_S, CommandRunner
from workers.shell.no_input import remarks
from workers.shell.own_programs import own_path
from workers.shell.run.attempts import remark
from workers.shell.run.command import CommandOutcome, NotStarted, run
from workers.shell.sandbox.command_mounts import show_root_itself
from workers.shell.sandbox.guarded_root import show_guarded_root
from workers.shell.sandbox.private_root import HELD, LAYERS, in_memory
from workers.shell.shell_inputs import granted_s
from workers.tool import Proposal, ResultWithNote, ToolContext
from workers.tree.attributes import INTERNAL, attributes_of, set_attributes
from workers.tree.git_index import is_index, same
from workers.tree.root import DIRECTORY, HANDLE, closing, open_beneath
from workers.treediff import overlay

_LIMITS: Final[dict[int, str]] = {
    signal.SIGXFSZ: "it wrote a file of more than file_mb of [limits.shell]",
    signal.SIGXCPU: "it used up its processor time, cpu_s of [limits.shell]",
}

_ON_THE_ROOT: Final = (show_root_itself, show_guarded_root)
"""Places where what a command changes is changed."""

_HINTS: Final[dict[str, str]] = {
    os.strerror(errno.EOVERFLOW).lower(): "in a rehearsal, files of another user or group cannot be changed",
    os.strerror(errno.EXDEV).lower(): "in a rehearsal, a directory that was there before is not renamed in one step "
    "where it is large or closed: use `mv`, or copy it and remove it (of git: `mv` and `git add -A`)",
}
"""What a program says that meets a limit of the overlay, and what to do instead."""

_OF_PYTHON: Final = re.compile(rb"\bpy|\bpip|venv", re.ASCII)
"""What a command says that wants a Python."""

_TOO_MUCH: Final = {
    "memory": "used more than {memory_mb} MB of memory in all",
    "processes": "had more than {processes} processes",
}

_SHORTEST_S: Final = 0.1

_LARGEST_INDEX: Final = 2**26
"""Bytes of git's index that are looked through."""


class Rehearsal:
    """The rehearsal of one command."""

    def __init__(self, root_fd: int, root_path: str, scratch: str) -> None:
        """Begin.

        Args:
            root_fd: A descriptor of the root, O_PATH suffices; it stays the caller's.
            root_path: Where the root is in this process's mount namespace.
            scratch: An empty directory on a file system of limited size that has user attributes, which only this
                process can reach; whoever made it removes it.

        Raises:
            CannotRehearse: the scratch directory does not suffice.
        """
        self._root = root_fd
        self._root_path = root_path
        self._upper_path = os.path.join(scratch, "upper")
        self._work_path = os.path.join(scratch, "work")
        since_ns = time.time_ns()
        try:
            self.layer = UpperLayer(root_fd, self._made(), since_ns)
            """What the command changed, once everything of the command is dead."""
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise overlay.refusal(error) from error
            raise CannotRehearse(f"it cannot be prepared: {error.strerror}") from error

    def mount(self, at: str) -> None:
        """Mount the overlay over the path `at`; in the command's own mount namespace, before the command.

        Raises:
            CannotRehearse: there cannot be one, and why.
        """
        overlay.mount(self._root, self._root_path, at, self._upper_path, self._work_path)

    def _made(self) -> int:
        """Make both directories; open the upper one, which the command sees as the root, and so has its attributes."""
        with closing(open_beneath(self._root, ".", os.O_RDONLY | os.O_DIRECTORY, links=False)) as root:
            status = os.fstat(root)
            os.mkdir(self._work_path, 0o700)
            os.mkdir(self._upper_path, 0o700)
            upper = os.open(self._upper_path, DIRECTORY)
            try:
                os.setxattr(upper, f"{INTERNAL}probe", b"y")
                os.removexattr(upper, f"{INTERNAL}probe")
                set_attributes(upper, attributes_of(root), status.st_mode & 0o7777)
                os.utime(upper, ns=(status.st_atime_ns, status.st_mtime_ns))
            except BaseException:
                os.close(upper)
                raise
            return upper


class CommandOverlay:
    """The overlay of one command."""

    def __init__(self, engine: CommandRunner) -> None:
        """Begin, before the command is started.

        Raises:
            CannotRehearse: there is no overlay here, and why.
        """
        with ExitStack() as stack:
            root = os.open(HELD, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, root)
            try:
                mounts.new("tmpfs", LAYERS, NO_SUID | NO_DEVICES, in_memory(engine.layout.scratch_mb))
            except OSError as error:
                failure = TooMuch if error.errno in overlay.PASSING else CannotRehearse
                raise failure(f"there is no room for its changes: {error.strerror}") from error
            stack.callback(mounts.detach, LAYERS)
            self._root_path, self._root_device = engine.layout.root, os.fstat(root).st_dev
            self._rehearsal = Rehearsal(root, HELD, LAYERS)
            self.layer = self._rehearsal.layer
            stack.callback(self.layer.close)
            self._held = stack.pop_all()
        self.close: Final = self._held.close
        """Let go of everything that was not committed."""
        self.engine: Final = msgspec.structs.replace(
            engine, place=self._show, filter=engine.overlay_filter, hold=self._hold
        )
        """For the command."""

    def changed(self, effects: Effects) -> bool:
        """Say whether there is anything in the effects that is worth a commit."""
        if effects.totals != {"modified": 1} or not effects.changes or not is_index(effects.changes[0].path):
            return bool(effects.totals)
        change = effects.changes[0]
        versions = self.layer.versions(change.path, _LARGEST_INDEX)
        modes = {each.mode for each in (change.before, change.after) if each}
        return versions is None or len(modes) > 1 or not same(*versions)

    def proposal(self, effects: Effects, result: ResultWithNote) -> LayerProposal:
        """Propose the effects, with what the command printed, which is returned once they are committed."""

        def committed(remark: str) -> ResultWithNote:
            return ResultWithNote(result.value, "; ".join(filter(None, (result.note, remark))))

        return LayerProposal(effects, self.layer, self._held, "Run it again.", committed, result)

    def _hold(self, pid: int) -> bool:
        """Keep the overlay until it is let go of: to free what the kernel remembers of its files takes 2 us each."""
        try:
            root = os.open(f"/proc/{pid}/root{self._root_path}", HANDLE)
        except OSError:
            return False
        if os.fstat(root).st_dev == self._root_device:
            os.close(root)
            return False
        self._held.callback(os.close, root)
        return True

    def _show(self, path: str) -> None:
        """Show the overlay as the root: the `Place` of this command.

        Raises:
            CannotRehearse: it cannot be mounted, and why.
            OSError: its layers cannot be hidden.
        """
        self._rehearsal.mount(path)
        mounts.detach(LAYERS)


def run_command(
    context: ToolContext, file: str, arguments: Sequence[bytes], wanted_s: float | None = None
) -> ResultWithNote | Proposal:
    """Run a program and tell how it ended: on an overlay of the root, unless that is the root itself for a reason.

    It may take `wanted_s` seconds, or the usual time.

    Raises:
        ToolError: it could not be started, or it was ended.
        RehearsalRefused: there is no overlay, which was so before the command began.
    """
    engine: CommandRunner = context.engine
    granted = granted_s(wanted_s, engine.timeout_s, engine.max_timeout_s)
    left = (context.call_s or engine.start.call_s) - context.queued_s - MARGIN_S
    until = time.monotonic() + left
    environment = {**engine.environment, "PATH": own_path(engine.layout.root, engine.path)}
    engine = msgspec.structs.replace(engine, timeout_s=max(_SHORTEST_S, min(granted, left)), environment=environment)
    if not (engine.start.writable or engine.start.plan):
        return _run_program(context, engine, file, arguments)[0]
    if context.without_rehearsal:
        guarded = msgspec.structs.replace(engine, place=show_guarded_root)
        try:
            return _run_program(context, guarded, file, arguments)[0]
        except CannotRehearse as error:
            raise ToolError("resource_limit", f"Nothing was run: {error}.") from error
    try:
        overlay = CommandOverlay(engine)
        try:
            result, ended = _run_program(context, overlay.engine, file, arguments)
            effects = _effects(overlay.layer, until, ended)
        except BaseException:
            overlay.close()
            raise
    except TooMuch as error:
        raise ToolError("resource_limit", f"Nothing was run: {error}. Try again later.") from error
    except CannotRehearse as error:
        raise RehearsalRefused(str(error)) from error
    asks = engine.network is not None and any(each.kind == "network" for each in effects.refused)
    if overlay.changed(effects) or effects.traffic or (asks and not context.network):
        return overlay.proposal(effects, result)
    context.later(overlay.close)
    return result


def _effects(layer: UpperLayer, until: float, ended: CommandOutcome) -> Effects:
    """Return what a command would change, and what it tried in vain.

    Raises:
        ToolError: `resource_limit`, it has left what cannot be told.
    """
    try:
        effects = layer.effects(until)
    except CannotRehearse as error:
        why = f"Nothing was changed: the command ran in a rehearsal, but {error}."
        raise ToolError("resource_limit", f"{why} Run less at once, or in another way.", **_uploaded(ended)) from error
    told: dict[str, Any] = {"refused": ended.refused, "refused_left_out": ended.refused_left_out}
    told |= {"traffic": ended.traffic, "exit_code": ended.code}
    return msgspec.structs.replace(effects, **told)


def _run_program(
    context: ToolContext, engine: CommandRunner, file: str, arguments: Sequence[bytes]
) -> tuple[ResultWithNote, CommandOutcome]:
    """Run a program with an engine for it, and tell how it ended, in words and as it was.

    Raises:
        ToolError: it could not be started, or it was ended.
        CannotRehearse: its place could not be made, or not as the root is.
    """
    try:
        if context.places and engine.network is not None:
            engine = msgspec.structs.replace(
                engine, network=msgspec.structs.replace(engine.network, places=context.places)
            )
        network = context.network and engine.place not in _ON_THE_ROOT  # as sockets of others may lie in the root
        ended = run(engine, file, arguments, context.output, context.root.umask, network=network, upload=context.upload)
    except NotStarted as error:
        if error.failure.step == "rehearsal":
            raise (TooMuch if error.failure.errno else CannotRehearse)(error.failure.message) from error
        raise _start_error(error, arguments) from error
    if ended.ended != "exited":
        raise _ended(engine, ended, remarks(arguments[-1], 0, ended.stdout, ended.stderr))
    result, notes = exit_result(ended.code, ended.stdout, ended.stderr, _LIMITS)
    notes += remarks(arguments[-1], ended.code, ended.stdout, ended.stderr)
    notes += [f"it had run for {ended.seconds:.3g} s"] if any(note.startswith("killed") for note in notes) else []
    if ended.code and engine.place not in _ON_THE_ROOT:
        notes += [hint for text, hint in _HINTS.items() if text in ended.stderr.lower()]
    if ended.code and engine.venv_problem and any(_OF_PYTHON.search(each) for each in arguments):
        notes.append(engine.venv_problem)
    if context.network and not network:
        notes.append("it had no network: only a rehearsed command can have one")
    return ResultWithNote(result, "; ".join(filter(None, (*notes, remark(ended.refused))))), ended


def _start_error(error: NotStarted, arguments: Sequence[bytes]) -> ToolError:
    failure = error.failure
    name = arguments[0].decode("utf-8", "replace")[:80]
    if failure.step == "sandbox":
        why = f"{failure.feature or failure.what}: {failure.message}"
        return ToolError(
            "internal",
            f"Nothing was run: the sandbox for {name!r} could not be set up ({why}). Tell the person to "
            "run `strongroom doctor`.",
        )
    return not_started(arguments[0], failure.errno, failure.message)


def _uploaded(outcome: CommandOutcome) -> dict[str, Any]:
    """Return how many bytes a command has sent, for who counts them; nothing where it had no connection."""
    return {"uploaded": sum(each.up for each in outcome.traffic)} if outcome.traffic else {}


def _ended(engine: CommandRunner, outcome: CommandOutcome, remarks: Sequence[str]) -> ToolError:
    why, stdout, stderr, most = outcome.ended, outcome.stdout, outcome.stderr, engine.max_timeout_s
    printed = {"stdout": stdout, "stderr": stderr, **_uploaded(outcome)}
    done = (
        "; what it had done until then stays." if engine.place in _ON_THE_ROOT else ". None of its changes were kept."
    )
    left = f"It was killed with everything it had started{done}"
    printed_text = " Its output until then is in stdout and stderr." if stdout or stderr else " It had printed nothing."
    if why == "timeout":
        limit = f"The command did not end within the {engine.timeout_s:.3g} s that it had."
        asked = "".join(f" Note: {each}." for each in remarks)
        more = f", or give it longer: timeout_s, {most:g} at most" if engine.timeout_s < most else ""
        return ToolError("timeout", f"{limit} {left}{printed_text} Run less at once{more}.{asked}", **printed)
    what = _TOO_MUCH[why].format(memory_mb=engine.start.limits.memory_mb, processes=engine.start.limits.processes)
    what = f"{what}, after {outcome.seconds:.3g} s"
    return ToolError("resource_limit", f"The command {what}. {left}{printed_text} Run less at once.", **printed)
