"""The warden of an unconfined command, told to end it at the worst of moments."""

import json
import subprocess
import sys
from typing import Final

from tests.supervisor.command import CODE, HANG_GUARD

TWICE: Final = """
import json, os, select, signal, sys
import msgspec
from supervisor.tools.unconfined import warden
from workers.wire import frames, messages

ROOT = os.open("/", os.O_PATH)
NEVER = 3

def serve(moment):
    lines = 0
    told = False

    def trace(frame, event, argument):
        nonlocal lines, told
        if not any(part in frame.f_code.co_filename for part in ("supervisor/tools", "supervisor/system")):
            return None
        told = told or (event == "exception" and argument[0] is warden._EndRequested)
        if told and event == "line":
            lines += 1
            if lines == moment:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace

    sys.settrace(trace)
    code = warden.run(os.getppid())
    sys.settrace(None)
    return code if lines >= moment else NEVER

def begin(moment):
    order, control = os.pipe()
    report, to_report = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(order, 0)
        os.dup2(to_report, 1)
        os.dup2(ROOT, 3)
        os.closerange(4, 256)  # those of the others, too
        os._exit(serve(moment))
    os.close(order)
    os.close(to_report)
    line = (b"sh", b"-c", b"sleep 99 & echo $!; wait")
    frame = msgspec.msgpack.encode(warden.CommandRequest("/bin/sh", line, ((b"PATH", b"/usr/bin:/bin"),), 3, 60))
    os.write(control, frames.LENGTH.pack(len(frame)) + frame)
    return pid, control, report

def survives(pid, control, report):
    (child,) = map(int, frames.decode_up(os.read(report, 4096)[frames.LENGTH.size :]).text.split())
    watched = os.pidfd_open(child)
    os.close(control)  # the first order to end it
    _, status = os.waitpid(pid, 0)
    ended = select.poll()
    ended.register(watched, select.POLLIN)
    alive = not ended.poll(0)  # it was reaped before its warden ended, or never
    if alive:
        signal.pidfd_send_signal(watched, signal.SIGKILL)
    os.close(watched)
    os.close(report)
    return alive, os.waitstatus_to_exitcode(status)

moments = []
while not moments or any(code != NEVER for _, code in moments[-8:]):
    several = [begin(len(moments) + each) for each in range(1, 9)]
    moments += [survives(*each) for each in several]
print(json.dumps(moments))
"""
"""Prints, for each line that a warden runs after the end of its control pipe: with SIGTERM there, does the command
outlive it, and its exit code. The last ones are past its last line."""


def test_a_warden_told_twice_to_end_leaves_nothing_whenever_the_second_time_is() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TWICE],
        env={"PYTHONPATH": str(CODE)},
        capture_output=True,
        timeout=HANG_GUARD,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    moments = json.loads(done.stdout)
    assert [moment for moment in moments if moment not in ([False, 0], [False, 3])] == []
    assert moments[:20] == [[False, 0]] * 20
