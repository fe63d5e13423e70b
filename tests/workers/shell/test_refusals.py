"""What a command was refused, told by what it printed."""

from typing import Final

import pytest

from tests.each_row import each_row
from workers.changes.effects import NETWORK
from workers.shell.refusals import lacked, notes, unseen

REFUSED: Final = [
    ("touch: cannot touch '/etc/x': Read-only file system", "a write outside of the root"),
    ("Failed to connect to bus: No such file or directory", "the bus of the system's services"),
    ("Failed to connect to system scope bus via local transport: Host is down", "the bus of the system's services"),
    ("Failed to get D-Bus connection: Operation not permitted", "the bus of the system's services"),
    ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "a container engine"),
    ("bash: line 1: kill: (16036) - No such process", "a signal to a process"),
    ("pkill: killing pid 42 failed: Operation not permitted", "a signal to a process"),
    ("renice: failed to set priority for 1 (process ID): Operation not permitted", "another process's settings"),
    ("strace: attach: ptrace(PTRACE_ATTACH, 1): Operation not permitted", "the inside of another process"),
    ("cat: /proc/1/environ: Permission denied", "the inside of another process"),
    ("mount: /mnt: permission denied.", "a mount"),
    ("umount: /mnt: must be superuser to unmount.", "a mount"),
    ("dmesg: read kernel buffer failed: Operation not permitted", "the kernel's log"),
    (
        'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
        "the rights of another user",
    ),
    ("sudo: no valid sudoers sources found, quitting", "the rights of another user"),
    ("passwd: cannot lock /etc/shadow; try again later.", "a change of users"),
    ("useradd: Cannot open audit interface - aborting.", "a change of users"),
    ("curl: (6) Could not resolve host: example.com", "the network"),
    ("curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Couldn't connect to server", "the network"),
    ("RTNETLINK answers: Operation not permitted", "the network"),
    ("date: cannot set date: Operation not permitted", "a setting of the machine"),
    ('sysctl: permission denied on key "kernel.panic"', "a setting of the machine"),
    ("cat: /etc/shadow: Permission denied", "what commands may not do here"),
]


@each_row(("said", "what"), REFUSED)
def test_a_refusal_is_known_by_its_words(said: str, what: str) -> None:
    assert lacked(1, "", f"one\n{said}\nmore\n", network=False) == (what,)
    assert lacked(0, said, "", network=False) == ()


OTHERS: Final = [
    ("", "ls: cannot access 'x': No such file or directory", 2),
    ("2.4G\t/\n", "du: cannot read directory '/root': Permission denied", 1),
    ("", "find: '/root': Permission denied", 0),
    ("", "E   AssertionError: assert 1 == 2", 1),
]


@pytest.mark.parametrize(("stdout", "stderr", "code"), OTHERS)
def test_what_is_none_or_hardly_matters_is_not_told(stdout: str, stderr: str, code: int) -> None:
    assert lacked(code, stdout, stderr, network=False) == ()


def test_a_network_that_was_tried_is_told_whatever_was_printed() -> None:
    assert lacked(0, "", "", network=True) == ("the network",)


OTHERWISE: Final = [
    (b"sudo lsof -i :80", "ss -tunp"),
    (b"fuser 80/tcp", "ss -tunp"),
    (b"ls; df -h /home", "/proc/1/mounts"),
    (b"mount | grep nfs", "/proc/1/mounts"),
    (b"/usr/sbin/findmnt", "/proc/1/mounts"),
    (b"systemctl status nginx", "journalctl -u"),
    (b"cd /var; du -xsh *", "/var/lib/docker"),
    (b"arp -n", "ip neigh"),
    (b"sudo losetup -a", "/proc/partitions"),
    (b"if true; then logger x; fi", "reaches nobody"),
    (b"true && pkill nginx", "pgrep"),
]


@each_row(("command", "what"), OTHERWISE)
def test_of_what_is_otherwise_here_it_is_said_how(command: bytes, what: str) -> None:
    (said,) = notes(command, (), "", network=False)
    assert what in said


@each_row("command", [b"ss -ltnp", b"ls /mount", b"echo df", b"grep mount /etc/fstab", b"apt show lsof", b"./write x"])
def test_of_other_programs_nothing_is_said(command: bytes) -> None:
    assert notes(command, (), "", network=False) == []


def test_what_was_refused_is_noted_once() -> None:
    assert notes(b"x", ("a mount", NETWORK), "", network=False) == ["refused: a mount, the network"]
    assert notes(b"x", ("a mount", NETWORK), "", network=True) == ["refused: a mount"]
    assert notes(b"x", (NETWORK,), "", network=True) == []


UNSEEN: Final = [
    (b"lsof +L1", 0, ("what other processes have open",)),
    (b"echo; fuser 80/tcp; blkid", 2, ("what other processes have open", "a device")),
    (b"logger x", 0, ("a message to others",)),
    (b"pkill nginx", 1, ("a signal to a process",)),
    (b"pkill nginx", 0, ()),
    (b"df -h; du -s /; systemctl", 1, ()),
    (b"pgrep nginx", 1, ()),
]


@each_row(("command", "code", "what"), UNSEEN)
def test_what_is_refused_without_a_word_is_known_by_the_program(
    command: bytes, code: int, what: tuple[str, ...]
) -> None:
    assert unseen(command, code) == what


@pytest.mark.parametrize("printed", ["nobody  9036 0.0 python3", "-rw-r--r-- 1 root nogroup 5 a", "uid:65534 ino:1"])
def test_owners_that_cannot_be_told_are_not_taken_for_nobody(printed: str) -> None:
    (said,) = notes(b"ps aux", (), f"a\n{printed}\n", network=False)
    assert "another user" in said
    assert notes(b"ps aux", (), "busybody 165534\n", network=False) == []


def test_a_text_of_separators_alone_takes_no_time_worth_speaking_of() -> None:
    for each in (b"\n", b"; ", b"sudo ", b"\n \n"):
        assert notes(each * 20_000, (), "", network=False) == []
