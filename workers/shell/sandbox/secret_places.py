"""Secret places of the machine: what is hidden of it, wherever that lies, and whether more has come since.

Rule: found by name, and of /etc also by mode. The kernel says when something changed in a directory that leads there
(inotify(7)), and all is looked for anew; where it cannot say so, all is looked for each time.
"""

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Final

from workers import kernel
from workers.confine.syscalls import NUMBERS
from workers.shell.shell_inputs import within

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
    # Of which a look makes a new device, or reads the memory of one, where root looks.
    *("/sys/class/zram-control", "/sys/bus/pci/devices/*/resource[0-9]*", "/sys/class/pci_bus/*/legacy_*"),
)
"""What nobody sees, whatever its mode is: patterns of absolute paths. `hidden` of [shell] adds to it."""

_SOCKETS: Final = ("/dev", "/run", "/tmp", "/var/tmp")  # noqa: S108 - not shown, so neither is a second mount
"""Directories that the view has of its own."""
_PRIVATE: Final = "/etc"
"""Beneath it all is hidden that not everybody may read."""
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
_PERSONS: Final = 1000
"""The first number of a user who is a person (login.defs(5))."""
_NUMBERS: Final = NUMBERS.get(kernel.MACHINE, {})
_CHANGES: Final = 0x4 | 0x80 | 0x100 | 0x01000000
"""IN_ATTRIB, IN_MOVED_TO, IN_CREATE, IN_ONLYDIR."""
_EVENTS: Final = 2**16


class SecretPlaces:
    """Of one worker.

    Args:
        patterns: what the operator hides besides.
        root: where commands see the root.
        needed: what of the machine they see all the same.
    """

    def __init__(self, patterns: Iterable[str], root: str, needed: Sequence[str]) -> None:
        self._patterns = (*patterns, *HIDDEN)
        self._root = root
        self.needed: Final = needed
        self._mounted: Sequence[str] = ()
        self._is_told = False
        self.shown: Iterable[int] = ()
        """Devices of what is mounted where something that is needed lies in what is hidden."""
        self.in_root: Sequence[str] = ()
        """Patterns of what may lie in the root, which is mounted anew for each command."""
        self.descriptors: Final[list[int]] = []
        """Of this, to be kept: by which the kernel says what changed, where it does."""
        with suppress(OSError):
            number = _NUMBERS.get("inotify_init1", -1)
            self.descriptors.append(kernel.syscall("inotify_init1", number, os.O_CLOEXEC | os.O_NONBLOCK))

    def begin(self) -> list[str]:
        """Find everything, while the machine's own mounts are there.

        Raises:
            OSError: what is mounted cannot be told.
        """
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            self._mounted = file.readlines()
        return self.find()

    def may_have_changed(self) -> bool:
        """Say whether to find everything anew."""
        changed = not self._is_told
        for each in self.descriptors:
            with suppress(BlockingIOError):
                while os.read(each, _EVENTS):
                    changed = True
        return changed

    def find(self) -> list[str]:
        """Return what is there and to be hidden, without links; what lies in another of them only where it is needed.

        Raises:
            OSError: a directory cannot be read.
        """
        self._is_told = bool(self.descriptors)
        named = (*self._patterns, *_homes(), *_swap_files())
        for directory in _leading_to(named):
            self._watch(directory)
        patterns = [*named, *map(glob.escape, not_for_everybody(_PRIVATE, self._watch))]
        real = found(patterns)
        twice = (*elsewhere(real, self._mounted), *elsewhere(_SOCKETS, self._mounted, inner=False))
        again = [each for each in twice if not _in_one(each, _SOCKETS)]
        for directory in _leading_to(map(glob.escape, (*real, *again))):
            self._watch(directory)
        self.in_root = [each for each in (*patterns, *map(glob.escape, again)) if _reaches(each, self._root)]
        kept: list[str] = []
        for path in sorted({*real, *again}):
            above = next((each for each in reversed(kept) if within(path, each)), None)
            if above is None or any(within(path, each) and within(each, above) for each in self.needed):
                kept.append(path)
        return kept

    def _watch(self, directory: str) -> None:
        number, path = _NUMBERS.get("inotify_add_watch", -1), os.fsencode(directory)
        try:
            for each in self.descriptors:
                kernel.syscall("inotify_add_watch", number, each, path, _CHANGES)
        except OSError as error:  # what is not there comes to a directory that is; what is closed, nobody enters
            closed = error.errno == errno.EACCES and not os.access(directory, os.X_OK)
            self._is_told &= closed or error.errno in {errno.ENOENT, errno.ENOTDIR}


