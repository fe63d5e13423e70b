"""A command on an overlay of the root, and what is proposed of it.

Rule: until its layer is committed nothing of the root is touched, by whomever; all of the command is dead before its
effects are determined. What ran is exactly what was written; however a command ends, what it printed until then is
kept. Where there can be no overlay, it runs in a copy of the root. Only what was known before a command offers a run
without a rehearsal: what it did to its own is its error, and nothing has changed.

    PID 1     CommandLayer(...)                              layer: effects() -> originals() -> commit() -> close()
    child                       its place, the command, end
"""

import errno
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final

import msgspec

from workers.changes.effects import Effects
from workers.errors import CannotRehearse, RehearsalRefused, ToolError, TooMuch
from workers.shell import refusals
from workers.shell.command_line import exit_result, not_started
from workers.shell.command_overlay import CommandLayer, CommandOverlay
from workers.shell.command_runner import MARGIN_S, CommandRunner
from workers.shell.copies.command_copy import CommandCopy, CopyInSandbox
from workers.shell.copies.copy_look import look_engine
from workers.shell.look import ShownOnce, looking
from workers.shell.no_input import remarks
from workers.shell.own_programs import own_directories
from workers.shell.run.attempts import remark
from workers.shell.run.command import CommandOutcome, NotStarted, run
from workers.shell.run.network_remarks import network_remarks, received
from workers.shell.sandbox.command_mounts import show_root_itself
from workers.shell.sandbox.guarded_root import show_guarded_root
from workers.shell.shell_inputs import granted_s
from workers.tool import Proposal, ResultWithNote, ToolContext

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
    "fatal: not a git repository: /": "the repository of this work tree lies outside of the root, and commands do not "
    "see it: git works in a session whose root is the repository",
    "fatal: not a git repository (or": "a repository around the root is not seen by commands",
    "gpg failed to sign": "commands have no key of the person's: commit with --no-gpg-sign, and let them sign it",
    "please tell me who you are": "nothing that a command configures outlasts it: the person's own git configuration "
    "names nobody (`git config --global user.name`, user.email); until then `git -c user.name=... -c user.email=...`",
}
"""What a program says that meets a limit of the sandbox, and what to do instead."""

_OF_PYTHON: Final = re.compile(rb"\bpy|\bpip|venv", re.ASCII)
"""What a command says that wants a Python."""

_LISTENS: Final = re.compile(r"(?i:listen|bind)[^\n]{0,80}(?:EPERM|[Nn]ot permitted)")
"""What programs say that are not given the socket of a server."""
_NO_LOCALHOST: Final = (
    "no command can listen, not even on localhost: what starts a server of its own cannot be run here"
)
_NO_SERVER: Final = re.compile(
    r"ECONNREFUSED|[Cc]onnection refused|ouldn't connect to server|an't connect to [^\n]{0,40}server|on that socket\?"
)
"""What programs say that reach none, among them those of curl, MySQL and PostgreSQL."""
_OWN_LOCALHOST: Final = (
    "localhost is the command's own: it reaches what it has started itself, and no server of this machine"
)

_TOO_MUCH: Final = {
    "disk": "wrote more than {disk_mb} MB",
    "memory": "used more than {memory_mb} MB of memory in all",
    "processes": "had more than {processes} processes",
}

_EXPOSED: Final = (
    "While the command ran, a file that is hidden was made or replaced, and it may have read it: what it printed is "
    "withheld{} Run it again."
)
_TOLD: Final = 3
_SHORTEST_S: Final = 0.1


