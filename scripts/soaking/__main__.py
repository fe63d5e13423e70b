"""Many sessions while workers fail for real and the daemon is killed; in the end, what must be so is counted.

Rule: nothing here looks at how fast something was: on a loaded machine less happens, and the same must be so. The seed
says what is done: the plan of faults, the scripts of the model, what clients do, when the daemon is killed. Which of
two things that happen at the same time comes first, it cannot say.
"""

import argparse
import shutil
import signal
import sys
import tempfile
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
The seed gives the same faults, scripts, clients and kills; which of two things at the same time comes first, it cannot.
"""


def main() -> int:
    """Return 0 when everything is as it must be, 1 when something is not."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak",
        description="Run many sessions while workers fail and the daemon is killed, and count what must be so.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=120.0, help="how long; the end takes up to a minute more")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance (default: 1)")
    parser.add_argument("--sessions", type=int, default=8, help="clients with a session each at a time (default: 8)")
    parser.add_argument("--progress", action="store_true", help="print the figures every ten seconds")
    parser.add_argument("--keep", action="store_true", help="keep the directory; it is kept where something is wrong")
    options = parser.parse_args()
    if options.seconds <= 0 or not 1 <= options.sessions <= 256 or options.seed < 0:
        parser.error("--seconds is above 0, --sessions from 1 to 256, --seed 0 or more")
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


if __name__ == "__main__":
    sys.exit(main())
