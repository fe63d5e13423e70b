"""Work that is interrupted by a signal, which may come once more at the worst of moments."""

import subprocess
import sys
from typing import Final

from tests.supervisor.command import CODE, HANG_GUARD

AGAIN: Final = """
import os, signal, sys
from workers.libraries import alarm

interrupted = False

def trace(frame, event, argument):
    global interrupted
    if frame.f_code.co_name == "within":
        if interrupted and event == "line":
            sys.settrace(None)
            os.kill(os.getpid(), signal.SIGALRM)
        interrupted = interrupted or event == "exception"
    return trace

def work():
    os.kill(os.getpid(), signal.SIGALRM)

sys.settrace(trace)
try:
    alarm.within(60, work)
except alarm.TooSlow:
    print(signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM) == signal.SIG_DFL)
"""


def test_a_second_signal_while_the_first_is_dealt_with_leaves_no_clock_running() -> None:
    command = [sys.executable, "-c", AGAIN]
    done = subprocess.run(command, capture_output=True, cwd=CODE, timeout=HANG_GUARD, check=False)
    assert done.stdout == b"(0.0, 0.0) True\n", done.stderr.decode()
