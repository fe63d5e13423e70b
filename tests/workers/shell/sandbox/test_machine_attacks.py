"""Attacks on the machine by command lines that see it: nothing outside changes, hears of them or gives a secret away.

Each row is a line for the shell. What it finds: $OUT, a directory of this user with `secret.txt`, which is hidden, and
`open.txt`; $VICTIM, a process of this user with a variable; $PORT, on which TCP and UDP listen, as do the socket file
$SOCK and the abstract $NAME; $TTY, somebody's terminal.
"""

import os
import select
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.raw_worker import RawWorker
from tests.workers.commit.snapshot import snapshot
from tests.workers.shell.conftest import open_shell, python

_PYTHON: Final = "import ctypes, fcntl, glob, os, socket, struct, sys, time\nlibc = ctypes.CDLL(None)\n"

LINES: Final = (
    # A second command behind the first one.
    *(
        "ls; rm -rf $OUT",
        "ls && echo x > $OUT/open.txt",
        "ls $(touch $OUT/new)",
        "ls `mv $OUT/open.txt $OUT/x`",
        "ls\nrm $OUT/*",
    ),
    *(
        "find $OUT -delete",
        "find $OUT -exec chmod 777 {} +",
        "tar -cf $OUT/x.tar /etc/hosts",
        "cp /bin/sh $OUT/sh; chmod 4755 $OUT/sh",
    ),
    *("sed -i s/open/shut/ $OUT/open.txt", "dd if=/dev/zero of=$OUT/open.txt count=1", "truncate -s 0 $OUT/open.txt"),
    *(
        "ln -s $OUT here; rm here/open.txt",
        "ln $OUT/open.txt here; echo x >> here",
        "touch -d 2001-01-01 $OUT/open.txt",
    ),
    *(
        "setfattr -n user.a -v b $OUT/open.txt",
        "chattr +i $OUT/open.txt",
        "mkfifo $OUT/fifo",
        "install -m 777 /bin/true $OUT/true",
    ),
    *("(sleep 0.2; rm $OUT/open.txt) & disown; exit 0", "nohup sh -c 'touch $OUT/late' &", "setsid -f touch $OUT/late"),
    *("echo '* * * * * touch $OUT/cron' | crontab -", "echo 'touch $OUT/at' | at now", "systemd-run touch $OUT/unit"),
    # The hidden file, in every spelling.
    *(
        "cat $OUT/secret.txt",
        "cat $OUT/./secret.txt $OUT//secret.txt $OUT/../*/secret.txt",
        "cat $OUT/s?cret.*",
        "cd $OUT; cat secret.txt",
    ),
    *("cat /proc/self/root$OUT/secret.txt", "cat /proc/1/root$OUT/secret.txt", "cat /proc/$VICTIM/root$OUT/secret.txt"),
    *(
        "cat /proc/$VICTIM/cwd/secret.txt",
        "cat /proc/$VICTIM/fd/*",
        "ln -s $OUT/secret.txt s; cat s",
        "tar -cO $OUT | cat",
    ),
    *(
        "cp $OUT/secret.txt .; cat secret.txt",
        "dd if=$OUT/secret.txt",
        "grep -r CANARY $OUT",
        "cat < $OUT/secret.txt",
        "xxd $OUT/secret.txt",
    ),
    *(
        "cat /dev/.*/secret.txt /dev/.*/*/secret.txt",
        "find ${OUT%/*} /dev -name secret.txt -exec cat {} + 2>&1",
        "cat /proc/self/cwd/../secret.txt",
    ),
    *(
        "mv $OUT/secret.txt $OUT/x; cat $OUT/x",
        "while :; do ln -sfn $OUT l; cat l/secret.txt; ln -sfn / l; done & sleep 0.3",
    ),
    *(
        "git config -f $OUT/secret.txt -l",
        "git diff --no-index /dev/null $OUT/secret.txt",
        "bash $OUT/secret.txt",
        "source $OUT/secret.txt",
    ),
    # Other processes.
    *(
        "kill -9 $VICTIM",
        "kill -9 -1",
        "pkill -9 -f cat",
        "killall -9 cat",
        "kill -STOP $VICTIM",
        "renice 19 -p $VICTIM",
    ),
    *(
        "cat /proc/$VICTIM/environ",
        "cat /proc/*/environ",
        "strings /proc/$VICTIM/mem",
        "cat /proc/$VICTIM/task/*/environ",
    ),
    *(
        "gdb -p $VICTIM -batch -ex 'call (int)kill(getpid(), 9)'",
        "strace -p $VICTIM",
        "prlimit --pid $VICTIM --cpu=1",
        "ionice -p $VICTIM -c3",
    ),
    *(
        "taskset -p 1 $VICTIM",
        "chrt -f -p 1 $VICTIM",
        "echo 1000 > /proc/$VICTIM/oom_score_adj",
        "echo x > /proc/$VICTIM/comm",
    ),
    *(
        "nsenter -t $VICTIM -a",
        "nsenter -t 1 -m -p",
        "unshare -Urm sh -c 'mount --bind $OUT /mnt'",
        "chroot / true",
        "fuser -k $PORT/tcp",
    ),
    # The network, and sockets of others.
    *(
        "curl -s http://127.0.0.1:$PORT/",
        "curl -s --unix-socket $SOCK http://x/",
        "echo x > /dev/tcp/127.0.0.1/$PORT",
        "nc -z 127.0.0.1 $PORT",
    ),
    *(
        "echo x > /dev/udp/127.0.0.1/$PORT",
        "ssh -p $PORT 127.0.0.1",
        "git ls-remote git://127.0.0.1:$PORT/x",
        "timeout 0.3 wget -q -t1 http://[::1]:$PORT",
    ),
    *(
        "socat - UNIX-CONNECT:$SOCK",
        "socat - ABSTRACT-CONNECT:$NAME",
        "docker -H unix://$SOCK ps",
        "getent hosts example.com",
        "ping -c1 127.0.0.1",
    ),
    *(
        "DBUS_SYSTEM_BUS_ADDRESS=unix:path=$SOCK busctl list",
        "SSH_AUTH_SOCK=$SOCK ssh-add -l",
        "gpg-connect-agent -S $SOCK /bye",
    ),
    *(
        "logger -u $SOCK x",
        "logger x",
        "systemd-cat echo x",
        "wall x",
        "echo x > $TTY",
        "echo x | write root",
        "mesg y",
    ),
    *(
        "ss -K dst 127.0.0.1",
        "ip link set lo down",
        "ip addr add 10.9.8.7/32 dev lo",
        "ip route add 10.9.8.0/24 dev lo",
        "ip netns add x",
    ),
    # The machine.
    *(
        "reboot -f",
        "shutdown -h now",
        "systemctl poweroff",
        "echo b > /proc/sysrq-trigger",
        "date -s 2001-01-01",
        "hwclock -w",
        "hostname x",
    ),
    *(
        "sysctl -w kernel.panic=1",
        "echo 1 > /proc/sys/kernel/panic",
        "mount -t tmpfs x /mnt",
        "umount -l $OUT",
        "mount -o remount,rw /",
    ),
    *(
        "losetup -f $OUT/open.txt",
        "modprobe loop",
        "insmod x.ko",
        "swapoff -a",
        "mkdir /sys/fs/cgroup/x",
        "echo $$ > /sys/fs/cgroup/cgroup.procs",
    ),
    *(
        "cat /dev/mem /dev/kmem /dev/port",
        "mknod b b 7 0; cat b",
        "cat /dev/vda /dev/sda /dev/nvme0n1",
        "cat /proc/kcore | head -c 1",
        "dmesg -C",
        "cat /sys/class/zram-control/*",
        "ls -d /proc/*/root/etc /proc/*/cwd; cat /proc/*/map_files/* /proc/*/fd/*",
    ),
    *(
        "keyctl show",
        "keyctl add user a b @u",
        "bpftool prog",
        "perf stat true",
        "iptables -F",
        "nft flush ruleset",
        "auditctl -D",
        "setenforce 0",
    ),
    *(
        "useradd x",
        "passwd -d root",
        "chpasswd <<< root:x",
        "visudo -c",
        "sudo -n id",
        "pkexec id",
        "newgrp root",
        "setpriv --reuid 0 id",
    ),
    *(
        "echo x >> /etc/profile",
        "touch /usr/bin/x",
        "rm -f /var/log/*.log",
        "ldconfig",
        "update-alternatives --all",
        "dpkg -r bash",
        "rm -rf /opt /etc",
    ),
)

