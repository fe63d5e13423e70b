"""Commands that see the machine: what of it is open to look at, and that no more is, by each lock alone."""

import os
import select
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from supervisor.pool.template_process import worker_command
from supervisor.system.descendants import children
from tests.door_table import DOORS, MACHINE, NETLINK, ON_THE_MACHINE
from tests.doors import PRELUDE, Door, Held, check, is_shut, of, open_target
from tests.each_row import each_row
from tests.hostile_worker import hostile_command
from tests.raw_worker import RawWorker
from tests.workers.shell.conftest import effects_of, open_shell, python, shell, write
from tests.workers.shell.sandbox.test_locks import attack
from workers.shell.sandbox.machine_root import OF_RUN
from workers.shell.sandbox.private_root import DEVICES
from workers.shell.sandbox.secret_places import HIDDEN, elsewhere, not_for_everybody

HIDES = ("/etc/hostname",)
"""What an operator hides here."""
ROWS = (
    *(each._replace(held=Held(shell=MACHINE.get(each.name, each.held.shell))) for each in of("shell", DOORS)),
    *ON_THE_MACHINE,
)


@pytest.fixture(scope="module")
def worker(root: Path) -> Iterator[RawWorker]:
    with open_shell(root, machine=True, hidden=HIDES) as opened:
        assert "private_root:machine" in opened.report.enforced
        yield opened


Outcomes = Callable[..., Mapping[str, str]]


@pytest.fixture(scope="module")
def outcomes(place: Path, root: Path) -> Iterator[Outcomes]:
    """Return how each door was found by a command that lacks the given locks."""
    found: dict[tuple[str, ...], Mapping[str, str]] = {}
    os.mkfifo(place / "fifo")
    (place / "own").touch()
    with open_target(place, root) as target, tempfile.NamedTemporaryFile(dir="/tmp") as in_tmp:

        def tried(*removed: str) -> Mapping[str, str]:
            if removed not in found:
                more = {"fifo": str(place / "fifo"), "own": str(place / "own"), "path_in_tmp": in_tmp.name}
                given = f"import struct\nlistener = {os.getpid()}\n" + "".join(
                    f"{k} = {v!r}\n" for k, v in {**target.ready(), **more}.items()
                )
                command = hostile_command(*removed, category="shell")
                with open_shell(root, machine=True, hidden=HIDES, command=command) as hostile:
                    lines = attack(hostile, [each.code for each in ROWS], given + PRELUDE + NETLINK)
                found[removed] = {row.name: line for row, line in zip(ROWS, lines, strict=True)}
            return found[removed]

        yield tried


@pytest.mark.parametrize("door", ROWS, ids=lambda door: door.name)
def test_a_door_is_held_by_exactly_its_locks(door: Door, outcomes: Outcomes) -> None:
    if door.locks("shell"):
        check(door, "shell", lambda removed: outcomes(*removed)[door.name])
    else:
        assert not is_shut(outcomes()[door.name], "shell"), outcomes()[door.name]


LISTENS: Final[list[socket.socket]] = []


def first_process() -> str:
    return Path("/proc/1/cmdline").read_text().split("\0")[0].split()[0]


def line_of(file: str, start: str) -> str:
    return next(line for line in Path(file).read_text().splitlines(keepends=True) if line.startswith(start))


def line_with_port(said: str) -> str:
    return next(line for line in said.splitlines() if f":{LISTENS[0].getsockname()[1]} " in line)


@pytest.fixture(autouse=True, scope="module")
def listening() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        LISTENS.append(server)
        yield


def mounted() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