def found(patterns: Iterable[str]) -> list[str]:
    """Return what is there, without links."""
    there: set[str] = set()
    listed: dict[str, list[str]] = {}
    for pattern in patterns:
        directory, _, name = pattern.rpartition("/")
        if not glob.has_magic(pattern):
            there |= {pattern} if os.path.lexists(pattern) else set()
        elif glob.has_magic(directory):
            there.update(glob.glob(pattern))
        else:
            if directory not in listed:
                listed[directory] = []
                with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    listed[directory] = os.listdir(directory)
            there.update(f"{directory}/{each}" for each in fnmatch.filter(listed[directory], name))
    return sorted({os.path.realpath(each) for each in there} - {"/"})


def _in_one(path: str, directories: Iterable[str]) -> bool:
    return any(within(path, each) for each in directories)


def _leading_to(patterns: Iterable[str]) -> set[str]:
    """Return the directories that are on the way to what patterns match, and on that to where links lead."""
    above = {each for pattern in patterns for each in accumulate(pattern.split("/")[:-1], lambda *two: "/".join(two))}
    there = {path for each in above for path in (glob.glob(each) if glob.has_magic(each) else (each or "/",))}
    real = {os.path.realpath(each) for each in there}
    return real | {each or "/" for path in real for each in accumulate(path.split("/"), lambda *two: "/".join(two))}


def _reaches(pattern: str, root: str) -> bool:
    """Say whether a pattern may match something in a root; all that is in "/" lies on the machine itself."""
    parts, own = pattern.split("/"), root.split("/")
    matching = (fnmatch.fnmatchcase(here, part) for here, part in zip(own, parts, strict=False))
    return root != "/" and len(parts) > len(own) and all(matching)


def elsewhere(paths: Iterable[str], mounted: Iterable[str], *, inner: bool = True) -> list[str]:
    """Return where else these paths, or parts of them, are seen: what they lie on may be mounted twice.

    `mounted` are the lines of /proc/self/mountinfo (proc_pid_mountinfo(5)). With `inner`, the same goes for what is
    mounted in them.
    """
    places: list[tuple[str, str, str]] = []
    for fields in (line.split(" ") for line in mounted):
        top, at = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), each).rstrip("/") for each in fields[3:5])
        places.insert(0, (fields[2], top, at))  # of two at one place the last one is seen
    found = []
    for hidden in paths:
        for path in {hidden, *(at for _device, _top, at in places if inner and within(at, hidden))}:
            holds = [each for each in places if within(path, each[2] or "/")]
            device, top, at = max(holds, key=lambda each: len(each[2]))
            lies = top + path[len(at) :] or "/"
            same = [(other, to) for its, other, to in places if its == device]
            again = [to + lies[len(other) :] for other, to in same if within(lies, other or "/")]
            again += [to for other, to in same if within(other, lies)]  # a part of it alone
            found += [each.rstrip("/") for each in again if each.rstrip("/") and not within(each.rstrip("/"), hidden)]
    return list(dict.fromkeys(found))


def not_for_everybody(top: str, watch: Callable[[str], None] = lambda _directory: None) -> Iterator[str]:
    """Yield what lies in a directory and not everybody may read: services keep their passwords so.

    Each directory that is looked through is told to `watch` before.
    """
    watch(top)
    for directory, inner, files in os.walk(top):
        for name in (*files, *tuple(inner)):
            path = os.path.join(directory, name)
            with suppress(OSError):
                status = os.lstat(path)
                needed = 0o005 if stat.S_ISDIR(status.st_mode) else 0o004
                if not stat.S_ISLNK(status.st_mode) and status.st_mode & needed != needed:
                    inner[:] = [each for each in inner if each != name]
                    yield path
        for name in inner:
            watch(os.path.join(directory, name))


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
