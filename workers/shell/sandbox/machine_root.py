"""The machine as commands may look at it: its own tree and /proc, read-only, without what is secret.

Rule: nothing there can be written, run as its owner or used as a device; what `HIDDEN` and the operator name is covered
by something that nobody may open. /dev, /run and the temporary files are private, for they hold the sockets of others;
of /run a few files are shown. The worker keeps a /proc of its own, and a command gets the machine's, in which it can
signal nobody: it stays in a PID namespace of its own.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from workers.confine import mounts, namespaces
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.shell.sandbox.private_root import DEVICES, LINKS, Layout, git_settings, show, write_file
from workers.shell.sandbox.secret_places import SecretPlaces, found
from workers.shell.shell_inputs import within

_OF_PROC: Final = (
    *("kcore", "kmsg", "keys", "key-users", "sysrq-trigger", "vmallocinfo", "timer_list", "acpi", "scsi"),
    *("kpagecount", "kpageflags", "kpagecgroup", "sys/net/ipv4/tcp_fastopen_key"),
)
"""What of the machine's /proc is covered."""

OF_RUN: Final = (
    *("log", "utmp", "udev/data", "udev/tags", "systemd/netif", "systemd/resolve/resolv.conf", "reboot-required"),
    *("systemd/resolve/stub-resolv.conf", "resolvconf/resolv.conf", "NetworkManager/resolv.conf", "motd.dynamic"),
    *("reboot-required.pkgs", "systemd/machines", "mdadm/map", "ostree-booted", "issue"),
)
"""What of /run is shown: it holds no socket, and nothing that is somebody's own."""

_BOOTED: Final = "/run/systemd/system"
"""Where it is, systemd runs (sd_booted(3)): it is shown empty."""
_BASE: Final = "/tmp"  # noqa: S108 - where the new tree is mounted; nobody sees what lay there
_BLANK: Final = "/dev/.blank"
GIT_SETTINGS: Final = "/dev/.gitconfig"
"""Instead of the machine's own."""
_OURS: Final = NO_SUID | NO_DEVICES
_UNCOUNTED: Final = "size=0"
"""Without a size, which df takes for what is on no disk (tmpfs(5)): they are read-only before anybody runs there."""


def build(layout: Layout) -> None:
    """Make the machine's tree that of this process, whose current directory is the project's root.

    Needs a mount and a PID namespace of its own, as `private_root.build` does, and leaves the same behind.

    Raises:
        OSError: something cannot be mounted.
    """
    secrets = _secrets(layout)
    os.umask(0o022)
    mounts.keep_to_ourselves()
    os.listdir(os.path.dirname(secrets.needed[0]))
    hidden = secrets.begin()
    mounts.bind("/", _BASE, READ_ONLY | _OURS)
    _devices(layout)
    mounts.bind("/proc", _BASE + layout.machines_proc, READ_ONLY | _OURS | NO_PROGRAMS)
    _run()
    ways = [path for path in hidden if _hide(path, secrets.needed)]
    for path in layout.toolchains:
        if any(within(path, way) for way in ways):
            show(path, _BASE)
    for name in _OF_PROC:
        _cover(f"{layout.machines_proc}/{name}")
    mounts.bind(".", _BASE + layout.held, _OURS | (0 if layout.writable else READ_ONLY))
    mounts.new("proc", f"{_BASE}/proc", _OURS | NO_PROGRAMS, "hidepid=2")
    namespaces.limit_numbers(f"{_BASE}/proc", layout.processes)
    mounts.restrict(f"{_BASE}/proc", READ_ONLY)
    mounts.change_root(_BASE)
    for path in ("/dev", "/run", *ways):
        mounts.restrict(path, READ_ONLY)
    secrets.shown = {os.lstat(path).st_dev for path in ways}
    _cover_all(hidden, secrets)  # in what is shown of what is hidden
    os.chdir(layout.held)
    namespaces.settle(layout.scratch)


def show_proc(layout: Layout) -> None:
    """Show a command the machine's /proc, when its other places have been made.

    Raises:
        OSError: it cannot be mounted.
    """
    mounts.bind(layout.machines_proc, "/proc")
    mounts.bind(layout.scratch, layout.machines_proc)