def run_command(
    context: ToolContext, file: str, arguments: Sequence[bytes], wanted_s: float | None = None
) -> ResultWithNote | Proposal:
    """Run a program and tell how it ended: on an overlay of the root, unless that is the root itself for a reason.

    It may take `wanted_s` seconds, or the usual time; an approved install the longest.

    Raises:
        ToolError: it could not be started, or it was ended.
        RehearsalRefused: there is no overlay, which was so before the command began.
    """
    engine: CommandRunner = context.engine
    usual_s = engine.max_timeout_s if context.places else engine.timeout_s
    granted = granted_s(wanted_s, usual_s, engine.max_timeout_s)
    left = (context.call_s or engine.start.call_s) - context.queued_s - MARGIN_S
    until = time.monotonic() + left
    own = own_directories(engine.layout.root, engine.held, engine.own)
    environment = {**engine.environment, "PATH": ":".join((*own, *engine.path))}
    engine = msgspec.structs.replace(engine, timeout_s=max(_SHORTEST_S, min(granted, left)), environment=environment)
    engine = msgspec.structs.replace(engine, online=context.network)
    if not (engine.start.writable or engine.start.plan) and not engine.copies:
        return _run_program(context, engine, file, arguments)[0]
    if context.without_rehearsal and not engine.copies:
        guarded = msgspec.structs.replace(engine, place=show_guarded_root)
        try:
            return _run_program(context, guarded, file, arguments)[0]
        except CannotRehearse as error:
            raise ToolError("resource_limit", f"Nothing was run: {error}.") from error
    if not context.network and (eyes := looking(engine, file, arguments)):
        once = ShownOnce(context.output)
        eyes = msgspec.structs.replace(eyes, hold=lambda mounts: context.later(partial(os.close, mounts)))
        with suppress(CannotRehearse), ExitStack() as places:
            eyes = look_engine(eyes, places) if engine.copies else eyes
            result, ended = _run_program(msgspec.structs.replace(context, output=once.show), eyes, file, arguments)
            if not ended.refused:
                return result
        context = msgspec.structs.replace(context, output=once.show_again)
        engine = msgspec.structs.replace(engine, timeout_s=max(_SHORTEST_S, min(granted, until - time.monotonic())))
    why = ""
    for make in _layers(engine):
        try:
            return _on_layer(make(engine), context, file, arguments, until)
        except TooMuch as error:
            raise ToolError("resource_limit", f"Nothing was run: {error}. Try again later.") from error
        except CannotRehearse as error:
            why = f"{why}; {error}" if why else str(error)
    if engine.copies:
        raise ToolError("resource_limit", f"Nothing was run: {why}.")
    raise RehearsalRefused(why)


def _layers(engine: CommandRunner) -> Iterator[Callable[[CommandRunner], CommandLayer]]:
    """Yield what makes what a command may run on, the best first; the next one where that cannot be had here."""
    if engine.copies:
        yield CommandCopy
        return
    yield CommandOverlay
    if engine.copy_mb:
        yield CopyInSandbox


def _on_layer(
    layer: CommandLayer, context: ToolContext, file: str, arguments: Sequence[bytes], until: float
) -> ResultWithNote | Proposal:
    """Run a program on a layer, and propose what it changed.

    Raises:
        ToolError: as `run_command`.
        CannotRehearse: it could not be begun there.
    """
    try:
        result, ended = _run_program(context, layer.engine, layer.lies_at(file), layer.given(arguments), layer.told)
        effects = msgspec.structs.replace(_effects(layer, until, ended), lacked=result.lacked)
        notes = result.note, layer.remark(ended.stdout + ended.stderr)
        result = result._replace(note="; ".join(filter(None, notes)))
        engine = layer.engine
        asks = engine.network is not None and any(each.kind == "network" for each in effects.refused)
        wanted = layer.changed(effects) or effects.traffic or (asks and not context.network)
        if wanted and (engine.start.writable or engine.start.plan):
            return layer.proposal(effects, result)
    except BaseException:
        layer.close()
        raise
    context.later(layer.close)
    return result


def _effects(layer: CommandLayer, until: float, ended: CommandOutcome) -> Effects:
    """Return what a command would change, and what it tried in vain.

    Raises:
        ToolError: `resource_limit`, it has left what cannot be told.
    """
    try:
        effects = layer.layer(until).effects(until)
    except CannotRehearse as error:
        why = f"Nothing was changed: the command ran in a rehearsal, but {error}."
        raise ToolError("resource_limit", f"{why} Run less at once, or in another way.", **_uploaded(ended)) from error
    told: dict[str, Any] = {"refused": ended.refused, "refused_left_out": ended.refused_left_out}
    told |= {"traffic": ended.traffic, "exit_code": ended.code, "rehearsed_in": layer.remark("")}
    return msgspec.structs.replace(effects, **told)


