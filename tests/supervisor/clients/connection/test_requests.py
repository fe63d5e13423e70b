"""What clients make of a daemon that stands elsewhere."""

from pathlib import Path

from tests.daemon_process import DaemonProcess, scripted
from tests.forked import ForkedStrongroom


def test_a_script_is_found_where_the_person_stands(daemon: DaemonProcess, place: Path) -> None:
    scripted(place / "here.jsonl", {"text": "Found."})
    done = ForkedStrongroom(daemon.home, place).run("console", "--model", "scripted:here.jsonl", stdin="go\n")
    assert (done.code, done.out) == (0, "Found.\n")