OWN: Final = {"/tmp", "/var/tmp", "/dev/shm", "/home/agent", *(f"/dev/{name}" for name in DEVICES)}
LOOKS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "processes": ("ps -e -o pid= | wc -l", lambda said: int(said) > 2),
    "the first process": ("ps -o args= -p 1", lambda said: said.split()[0] == first_process()),
    "disks": ("df -P / | tail -1", lambda said: said.split()[-1] == "/"),
    "file systems": ("df --output=target", lambda said: {*said.split()[2:]} <= {*mounted(), *OWN}),
    "memory": ("grep MemTotal /proc/meminfo", lambda said: said == line_of("/proc/meminfo", "MemTotal")),
    "its name": ("uname -n", lambda said: said.strip() == os.uname().nodename),
    "users": ("grep -c . /etc/passwd", lambda said: int(said) == len(Path("/etc/passwd").read_text().splitlines())),
    "logs": ("ls /var/log | wc -l", lambda said: int(said) == len([e for e in os.listdir("/var/log") if e[0] != "."])),
    "interfaces": ("cat /proc/net/dev", lambda said: all(name in said for _, name in socket.if_nameindex())),
    "who listens": ("ss -Hltnp", lambda said: f"pid={os.getpid()},fd={LISTENS[0].fileno()})" in line_with_port(said)),
    "who listens, by another program": ("netstat -ltnp", lambda said: f" {os.getpid()}/" in line_with_port(said)),
    "listening ports": ("cat /proc/net/tcp", lambda said: f":{LISTENS[0].getsockname()[1]:04X}" in said),
}
"""Commands, and whether they say what is so."""


@pytest.mark.parametrize("what", LOOKS)
def test_a_look_finds_the_machine_as_it_is(what: str, worker: RawWorker) -> None:
    command, holds = LOOKS[what]
    if not shutil.which(command.split()[0]):
        pytest.skip("not installed")
    result = shell(worker, command)
    assert holds(result["stdout"]), result


def test_what_is_refused_without_a_word_is_said_and_may_be_offered(worker: RawWorker) -> None:
    answer = worker.done("run_cmd", {"command": "logger x"})
    assert answer.lacked == ("a message to others",)
    assert "reaches nobody" in repr(answer)


def test_ps_finds_itself_by_the_number_of_its_worker_and_nobody_else_does(worker: RawWorker) -> None:
    said = shell(worker, "cp /bin/sh /tmp/ps; /tmp/ps -c 'echo $$'; sh -c 'echo $$'; echo $$")["stdout"].split()
    numbers = Path(f"/proc/{said[0]}/status").read_text().partition("NSpid:")[2].splitlines()[0].split()
    assert numbers[-1] == "1"
    assert said[0] not in said[1:]


def test_whoever_looks_who_holds_sockets_ends_with_the_worker_and_has_no_more_powers(root: Path) -> None:
    with open_shell(root, machine=True) as opened:
        lookers = [each for each in children(opened.process.pid) if "Seccomp:\t2" in status(each)]
        (powers,) = [line_of(f"/proc/{each}/status", "CapPrm").split()[1] for each in lookers]
        ended = os.pidfd_open(lookers[0])
    assert int(powers, 16) == (0 if os.geteuid() else 1 << 2 | 1 << 19)
    assert select.select([ended], [], [], 30)[0]
    os.close(ended)


def status(process: int) -> str:
    return Path(f"/proc/{process}/status").read_text()


