"""The machine as commands may look at it: its own tree and /proc, read-only, without what is secret.

Rule: nothing there can be written, run as its owner or used as a device; what `HIDDEN` and the operator name is covered
by something that nobody may open. /dev, /run and the temporary files are private, for they hold the sockets of others;
of /run a few files are shown. The worker keeps a /proc of its own, and a command gets the machine's, in which it can
signal nobody: it stays in a PID namespace of its own.
"""

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from workers.confine import mounts, namespaces
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.shell.sandbox.private_root import DEVICES, LINKS, Layout, git_settings, show, within, write_file
from workers.shell.shell_inputs import HOME

HIDDEN: Final = (
    # Homes, and what their owners keep elsewhere.
    *("/home", "/root", "/var/mail", "/var/spool/mail", "/var/lib/AccountsService", "/var/spool/cups"),
    *("/var/spool/mqueue", "/var/spool/clientmqueue", "/var/spool/postfix", "/var/spool/exim4", "/lost+found"),
    # Passwords and who may become whom.
    *("/etc/shadow*", "/etc/gshadow*", "/etc/security/opasswd", "/etc/sudoers*", "/etc/doas.conf", "/var/backups"),
    *("/etc/master.passwd", "/var/lib/sss", "/var/lib/samba/private", "/var/lib/extrausers/*shadow*"),
    # Keys.
    *("/etc/ssl/private", "/etc/pki/tls/private", "/etc/pki/private", "/etc/ssh/*_key", "/etc/letsencrypt"),
    *("/etc/*keytab*", "/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d", "/etc/swanctl"),
    *("/etc/cryptsetup-keys.d", "/etc/luks", "/etc/kubernetes", "/etc/rancher", "/etc/docker/key.json", "/etc/acme*"),
    *("/var/lib/acme", "/var/lib/caddy", "/var/lib/tailscale", "/var/lib/kubelet", "/var/lib/rancher"),
    *("/var/lib/vault", "/var/lib/libvirt/secrets", "/etc/ceph/*keyring*", "/etc/apt/trusted.gpg.d/*secret*"),
    *("/etc/dnssec-keys", "/var/lib/bluetooth", "/var/lib/krb5kdc", "/var/kerberos", "/var/lib/ceph/*/*/keyring"),
    *("/var/lib/etcd", "/var/lib/k0s", "/var/lib/minikube", "/var/lib/puppet/ssl", "/var/lib/fprint"),
    # Credentials.
    *("/etc/credstore*", "/usr/lib/credstore*", "/var/lib/systemd/credential.secret", "/etc/apt/auth.conf*"),
    *("/etc/NetworkManager/system-connections", "/var/lib/NetworkManager/*secret*", "/etc/wpa_supplicant*"),
    *("/etc/netplan", "/var/lib/iwd", "/etc/ppp/*-secrets", "/etc/mysql/debian.cnf", "/etc/postfix/*passw*"),
    *("/etc/exim4/passwd*", "/etc/dovecot/private", "/etc/msmtprc", "/etc/fetchmailrc", "/etc/davfs2/secrets"),
    *("/etc/*cred*", "/etc/.git-credentials", "/etc/netrc", "/etc/npmrc", "/usr/etc/npmrc", "/etc/pip.conf"),
    *("/etc/xdg/pip", "/var/cache/debconf/*password*", "/var/log/installer", "/var/lib/amazon/ssm"),
    *("/var/lib/connman", "/var/lib/snapd/cookie", "/var/lib/snapd/state.json"),
    *("/etc/rclone*", "/etc/restic*", "/etc/borg*", "/etc/vault*", "/etc/environment.d", "/etc/sasldb2"),
    *("/etc/cups/ssl", "/etc/bind/*.key", "/etc/rndc.key", "/etc/iscsi", "/etc/multipath/*key*"),
    *("/etc/chrony/*keys*", "/etc/ntp/keys"),
    *("/var/lib/cloud", "/var/lib/waagent", "/var/lib/docker", "/var/lib/containers", "/var/lib/containerd"),
    # Memory that was written to a disk.
    *("/swapfile", "/swap.img", "/swap", "/var/swap*", "/var/crash", "/var/lib/systemd/coredump", "/var/lib/apport"),
    *("/var/lib/systemd/random-seed", "/var/lib/systemd/pstore"),
    # Other copies of all this.
    *("/.snapshots", "/timeshift", "/sysroot", "/var/lib/machines", "/var/lib/lxc", "/var/lib/lxd", "/var/snap"),
    # Where the kernel itself shows more than a look at the machine takes.
    *("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/bpf", "/sys/fs/pstore"),
    *("/sys/fs/fuse", "/sys/firmware", "/sys/devices/virtual/powercap", "/sys/power"),
)
"""What nobody sees, whatever its mode is: patterns of absolute paths. `hidden` of [shell] adds to it."""

