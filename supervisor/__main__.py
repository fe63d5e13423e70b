"""Entry point of `strongroom` and `python -m supervisor`.

Rule: this imports next to nothing before Ctrl-C is seen to. While the command line is imported, Ctrl-C ends the process
as it ends any program; from then on it is an exception, which the command line turns into a sentence. A Python that is
not isolated, as the script `strongroom` starts it, becomes one before anything else of ours is imported. The daemon
that a command will need starts beside it.
"""

import gc
import os
import sys

# Not `signal`, whose import takes milliseconds in which Ctrl-C would still be a traceback; this is built in.
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]

_OBJECTS = 150_000
"""More than imports make, which leave no garbage: to look for it takes a tenth of a command's time."""

_PROMPT = {"-p", "--print", "--output-format"}
"""What a line without a command has, where it is a prompt."""
_NO_COMMAND = {"-h", "--help", "--version"}


def main() -> None:
    """Import the command line and run it."""
    from supervisor.system.isolated import forget_code, isolated

    forget_code()
    if not sys.flags.isolated:
        command = isolated("from supervisor.__main__ import main; main()", "strongroom")
        os.execv(sys.executable, [*command, *sys.argv[1:]])  # noqa: S606 - our own interpreter and code
    ours = getsignal(SIGINT) is default_int_handler  # else a shell has it ignored
    if ours:
        signal(SIGINT, SIG_DFL)
    gc.set_threshold(_OBJECTS)
    early = _begin_daemon(sys.argv[1:])
    from supervisor.cli.main import main as command_line
    from supervisor.system.process_end import run_to_exit

    if ours:
        signal(SIGINT, default_int_handler)
    run_to_exit(lambda: command_line(obj=early))


def _begin_daemon(arguments: list[str]) -> object:
    """Begin the daemon that a command line needs, as far as its first word tells; a wrong line leaves it unused."""
    words = [each for each in arguments if each.strip("-v") and each != "--verbose"]
    word = words[0] if words and not words[0].startswith("-") else "console"
    if any(" " in each for each in words[:1]) or not _PROMPT.isdisjoint(words):
        word = "prompt"
    if word not in ("call", "console", "prompt") or not _NO_COMMAND.isdisjoint(words):
        return None
    from supervisor.clients.connection.spawn import begin_early
    from supervisor.system.left_out import import_msgspec
    from supervisor.system.standard_streams import occupy_standard_descriptors

    occupy_standard_descriptors()
    early = begin_early(private=word != "console")
    import_msgspec()
    return early


if __name__ == "__main__":
    main()
