"""One command outside of the sandbox, as the person's own user: because they said so, and only then.

Rule: nothing decides here. The caller has a person's `ApprovalDecision.unconfined`, given where the configuration
offers it, and has journaled it; no tool's argument, no model's text and no file of the root leads here. The command
gets the person's login basics as its environment and nothing else of this process; `supervisor.tools.unconfined.warden`
runs it, and ends it.
"""

import logging
import os
import pwd
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import trio
from trio.lowlevel import FdStream, notify_closing, wait_readable

from supervisor.config.settings import LOGIN
from supervisor.display.escape import one_line
from supervisor.pool.child_process import spawn
from supervisor.pool.frame_reader import FrameReader
from supervisor.pool.template_process import worker_command
from supervisor.pool.worker_process import orphans_ended
from supervisor.system.descendants import Orphans
from supervisor.tools.services import ChangeServices
from supervisor.tools.unconfined.warden import CommandRequest
from workers.catalog import CATEGORIES
from workers.errors import ToolError
from workers.shell.command_line import SYSTEM_PATH, encoded, find_program, system_shell
from workers.shell.shell_inputs import granted_s
from workers.wire import frames, messages

Outcome = messages.Done | messages.Failed
"""As a worker answers; its id means nothing."""

_MAIN: Final = "from supervisor.tools.unconfined.warden import main; main()"
_DEFAULT_PATH: Final = ":".join(SYSTEM_PATH)
_ENDS_S: Final = 2.0
"""Seconds that the warden has, after a command's time is up or it was told to end it, until it is killed itself."""
_LAST_WORDS: Final = 2000

_log: Final = logging.getLogger("strongroom.tools")


_ARGUMENTS: Final[Mapping[str, Any]] = MappingProxyType({tool.name: tool.args for tool in CATEGORIES["shell"].tools})


async def run_unconfined(
    tool: str, arguments: str, root: str, services: ChangeServices, output: Callable[[str], None]
) -> Outcome:
    """Run one command as the person's own user; nothing of it is left when this returns, or is cancelled.

    To be called in the main thread: the warden dies with the thread that started it.

    Args:
        tool: `exec_shell` or `run_cmd`.
        arguments: raw JSON, as a person saw them.
        root: the current directory, absolute.
        services: what the command is given, and the orphans of this process, which must know that the warden is none.
        output: is given what it prints while it runs.
    """
    try:
        environment = login_environment(root, services.login)
        given = _decoded(tool, arguments)
        command = command_line(tool, given, environment["PATH"])
        seconds = granted_s(given.timeout_s, services.timeout_s, services.max_timeout_s)
    except ToolError as error:
        return messages.Failed(0, error.kind, error.message, error.details)
    try:
        with ExitStack() as passed:
            root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            passed.callback(os.close, root_fd)
            warden = _Warden(root_fd, services.orphans)
    except OSError as error:
        return messages.Failed(
            0, "worker_unavailable", f"Nothing was run: {error.strerror} ({error.filename or 'fork'})."
        )
    variables = tuple((os.fsencode(name), os.fsencode(value)) for name, value in environment.items())
    request = CommandRequest(command[0], command[1], variables, root_fd, seconds)
    answer: Outcome | None = None
    try:
        with trio.move_on_after(seconds + _ENDS_S):
            answer = await warden.obey(request, output)
    finally:
        await warden.end()
    if answer is not None:
        return answer
    _log.warning("the warden of an unconfined command ended without an answer: %s", warden.last_words)
    message = "The command ran unconfined, and how it ended is not known. Look at what it did before you repeat it."
    return messages.Failed(0, "outcome_unknown", message)


def login_environment(root: str, login: Mapping[str, str]) -> dict[str, str]:
    """Return a command's whole environment: what the system knows of this user, and those of `LOGIN` in `login`.

    Of PATH, only absolute directories outside of the root count: what lies in the root is not the person's.
    """
    try:
        user = pwd.getpwuid(os.getuid())
        known = {
            "HOME": user.pw_dir,
            "USER": user.pw_name,
            "LOGNAME": user.pw_name,
            "SHELL": user.pw_shell or "/bin/sh",
        }
    except KeyError:  # a user without an entry, as in some containers
        known = {"HOME": "/", "SHELL": "/bin/sh"}
    given = {name: login[name] for name in LOGIN if login.get(name)}
    real = os.path.realpath(root)
    path = [each for each in given.get("PATH", _DEFAULT_PATH).split(":") if each.startswith("/")]
    outside = [each for each in path if not Path(os.path.realpath(each)).is_relative_to(real)]
    basics = {"LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0", "PWD": root}
    return {**basics, **known, **given, "PATH": ":".join(outside) or _DEFAULT_PATH}


