"""Entry point of `strongroom` and `python -m supervisor`.

Rule: this imports next to nothing before Ctrl-C is seen to. While the command line is imported, Ctrl-C ends the process
as it ends any program; from then on it is an exception, which the command line turns into a sentence.
"""

# Not `signal`, whose import takes milliseconds in which Ctrl-C would still be a traceback; this is built in.
from _signal import SIG_DFL, SIGINT, default_int_handler, getsignal, signal  # type: ignore[import-not-found]


def main() -> None:
    """Import the command line and run it."""
    ours = getsignal(SIGINT) is default_int_handler  # else a shell has it ignored
    if ours:
        signal(SIGINT, SIG_DFL)
    from supervisor.cli.main import main as command_line

    if ours:
        signal(SIGINT, default_int_handler)
    command_line()


if __name__ == "__main__":
    main()