PYTHON: Final = (
    "[os.kill(victim, n) for n in (9, 15, 19)]",
    "fcntl.ioctl(0, 0x5412, b'x')",
    "fcntl.ioctl(os.open(tty, os.O_RDWR | os.O_NOCTTY), 0x5412, b'x')",
    "libc.ptrace(16, victim, 0, 0)",
    "libc.syscall(425, 8, ctypes.create_string_buffer(120))",
    "socket.socket(socket.AF_UNIX).connect('\\0' + name)",
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', sock)",
    "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'x', sock)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 17).sendto(b'x', ('127.0.0.1', port))",
    "libc.syscall(44, socket.socketpair()[0].fileno(), b'x', 1, 0x20000000, struct.pack('=HH4s8x', 2, 9, bytes(4)), 8)",
    "[sys.stdout.write(open(each).read()) for each in glob.glob(f'/proc/{victim}/fd/*')]",
    "time.clock_settime(0, 1)",
    "os.sched_setaffinity(victim, {0})",
    "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
    "os.setpriority(os.PRIO_PGRP, os.getpgid(victim), 19)",
    "libc.syscall(438, libc.syscall(434, victim, 0), 0, 0)",
    "print(open(out + '/secret.txt').read())",
    "print(os.read(os.open('secret.txt', 0, dir_fd=os.open(out, os.O_PATH)), 99))",
    "d = os.open('.', 0); os.chdir('/'); print(open(f'/proc/self/fd/{d}/../outside/secret.txt').read())",
    "libc.syscall(165, b'none', b'/mnt', b'tmpfs', 0, 0)",
    "libc.syscall(166, out.encode() + b'/secret.txt', 2); print(open(out + '/secret.txt').read())",
    "libc.syscall(428, -100, out.encode(), 1); libc.syscall(161, b'/')",
    "fcntl.flock(os.open(out + '/open.txt', 0), fcntl.LOCK_EX); fcntl.fcntl(os.open(out + '/open.txt', 0), 1024, 1)",
)