def _run_program(
    context: ToolContext, engine: CommandRunner, file: str, arguments: Sequence[bytes], told: Callable[[str], str] = str
) -> tuple[ResultWithNote, CommandOutcome]:
    """Run a program with an engine for it; tell how it ended: in words, what it printed as `told` says, and as it was.

    Raises:
        ToolError: it could not be started, or it was ended.
        CannotRehearse: its place could not be made, or not as the root is.
    """
    try:
        if context.places and engine.network is not None:
            engine = msgspec.structs.replace(
                engine, network=msgspec.structs.replace(engine.network, places=context.places)
            )
        # Sockets of others may lie in the root; and in a copy there is no network namespace.
        network = context.network and engine.place not in _ON_THE_ROOT and not engine.copies
        show = context.output if told is str else lambda text: context.output(told(text))
        was = run(engine, file, arguments, show, context.root.umask, network=network, upload=context.upload)
    except NotStarted as error:
        if error.failure.step == "rehearsal":
            raise (TooMuch if error.failure.errno else CannotRehearse)(error.failure.message) from error
        raise _start_error(error, arguments, engine.venv_problem) from error
    if was.exposed:
        raise ToolError("conflict", _EXPOSED.format(_done(engine)), paths=", ".join(was.exposed[:_TOLD]))
    ended = was._replace(stdout=told(was.stdout), stderr=told(was.stderr))
    if ended.ended != "exited":
        said = [*network_remarks(1, was.stdout + was.stderr, was.traffic), *received(was.traffic)]
        said += filter(None, (remark(ended.refused),))
        raise _ended(engine, ended, [*remarks(arguments[-1], ended.stdout, ended.stderr), *said])
    result, notes = exit_result(ended.code, ended.stdout, ended.stderr, _LIMITS)
    notes += remarks(arguments[-1], ended.stdout, ended.stderr)
    notes += network_remarks(was.code, was.stdout + was.stderr, was.traffic)
    missed = refusals.lacked(ended.code, ended.stdout, ended.stderr, network=bool(ended.refused))
    if engine.layout.machine:
        missed = tuple(dict.fromkeys((*missed, *refusals.unseen(arguments[-1], ended.code))))
        notes += refusals.notes(arguments[-1], missed, ended.stdout, network=bool(ended.refused))
    notes += [f"it had run for {ended.seconds:.3g} s"] if any(note.startswith("killed") for note in notes) else []
    if ended.code and engine.place not in _ON_THE_ROOT:
        notes += [hint for text, hint in _HINTS.items() if text in ended.stderr.lower()]
    if ended.code and engine.venv_problem and any(_OF_PYTHON.search(each) for each in arguments):
        notes.append(engine.venv_problem)
    if context.network and not network:
        notes.append("it had no network: only a command on an overlay can have one")
    refused = _refused(ended, listens=engine.overlay_ports is None and engine.place not in _ON_THE_ROOT)
    return ResultWithNote(result, "; ".join(filter(None, (*notes, *refused))), missed), was


def _refused(ended: CommandOutcome, *, listens: bool) -> list[str]:
    """Return what is said of what it was not given; it `listens` where it has a localhost of its own."""
    said = ended.stdout + ended.stderr
    if listens:
        told = _OWN_LOCALHOST if ended.code and _NO_SERVER.search(said) else ""
    else:
        told = _NO_LOCALHOST if ended.refused and _LISTENS.search(said) else ""
    return [told, remark(ended.refused)]


def _start_error(error: NotStarted, arguments: Sequence[bytes], venv_problem: str) -> ToolError:
    failure = error.failure
    name = arguments[0].decode("utf-8", "replace")[:80]
    if failure.step == "sandbox":
        why = f"{failure.feature or failure.what}: {failure.message}"
        return ToolError(
            "internal",
            f"Nothing was run: the sandbox for {name!r} could not be set up ({why}). Tell the person to "
            "run `strongroom doctor`.",
        )
    return not_started(arguments[0], failure.errno, failure.message, venv_problem)


def _uploaded(outcome: CommandOutcome) -> dict[str, Any]:
    """Return how many bytes a command has sent, for who counts them; nothing where it had no connection."""
    return {"uploaded": sum(each.up for each in outcome.traffic)} if outcome.traffic else {}


def _done(engine: CommandRunner) -> str:
    if engine.place in _ON_THE_ROOT and engine.start.writable:
        return "; what it had done until then stays."
    return ". None of its changes were kept."


def _ended(engine: CommandRunner, outcome: CommandOutcome, remarks: Sequence[str]) -> ToolError:
    why, stdout, stderr, most = outcome.ended, outcome.stdout, outcome.stderr, engine.max_timeout_s
    printed = {"stdout": stdout, "stderr": stderr, **_uploaded(outcome)}
    left = f"It was killed with everything it had started{_done(engine)}"
    printed_text = " Its output until then is in stdout and stderr." if stdout or stderr else " It had printed nothing."
    if why == "timeout":
        limit = f"The command did not end within the {engine.timeout_s:.3g} s that it had."
        asked = "".join(f" Note: {each}." for each in remarks)
        more = f", or give it longer: timeout_s, {most:g} at most" if engine.timeout_s < most else ""
        return ToolError("timeout", f"{limit} {left}{printed_text} Run less at once{more}.{asked}", **printed)
    what = _TOO_MUCH[why].format(
        memory_mb=engine.start.limits.memory_mb,
        processes=engine.start.limits.processes,
        disk_mb=engine.layout.scratch_mb,
    )
    what = f"{what}, after {outcome.seconds:.3g} s"
    return ToolError("resource_limit", f"The command {what}. {left}{printed_text} Run less at once.", **printed)