def own_number(layout: Layout) -> int:
    """Return the number of this process, the worker's, in the /proc that its commands see; 0 where that is theirs."""
    return int(os.readlink(f"{layout.machines_proc}/self")) if layout.machine else 0


def hide_again(layout: Layout) -> list[str]:
    """Cover what is hidden and has come since, and return it: a file that was replaced is covered no more.

    Raises:
        OSError: it cannot be mounted, or found.
    """
    secrets = layout.secrets
    return _cover_all(secrets.find(), secrets) if secrets and secrets.may_have_changed() else []


def hide_in_root(layout: Layout) -> None:
    """Cover what is hidden in the root, which was just mounted; in the process that becomes a command.

    Raises:
        OSError: it cannot be mounted.
    """
    secrets = _secrets(layout)
    _cover_all(found(secrets.in_root), secrets)


def _secrets(layout: Layout) -> SecretPlaces:
    if layout.secrets is None:
        raise ValueError("nothing is said to be secret")
    return layout.secrets


def _cover_all(paths: Sequence[str], secrets: SecretPlaces) -> list[str]:
    """Cover what is not covered, in the tree that commands see; return it."""
    covered = {os.stat(_BLANK).st_dev, *secrets.shown}
    left = []
    for path in (each for each in paths if each not in secrets.needed):
        with suppress(FileNotFoundError, NotADirectoryError):  # it is covered with what it lies in, or gone
            if os.lstat(path).st_dev not in covered:
                _cover(path, base="")
                left.append(path)
    return left


def is_possible(layout: Layout, root_fd: int) -> bool:
    """Say whether this system lets `build` do its work: it does, in processes that end at once."""
    return _in_a_child(lambda: _try(layout, root_fd)) == 0


def _try(layout: Layout, root_fd: int) -> None:
    os.fchdir(root_fd)
    namespaces.leave_as_oneself(namespaces.EVERYTHING & ~namespaces.NEW_NETWORK)
    os._exit(_in_a_child(lambda: build(layout)))


def _in_a_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - whatever it is, there is no such view
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _devices(layout: Layout) -> None:
    dev = f"{_BASE}/dev"
    mounts.new("tmpfs", dev, _OURS | NO_PROGRAMS, f"{_UNCOUNTED},mode=755")
    for path in ("/dev/shm", layout.held, layout.scratch, layout.layers, layout.machines_proc):  # noqa: S108 - ours
        os.mkdir(_BASE + path)
    for link, target in LINKS:
        os.symlink(target, _BASE + link)
    for name in DEVICES:
        write_file(f"{dev}/{name}", "")
        mounts.bind(f"/dev/{name}", f"{dev}/{name}", READ_ONLY | NO_SUID | NO_PROGRAMS)
    os.mkdir(_BASE + _BLANK)
    os.mkdir(f"{_BASE}{_BLANK}/directory", 0)
    write_file(f"{_BASE}{_BLANK}/file", "")
    os.chmod(f"{_BASE}{_BLANK}/file", 0)
    write_file(_BASE + GIT_SETTINGS, git_settings(layout.identity))


def _run() -> None:
    if os.path.isdir("/run") and not os.path.islink("/run"):
        mounts.new("tmpfs", f"{_BASE}/run", _OURS | NO_PROGRAMS, f"{_UNCOUNTED},mode=755")
        if os.path.isdir(_BOOTED):
            os.makedirs(_BASE + _BOOTED)
        for name in OF_RUN:
            if os.access(f"/run/{name}", os.R_OK):
                show(f"/run/{name}", _BASE)


def _hide(path: str, needed: Sequence[str]) -> bool:
    """Cover a path; where something that is needed lies beneath it, leave the way to that alone, and say so."""
    ways = [each for each in needed if within(each, path)]
    if path in ways:  # the root itself
        return False
    if not ways:
        _cover(path)
        return False
    mounts.new("tmpfs", _BASE + path, _OURS, f"{_UNCOUNTED},mode=755")
    for each in needed[:2]:  # the others are shown there
        if within(each, path):
            os.makedirs(_BASE + each, exist_ok=True)
    return True


def _cover(path: str, base: str = _BASE) -> None:
    if not os.path.lexists(base + path):
        return
    kind = "directory" if os.path.isdir(base + path) else "file"
    mounts.bind(f"{base}{_BLANK}/{kind}", base + path, READ_ONLY | _OURS)