class Outside:
    """What stands outside, and must stay so."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self.out = place / "outside"
        self.out.mkdir()
        (self.out / "secret.txt").write_text("echo CANARY-FILE\n")
        (self.out / "open.txt").write_text("open\n")
        self._listening = [stack.enter_context(each) for each in self._listeners(str(place / "sock"), place.name)]
        self.master, theirs = os.openpty()
        stack.callback(os.close, self.master)
        port = self._listening[0].getsockname()[1]
        self.victim = stack.enter_context(
            subprocess.Popen(
                ["cat"], stdin=subprocess.PIPE, stdout=theirs, cwd=self.out, env={"SECRET": "CANARY-ENVIRONMENT"}
            )
        )
        stack.callback(self.victim.kill)
        self.names: Mapping[str, str | int] = {
            "OUT": str(self.out),
            "VICTIM": self.victim.pid,
            "PORT": port,
            "SOCK": str(place / "sock"),
            "NAME": place.name,
            "TTY": os.ttyname(theirs),
        }
        os.close(theirs)
        self._was = self._look()

    @staticmethod
    def _listeners(path: str, name: str) -> Iterator[socket.socket]:
        yield (tcp := socket.create_server(("127.0.0.1", 0)))
        (udp := socket.socket(type=socket.SOCK_DGRAM)).bind(tcp.getsockname())
        yield udp
        for address in (path, f"\0{name}"):
            (unix := socket.socket(socket.AF_UNIX)).bind(address)
            unix.listen()
            yield unix

    def _look(self) -> tuple[object, ...]:
        who = self.victim.pid
        status = Path(f"/proc/{who}/stat").read_text().rpartition(")")[2].split()
        return (
            *(
                snapshot(self.out),
                status[0] in "RSD",
                status[16],
                os.sched_getaffinity(who),
                Path(f"/proc/{who}/limits").read_text(),
            ),
            *(Path(f"/proc/{who}/oom_score_adj").read_text(), os.uname().nodename, sorted(socket.if_nameindex())),
            *(Path("/proc/sys/kernel/panic").read_text(), os.path.lexists("/sys/fs/cgroup/x"), os.listdir("/mnt")),
            sorted(os.listdir("/sys/block")),
        )

    def check(self, printed: str) -> None:
        assert self._look() == self._was
        assert select.select([*(each.fileno() for each in self._listening), self.master], [], [], 0)[0] == []
        assert "CANARY" not in printed


@pytest.fixture(scope="module")
def outside(place: Path) -> Iterator[Outside]:
    with ExitStack() as stack:
        yield Outside(place, stack)


@pytest.fixture(scope="module")
def worker(place: Path, root: Path, outside: Outside) -> Iterator[RawWorker]:
    with open_shell(root, machine=True, hidden=(f"{outside.out}/secret.txt",), timeout_s=5.0) as opened:
        assert "private_root:machine" in opened.report.enforced
        yield opened


def attempt(worker: RawWorker, line: str) -> str:
    """Rehearse a line, and return all that is said of it; nothing of it is kept."""
    answer = worker.propose("run_cmd", {"command": line})
    if hasattr(answer, "effects"):
        answer = worker.decide(answer, commit=False)
    return repr(answer)


@pytest.mark.parametrize("line", LINES)
def test_a_line_does_nothing_to_the_machine(line: str, worker: RawWorker, outside: Outside) -> None:
    given = " ".join(f"export {name}='{value}';" for name, value in outside.names.items())
    outside.check(attempt(worker, f"{given}\n{line}"))


@pytest.mark.parametrize("code", PYTHON)
def test_code_does_nothing_to_the_machine(code: str, worker: RawWorker, outside: Outside) -> None:
    given = "".join(f"{name.lower()} = {value!r}\n" for name, value in outside.names.items())
    said = attempt(worker, f"{python()} -c '{(_PYTHON + given + code).replace(chr(39), chr(34))}'")
    outside.check(said)
    assert "SyntaxError" not in said


def test_each_of_these_is_done_outside_of_the_sandbox(outside: Outside) -> None:
    """So that no row passes because its words are wrong: some of each kind, by this process itself."""
    environment = {name: str(value) for name, value in outside.names.items()} | {"PATH": os.environ["PATH"]}
    for line in ("cat $OUT/secret.txt", "tr '\\0' ' ' < /proc/$VICTIM/environ", "grep -r CANARY $OUT"):
        done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=True)
        with pytest.raises(AssertionError):
            outside.check(done.stdout)