_OF_PROC: Final = ("kcore", "kmsg", "keys", "key-users", "sysrq-trigger", "vmallocinfo", "timer_list", "acpi", "scsi")
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
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_PERSONS: Final = 1000
"""The first number of a user who is a person (login.defs(5))."""
_UNCOUNTED: Final = "size=0"
"""Without a size, which df takes for what is on no disk (tmpfs(5)): they are read-only before anybody runs there."""


def build(layout: Layout) -> None:
    """Make the machine's tree that of this process, whose current directory is the project's root.

    Needs a mount and a PID namespace of its own, as `private_root.build` does, and leaves the same behind.

    Raises:
        OSError: something cannot be mounted.
    """
    os.umask(0o022)
    mounts.keep_to_ourselves()
    os.listdir(os.path.dirname(HOME))
    found = _found((*layout.hidden, *map(glob.escape, not_for_everybody("/etc"))))
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        found += elsewhere(found, file)
    mounts.bind("/", _BASE, READ_ONLY | _OURS)
    _devices(layout)
    mounts.bind("/proc", _BASE + layout.machines_proc, READ_ONLY | _OURS | NO_PROGRAMS)
    _run()
    ways = [path for path in found if _hide(path, _needed(layout))]
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


def hide_again(layout: Layout) -> None:
    """Cover what is hidden and has come since: a file that was replaced is covered no more, and the root shows its own.

    Raises:
        OSError: it cannot be mounted.
    """
    blank = os.stat(_BLANK).st_dev
    for path in _found(layout.hidden):
        if os.lstat(path).st_dev != blank and not any(within(each, path) for each in _needed(layout)):
            _cover(path, base="")


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
        mounts.bind(f"/dev/{name}", f"{dev}/{name}", NO_SUID | NO_PROGRAMS)
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


def _needed(layout: Layout) -> tuple[str, ...]:
    return (os.path.realpath(HOME), layout.root, *layout.toolchains)


def _found(hidden: Iterable[str]) -> list[str]:
    """Return what is there of what is to be hidden, without links, and not what lies in another of them."""
    found: set[str] = set()
    listed: dict[str, list[str]] = {}
    for pattern in (*hidden, *HIDDEN, *_homes(), *_swap_files()):
        directory, _, name = pattern.rpartition("/")
        if not glob.has_magic(pattern):
            found |= {pattern} if os.path.lexists(pattern) else set()
        elif glob.has_magic(directory):
            found.update(glob.glob(pattern))
        else:
            if directory not in listed:
                listed[directory] = os.listdir(directory) if os.access(directory, os.R_OK) else []
            found.update(f"{directory}/{each}" for each in fnmatch.filter(listed[directory], name))
    kept: list[str] = []
    for path in sorted({os.path.realpath(each) for each in found} - {"/"}):
        if not kept or not within(path, kept[-1]):
            kept.append(path)
    return kept


def elsewhere(paths: Iterable[str], mounted: Iterable[str]) -> list[str]:
    """Return where else these paths, or parts of them, are seen: what they lie on may be mounted twice.

    `mounted` are the lines of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    places: list[tuple[str, str, str]] = []
    for fields in (line.split(" ") for line in mounted):
        top, at = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), each).rstrip("/") for each in fields[3:5])
        places.insert(0, (fields[2], top, at))  # of two at one place the last one is seen
    found = []
    for hidden in paths:
        for path in {hidden, *(at for _device, _top, at in places if within(at, hidden))}:
            holds = [each for each in places if within(path, each[2] or "/")]
            device, top, at = max(holds, key=lambda each: len(each[2]))
            lies = top + path[len(at) :] or "/"
            same = [(other, to) for its, other, to in places if its == device]
            again = [to + lies[len(other) :] for other, to in same if within(lies, other or "/")]
            again += [to for other, to in same if within(other, lies)]  # a part of it alone
            found += [each.rstrip("/") for each in again if each.rstrip("/") and not within(each.rstrip("/"), hidden)]
    return list(dict.fromkeys(found))


def not_for_everybody(top: str) -> Iterator[str]:
    """Yield what lies in a directory and not everybody may read: services keep their passwords so."""
    for directory, inner, files in os.walk(top):
        for name in (*files, *tuple(inner)):
            path = os.path.join(directory, name)
            with suppress(OSError):
                status = os.lstat(path)
                needed = 0o005 if stat.S_ISDIR(status.st_mode) else 0o004
                if not stat.S_ISLNK(status.st_mode) and status.st_mode & needed != needed:
                    inner[:] = [each for each in inner if each != name]
                    yield path


def _homes() -> Iterator[str]:
    """Yield the homes of people, and our own; those of services hold what the services do."""
    yield glob.escape(os.path.expanduser("~"))
    with suppress(OSError), open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            fields = line.split(":")
            if len(fields) > 5 and fields[2].isdigit() and _PERSONS <= int(fields[2]) < 2**16 - 2:  # noqa: PLR2004
                yield glob.escape(fields[5])


def _swap_files() -> Iterator[str]:
    with suppress(OSError), open("/proc/swaps", encoding="utf-8", errors="surrogateescape") as file:
        yield from (glob.escape(line.split()[0]) for line in file if " file" in line.replace("\t", " "))


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
