"""From a model's words to bytes for the kernel, and from a command's end to words for the model.

Rule: what ran is exactly what was written; nothing is cut, quoted or expanded. However a command ends, what it printed
until then is kept.
"""

import errno
import os
import signal
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from workers.errors import CannotRehearse, RehearsalRefused, ToolError
from workers.shell.command_line import exit_result, not_started
from workers.shell.command_proposal import CommandOverlay, CommandProposal
from workers.shell.command_runner import MARGIN_S, CommandRunner
from workers.shell.run.attempts import remark
from workers.shell.run.command import CommandOutcome, NotStarted, run
from workers.shell.sandbox.command_mounts import show_root_itself
from workers.tool import Proposal, ResultWithNote, ToolContext

_LIMITS: Final[dict[int, str]] = {
    signal.SIGXFSZ: "it wrote a file of more than file_mb of [limits.shell]",
    signal.SIGXCPU: "it used up its processor time, cpu_s of [limits.shell]",
}

_FOREIGN: Final = os.strerror(errno.EOVERFLOW).lower()
"""What a program says that is to change a file on the overlay whose owner or group has no number in its namespace."""

_TOO_MUCH: Final = {
    "memory": "used more than {memory_mb} MB of memory in all",
    "processes": "had more than {processes} processes",
}


def run_command(context: ToolContext, file: str, arguments: Sequence[bytes]) -> ResultWithNote | Proposal:
    """Run a program and tell how it ended: on an overlay of the root, unless that is the root itself for a reason.

    Raises:
        ToolError: it could not be started, or it was ended.
        Unrehearsable: there is no overlay, or it cannot be told what happened on it.
    """
    engine: CommandRunner = context.engine
    if context.without_rehearsal or not engine.start.writable:
        return _run_program(context, engine, file, arguments)[0]
    until = time.monotonic() + engine.start.call_s - context.queued_s - MARGIN_S
    try:
        overlay = CommandOverlay(engine)
        try:
            result, ended = _run_program(context, overlay.engine, file, arguments)
            refused = {"refused": ended.refused, "refused_left_out": ended.refused_left_out}
            effects = msgspec.structs.replace(overlay.rehearsal.layer.effects(until), **refused)
        except BaseException:
            overlay.close()
            raise
    except CannotRehearse as error:
        raise RehearsalRefused(error.reason) from error
    asks = engine.network is not None and any(each.kind == "network" for each in effects.refused)
    if overlay.changed(effects) or (asks and not context.network):
        return CommandProposal(effects, overlay, result)
    overlay.close()
    return result


def _run_program(
    context: ToolContext, engine: CommandRunner, file: str, arguments: Sequence[bytes]
) -> tuple[ResultWithNote, CommandOutcome]:
    """Run a program with an engine for it, and tell how it ended, in words and as it was.

    Raises:
        ToolError: it could not be started, or it was ended.
        CannotRehearse: its place could not be made, or not as the root is.
    """
    try:
        network = context.network and engine.place is not show_root_itself  # as sockets of others may lie in the root
        ended = run(engine, file, arguments, context.output, context.root.umask, network=network)
    except NotStarted as error:
        if error.failure.step == "rehearsal":
            raise CannotRehearse(error.failure.message) from error
        raise _start_error(error, arguments) from error
    if ended.ended != "exited":
        raise _ended(engine, ended.ended, ended.stdout, ended.stderr)
    if ended.code and engine.place is not show_root_itself and _FOREIGN in ended.stderr.lower():
        raise CannotRehearse("it changes a file of another user or group, which an overlay cannot represent")
    result, notes = exit_result(ended.code, ended.stdout, ended.stderr, _LIMITS)
    if context.network and not network:
        notes.append("it had no network: only a rehearsed command can have one")
    return ResultWithNote(result, "; ".join(filter(None, (*notes, remark(ended.refused))))), ended


def _start_error(error: Any, arguments: Sequence[bytes]) -> ToolError:
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


def _ended(engine: CommandRunner, why: str, stdout: str, stderr: str) -> ToolError:
    printed = {"stdout": stdout, "stderr": stderr}
    done = (
        "; what it had done until then stays."
        if engine.place is show_root_itself
        else ". None of its changes were kept."
    )
    left = f"It was killed with everything it had started{done}"
    printed_text = " Its output until then is in stdout and stderr." if stdout or stderr else " It had printed nothing."
    if why == "timeout":
        limit = f"The command did not end within {engine.timeout_s:g} s."
        return ToolError("timeout", f"{limit} {left}{printed_text} Run less at once.", **printed)
    what = _TOO_MUCH[why].format(memory_mb=engine.start.limits.memory_mb, processes=engine.start.limits.processes)
    return ToolError("resource_limit", f"The command {what}. {left}{printed_text} Run less at once.", **printed)
