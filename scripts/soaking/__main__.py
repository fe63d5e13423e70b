"""Many sessions while workers fail for real and the daemon is killed; in the end, what must be so is counted.

Rule: nothing here looks at how fast something was: on a loaded machine less happens, and the same must be so. The seed
says what is done: the plan of faults, the scripts of the model, what clients do, at which of its calls a life of the
daemon is killed. How much of that is done within the seconds, and which of two things at the same time comes first, is
the machine's.
"""

import argparse
import math
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.soaking.run import Soak, Wanted

_EXAMPLES: Final = """\
examples:
  scripts/soak                                      two minutes, as CI does
  scripts/soak --seconds 600 --seed 7 --progress    ten minutes, and how it goes
  scripts/soak --seconds 3600 --sessions 16 --seed 3
  scripts/soak --seed 7 --keep                      what happened stays to be looked at

Ctrl-C ends it early, with the figures so far. Exit code 1: something was lost, done twice or left behind.

What the seed gives, with the same --seconds and --sessions:
  the same work      the calls of each client's n-th session, what the client does in each turn, and its answers
  the same faults    the plan of each life of the daemon: which calls and starts fail how, by their number in that life
  the same kills     as many of them, the n-th of the storm at the same call of its life, or where the machine is too
                     slow for that at the same second
  the same wounds    of the n-th: its signal, how many calls after the one before, and which of the workers that live
What it cannot give: the threads of a real machine interleave as they like, and how much is done in the time is a matter
of speed. So calls, restarts, and how many of the faults and wounds come about, differ from run to run.
"""
_SECONDS: Final = 1e9
_SESSIONS: Final = 256


def main() -> int:
    """Return 0 when everything is as it must be, 1 when something is not."""
    options = read(sys.argv[1:])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    base = Path(tempfile.mkdtemp(prefix="strongroom-soak-"))
    good = False
    try:
        wanted = Wanted(options.seconds, options.seed, options.sessions, options.progress)
        good = Soak(wanted, base).run()
    finally:
        if good and not options.keep:
            shutil.rmtree(base)
        else:
            print(f"everything is in {base}", file=sys.stderr)
    return 0 if good else 1


def read(words: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for.

    Raises:
        SystemExit: it asks for what there is not; stderr has been told.
    """
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Run many sessions while workers fail and the daemon is killed, and count what must be so.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=_seconds, default=120.0, help="how long; the end takes up to a minute more")
    parser.add_argument("--seed", type=_seed, default=1, help="of everything that is left to chance (default: 1)")
    parser.add_argument("--sessions", type=_sessions, default=8, help="clients with a session each (default: 8)")
    parser.add_argument("--progress", action="store_true", help="print the figures every ten seconds")
    parser.add_argument("--keep", action="store_true", help="keep the directory; it is kept where something is wrong")
    return parser.parse_args(words)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= _SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to run for; give seconds, above 0, for example 120")
    return value


def _seed(text: str) -> int:
    value = _whole(text)
    if value is None or value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a whole number, 0 or more, for example 7")
    return value


def _sessions(text: str) -> int:
    value = _whole(text)
    if value is None or not 1 <= value <= _SESSIONS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of clients; give one from 1 to {_SESSIONS}")
    return value


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


if __name__ == "__main__":
    sys.exit(main())