def _decoded(tool: str, arguments: str) -> Any:
    """Return a call's arguments, as its tool takes them.

    Raises:
        ToolError: `invalid_arguments`.
    """
    try:
        return msgspec.json.decode(arguments, type=_ARGUMENTS[tool])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ToolError("invalid_arguments", f"Invalid arguments for {tool}: {error}.") from error


def command_line(tool: str, given: Any, path: str) -> tuple[str, tuple[bytes, ...]]:
    """Return the program's file, and its arguments, the first of which is its name.

    A program with a slash in its name is a file, seen from the root.

    Raises:
        ToolError: nothing can be run that way.
    """
    command = given.command
    if not command.strip():
        raise ToolError("invalid_arguments", "The command is empty. Send the text that shall run.")
    if tool == "run_cmd":
        file = system_shell()
        return file, (file.rpartition("/")[2].encode(), b"-c", encoded(command))
    file = command if "/" in command else find_program(command, path.split(":"))
    if not file:
        raise ToolError("not_found", f"The program {command[:80]!r} is not installed. Use another one.")
    return file, tuple(encoded(each) for each in (command, *given.args))


class _Warden:
    """The process that runs the command. `end` must follow.

    Args:
        root_fd: inherited, and stays the caller's.
        orphans: those of this process; None where it keeps none.

    Raises:
        OSError: no process or descriptor is available.
    """

    def __init__(self, root_fd: int, orphans: Orphans | None) -> None:
        self.last_words = ""
        self._orphans = orphans
        self._process = spawn(worker_command(_MAIN), [root_fd])
        assert self._process.stdin
        with ExitStack() as undo:  # all descriptors at once: there may be none left later
            undo.enter_context(self._process)
            undo.callback(self._process.kill)
            self._ended = os.pidfd_open(self._process.pid)
            undo.callback(os.close, self._ended)
            self._control = os.dup(self._process.stdin.fileno())
            undo.pop_all()
        if orphans is not None:
            orphans.adopt(self._process.pid)
        self._answer: Outcome | None = None

    async def obey(self, request: CommandRequest, output: Callable[[str], None]) -> Outcome | None:
        """Let it run the command; return its answer, None where it ends without one."""
        assert self._process.stdout
        report = self._process.stdout.fileno()
        os.set_blocking(report, False)
        control = FdStream(self._control)
        async with control:
            try:
                await control.send_all(frames.framed(msgspec.msgpack.encode(request)))
                await self._listen(report, output)
            except (trio.BrokenResourceError, frames.FrameError) as error:
                _log.warning("the warden of an unconfined command: %s", error)
        return self._answer

    async def _listen(self, report: int, output: Callable[[str], None]) -> None:
        def take(payload: bytearray | memoryview) -> None:
            message = frames.decode_up(payload)
            if isinstance(message, messages.Output):
                output(message.text)
            elif isinstance(message, messages.Done | messages.Failed):
                self._answer = message

        reader = FrameReader(report, take)
        while self._answer is None:
            await wait_readable(report)
            with suppress(BlockingIOError):
                if not reader.read():
                    return

    async def end(self) -> None:
        """Have the command and all of its descendants ended, then the warden; bounded, and not to be cancelled."""
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        with trio.CancelScope(shield=True):
            process.stdin.close()  # that is the order to end it
            process.stdout.close()
            with trio.move_on_after(_ENDS_S):
                await wait_readable(self._ended)
            process.kill()  # one that is stuck; else it has gone
            notify_closing(self._ended)
            os.close(self._ended)
            with process.stderr as errors, suppress(OSError):
                os.set_blocking(errors.fileno(), False)
                self.last_words = one_line(errors.read(_LAST_WORDS).decode("utf-8", "replace"), _LAST_WORDS)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            if self._orphans is not None:
                if process.returncode is not None:
                    self._orphans.release(process.pid)
                self._orphans.sweep()
                await orphans_ended(self._orphans)