def test_its_own_places_and_the_root_are_writable_and_nothing_else(worker: RawWorker, root: Path) -> None:
    lines = shell(worker, "cat /proc/self/mounts")["stdout"].splitlines()
    seen = {line.split()[1]: set(line.split()[3].split(",")) for line in lines}  # the last one at a place counts
    writable = {path for path, flags in seen.items() if "rw" in flags}
    assert writable - {"/tmp", "/var/tmp", "/dev/shm", "/dev/.held"} == {"/home/agent", str(root)}
    assert all("nosuid" in flags for flags in seen.values())
    devices = {path for path, flags in seen.items() if "nodev" not in flags}
    assert devices <= {"/dev", *(f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero"))}


def test_changes_in_the_root_are_rehearsed(worker: RawWorker, root: Path) -> None:
    effects = effects_of(worker, "echo beta >> a.txt; touch /tmp/mine ~/mine")
    assert [change.path for change in effects.changes] == ["a.txt"]
    assert (root / "a.txt").read_text() == "alpha\n"
    shell(worker, "echo beta >> a.txt")
    assert (root / "a.txt").read_text() == "alpha\nbeta\n"


def test_of_run_nothing_is_shown_but_what_is_listed(worker: RawWorker) -> None:
    assert {*shell(worker, "ls -A /run")["stdout"].split()} <= {name.partition("/")[0] for name in OF_RUN}


def _replaced(secret: Path, text: str, mode: int = 0o644) -> None:
    write(secret.with_name("new"), text, mode)
    secret.with_name("new").rename(secret)


COMES: Mapping[str, tuple[str, Callable[[Path, str], None]]] = {
    "replaced": ("a.key", _replaced),
    "made": ("{}.key", write),
    "made in a directory": ("inner-{}/a.key", write),
    "made in a new directory": ("inner-new-{}/a.key", write),
    "mounted elsewhere": ("again/a.key", _replaced),
    "private in /etc, replaced": ("etc/private", lambda file, text: _replaced(file, text, 0o600)),
    "private in /etc, made": ("etc/deep/{}", lambda file, text: write(file, text, 0o600)),
    "private in /etc, made in a new directory": ("etc/deep-{}/a", lambda file, text: write(file, text, 0o600)),
    "private in /etc, closed": ("etc/open-{}", lambda file, _text: file.chmod(0o600)),
}
"""What comes while a worker runs, and how; `{}` is another name each time."""
COME: Final = ("swordfish-1", "swordfish-2")


@pytest.fixture(scope="module", params=("told", "untold"))
def looked_for(request: pytest.FixtureRequest, place: Path, root: Path) -> Iterator[tuple[RawWorker, Path]]:
    """A worker that takes a place for /etc, and one for a second mount, and that the kernel may tell of no change."""
    top = place / request.param
    write(top / "a.key", "none")
    write(top / "again" / "a.key", "none")
    for text in COME:
        (top / f"inner-{text}").mkdir()
        write(top / f"etc/open-{text}", text)
    (top / "etc/deep").mkdir()
    view = f"import workers.shell.sandbox.secret_places as view; view._PRIVATE = {f'{top}/etc'!r}; "
    view += f"view.elsewhere = lambda paths, *_, **__: [{f'{top}/again/a.key'!r}] * ({f'{top}/a.key'!r} in paths); "
    view += "view._NUMBERS = {}; " if request.param == "untold" else ""
    command = worker_command(f"{view}from workers.__main__ import main; main()")
    hidden = (f"{top}/*.key", f"{top}/inner-*/*.key")
    with open_shell(root, machine=True, hidden=hidden, command=command, forked=False) as opened:
        assert "private_root:machine" in opened.report.enforced
        yield opened, top


@pytest.mark.parametrize("how", COMES)
def test_what_comes_of_what_is_hidden_is_hidden_too(how: str, looked_for: tuple[RawWorker, Path]) -> None:
    worker, top = looked_for
    name, comes = COMES[how]
    for text in COME:
        comes(file := top / name.format(text), text)
        found = shell(worker, f"ls {file}; cat {file}; cat {top}/*.key")
        assert (found["stdout"], found["exit_code"]) == (f"{file}\n", 1), found


def test_what_a_command_may_have_read_of_what_came_meanwhile_is_withheld(place: Path, root: Path) -> None:
    (secret := place / "meanwhile.key").write_text("none")
    os.mkfifo(place / "begun")

    def replace() -> None:
        with open(place / "begun", "w"):
            _replaced(secret, "swordfish")

    (thread := threading.Thread(target=replace)).start()
    with open_shell(root, machine=True, hidden=(f"{place}/*.key",)) as opened:
        line = f"cat {place}/begun; until cat {secret}; do :; done 2>/dev/null | tee copied"
        failure = opened.failed("run_cmd", {"command": line})
        thread.join()
        assert ("swordfish" in repr(failure), str(secret) in str(failure.details["paths"])) == (False, True)
        assert shell(opened, f"cat {secret} copied")["stdout"] == ""


def test_what_is_hidden_is_hidden_among_programs_in_a_hidden_home(place: Path, root: Path) -> None:
    for name in ("home/tool/program", "home/tool/a.key", "home/else"):
        write(place / name, "swordfish")
    shown, hidden = (str(place / "home/tool"),), (str(place / "home"), f"{place}/home/tool/*.key")
    with open_shell(root, machine=True, toolchains=shown, hidden=hidden) as opened:
        found = shell(opened, f"cd {place}/home/tool; cat program; cat a.key ../else; ls ..")
    assert (found["stdout"].split(), found["stderr"].count("cat: ")) == (["swordfishtool"], 2), found


@pytest.mark.parametrize("above", [False, True])
def test_what_is_hidden_is_hidden_in_a_root_as_well(place: Path, *, above: bool) -> None:
    inner = place / f"holds-secrets-{above}" / "root"
    more = (str(inner.parent),) * above
    (inner / "deep").mkdir(parents=True)
    (inner / "deep" / "a.key").write_text("swordfish")
    with open_shell(inner, machine=True, hidden=(*more, f"{inner}/deep/*.key")) as opened:
        assert "swordfish" not in str(shell(opened, "cat deep/a.key; cp -r deep copied; cat copied/*"))


def test_the_whole_machine_is_only_looked_at(place: Path) -> None:
    with open_shell(Path("/"), machine=True, writable=False, hidden=(str(place),)) as opened:
        assert shell(opened, "pwd")["stdout"] == "/\n"
        for name in ("/strongroom-door", "/etc/strongroom-door", f"{place}/door"):
            assert shell(opened, f"touch {name}")["exit_code"] != 0
            assert not os.path.exists(name)
        assert shell(opened, "ls etc | head -1; touch /tmp/mine")["exit_code"] == 0
        late = opened.failed("run_cmd", {"command": "echo begun; sleep 987", "timeout_s": 0.5})
    assert ("None of its changes were kept." in late.message, late.details["stdout"]) == (True, "begun\n")


ENDLESS = "for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM; sleep 987 & sleep 987' &) ; done; sleep 987"


def test_everything_that_it_starts_ends_with_it(root: Path) -> None:
    with open_shell(root, machine=True, timeout_s=0.5) as opened:
        late = opened.failed("run_cmd", {"command": f"(: < /dev/tcp/127.0.0.1/9); {ENDLESS}"})
        assert (late.kind, "Note: blocked: network" in late.message) == ("timeout", True)
        assert shell(opened, "setsid sleep 988 & exit 0")["exit_code"] == 0
        left = shell(opened, "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -o 'sleep 98[78]' | sort -u")["stdout"]
    assert "sleep 987" not in left.replace("grep -o", "")


def test_where_it_cannot_be_had_commands_see_the_system_alone_and_it_is_said(root: Path) -> None:
    broken = "import workers.shell.sandbox.machine_root as view; view._devices = None"
    command = worker_command(f"{broken}; from workers.__main__ import main; main()")
    with open_shell(root, machine=True, command=command, forked=False) as opened:
        assert "private_root" in opened.report.enforced
        assert "machine_view" in opened.report.degraded
        assert shell(opened, "ls /var/log")["exit_code"] != 0


FOUND = {
    "what services keep to themselves": "view.not_for_everybody = lambda top, _watch: [{0!r}] * (top == '/etc')",
    "what lies in /run, mounted elsewhere": "view.elsewhere = lambda paths, *_, **__: [{0!r}] * ('/run' in paths)",
    "our own home": "view.os.path.expanduser = lambda _path: {0!r}",
}


@pytest.mark.parametrize("what", FOUND)
def test_it_is_hidden_wherever_it_lies(what: str, place: Path, root: Path) -> None:
    (secret := place / "of-others").write_text("swordfish")
    found = f"import workers.shell.sandbox.secret_places as view; {FOUND[what].format(str(secret))}"
    command = worker_command(f"{found}; from workers.__main__ import main; main()")
    with open_shell(root, machine=True, command=command, forked=False) as opened:
        assert "private_root:machine" in opened.report.enforced
        assert shell(opened, f"ls {secret}; cat {secret}")["stdout"] == f"{secret}\n"


def test_the_whole_machine_is_no_root_to_write_in() -> None:
    with open_shell(Path("/"), machine=True) as opened:
        assert "which every command needs as it is" in opened.refusal.message


def test_without_a_rehearsal_there_is_no_socket_of_the_network_either(worker: RawWorker) -> None:
    code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    found = shell(worker, f"{python()} -c '{code}'", without_rehearsal=True)
    assert "PermissionError" in found["stderr"]


def test_a_root_that_is_only_looked_at_is_mounted_read_only(root: Path) -> None:
    with open_shell(root, machine=True, writable=False) as opened:
        lines = shell(opened, "cat /proc/self/mounts")["stdout"].splitlines()
    assert "ro" in [line.split()[3] for line in lines if line.split()[1] == str(root)][-1].split(",")


def test_what_is_hidden_stands_where_a_person_reads_it() -> None:
    told = (Path(__file__).parents[4] / "SECURITY.md").read_text().split()
    assert [pattern for pattern in HIDDEN if pattern not in told] == []


def test_what_services_keep_to_themselves_is_found(tmp_path: Path) -> None:
    for name, mode in {"open": 0o644, "password": 0o640, "deep/key": 0o600, "deep/public": 0o644}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(mode)
    (tmp_path / "closed").mkdir(mode=0o750)
    (tmp_path / "closed" / "inner").write_text("")
    (tmp_path / "link").symlink_to("password")
    found = {os.path.relpath(each, tmp_path) for each in not_for_everybody(str(tmp_path))}
    assert found == {"password", "deep/key", "closed"}


MOUNTED = (
    """
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 8:2 / /home rw - ext4 /dev/sda2 rw
24 22 8:2 / /mnt/a\\040copy rw - ext4 /dev/sda2 rw
25 22 8:1 / /chroot rw - ext4 /dev/sda1 rw
26 22 8:2 /bob /srv/bob rw - ext4 /dev/sda2 rw
27 22 8:3 /@ /btrfs rw - btrfs /dev/sdb rw
28 22 8:3 /@/var /var rw - btrfs /dev/sdb rw
29 22 0:5 / /proc rw - proc proc rw
30 23 8:4 / /home/disk rw - ext4 /dev/sdc rw
31 22 8:4 /deep /mnt/disk rw - ext4 /dev/sdc rw
""".strip()
    .replace("\\\\", "\\")
    .splitlines()
)
ELSEWHERE = {
    "/home": ["/mnt/a copy", "/mnt/disk", "/srv/bob"],
    "/home/bob/.ssh": ["/mnt/a copy/bob/.ssh", "/srv/bob/.ssh"],
    "/srv/bob/.ssh": ["/home/bob/.ssh", "/mnt/a copy/bob/.ssh"],
    "/etc/shadow": ["/chroot/etc/shadow"],
    "/var/lib/sss": ["/btrfs/var/lib/sss"],
    "/home/disk/deep/key": ["/mnt/disk/key"],
    "/btrfs": ["/var"],
    "/proc/kcore": [],
}


@each_row("path", ELSEWHERE)
def test_what_is_mounted_twice_is_hidden_twice(path: str) -> None:
    assert sorted(elsewhere([path], MOUNTED)) == ELSEWHERE[path]


def test_what_is_mounted_in_what_is_private_is_not_hidden_elsewhere() -> None:
    assert elsewhere(["/srv"], MOUNTED, inner=False) == ["/chroot/srv"]
    assert "/home/bob" in elsewhere(["/srv"], MOUNTED)
