"""The private root of the shell worker and its commands: data, and the function that builds it once.

Rule: nothing is there that is not listed. The system's programs and libraries and the toolchains are shown read-only;
of /etc a few files that hold no secret, and made-up ones; /proc is that of our own processes. Nothing of the old tree
can be reached afterwards, neither by the worker nor by what it starts. The project's root waits at `HELD`.
"""

import glob
import os
import re
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from workers.confine import mounts, namespaces
from workers.confine.mounts import NO_DEVICES, NO_PROGRAMS, NO_SUID, READ_ONLY
from workers.shell.cache_table import SHOWN
from workers.shell.sandbox.secret_places import SecretPlaces
from workers.shell.shell_inputs import HOME, SYSTEM, within

HELD: Final = "/.held"

SCRATCH: Final = "/.scratch"

LAYERS: Final = "/.layers"
"""In the private tree; `Layout` says where they are in the other one."""

_BASE: Final = "/proc"
"""Where the new tree is built: a directory that is always there and holds nothing that is shown."""

_BASE_MB: Final = 8

NAMES_PER_MB: Final = 1024
"""Names that a file system in memory takes: each takes about a kilobyte of the kernel's own memory, and so does a
kilobyte of attributes, which count as names do (since Linux 6.6, tmpfs(5))."""

AUTHORITIES: Final = "/etc/strongroom/authorities.pem"
"""Whom the operator trusts in addition, together with those whom the system trusts."""

OF_ETC: Final = (
    *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "gai.conf", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "lsb-release", "magic", "mime.types", "os-release", "pki/tls/certs", "protocols"),
    *("services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", "fonts", "perl/XML", "perl/Net", "R/ldpaths"),
    *("R/Renviron", "R/Makeconf", "java-*/security", "java-*/*.properties", "java-*/*.cfg", "maven/m2.conf"),
    *("maven/logging", "php/*/cli/conf.d", "php/*/mods-available", "php.d", "php[0-9]*/conf.d"),
)
"""What of /etc is shown, where it is there, as patterns: it holds no secret, and programs do not start without it."""

_PHP: Final = re.compile(
    r"(?:\d+[-_])?(?:apcu|bcmath|bz2|calendar|ctype|curl|dba|dom|enchant|exif|ffi|fileinfo|ftp|gd|gettext|gmp|iconv"
    r"|igbinary|imagick|imap|intl|json|ldap|mbstring|memcached|mongodb|msgpack|mysqli|mysqlnd|odbc|opcache|openssl|pcntl"
    r"|pcov|pdo(?:_\w+)?|pgsql|phar|posix|readline|redis|shmop|simplexml|snmp|soap|sockets|sodium|sqlite3|ssh2"
    r"|sysv(?:msg|sem|shm)|tidy|tokenizer|xdebug|xml(?:reader|writer)?|xsl|yaml|zip|zstd)\.ini"
)
"""Settings that load an extension of PHP, and hold no key of a service; beside another file, none are shown."""

DEVICES: Final = ("full", "null", "random", "urandom", "zero")

LINKS: Final = (
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
)

_EMPTY: Final = (HOME, HELD, SCRATCH, LAYERS, "/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108 - the private ones

HOST_NAME: Final = "strongroom"
"""What a command takes this machine for."""


class Layout(msgspec.Struct, frozen=True):
    """What is shown besides what always is."""

    root: str
    """Its own absolute path: where the process's current directory will be seen."""
    writable: bool
    toolchains: tuple[str, ...]
    """Directories and files, absolute, read-only at their own paths; and links."""
    processes: int
    scratch_mb: int
    """Of all that a command writes outside of the root; and, where it is rehearsed, of what it changes in the root."""
    authorities: bytes = b""
    """What the file `AUTHORITIES` holds; there is none if empty."""
    identity: tuple[str, str] = ("", "")
    """Name and e-mail address of the person, for git."""
    home_files: Mapping[str, str] = MappingProxyType({})
    """Files in the HOME of each command: path there -> text."""
    caches: tuple[tuple[str, str], ...] = ()
    """Of package managers: the registry of each, and its directory."""
    secrets: SecretPlaces | None = None
    """What is hidden of the machine's own tree (`machine_root`); None where that is not shown."""
    looker: int = -1
    """The descriptor by which `held_sockets` is asked; -1 where nobody looks."""

    @property
    def machine(self) -> bool:
        """Whether the machine's own tree is shown."""
        return self.secrets is not None

    @property
    def held(self) -> str:
        """Where the root is kept for the next command; a command does not see it."""
        return self._inner(HELD)

    @property
    def scratch(self) -> str:
        """Where a command's own places are made; a command does not see it."""
        return self._inner(SCRATCH)

    @property
    def layers(self) -> str:
        """Where the changes of the command that runs are kept; it does not see that either."""
        return self._inner(LAYERS)

    @property
    def machines_proc(self) -> str:
        """Where the machine's /proc waits for a command that is shown the machine."""
        return self._inner("/.proc")

    def _inner(self, path: str) -> str:
        return f"/dev{path}" if self.machine else path


def of_etc() -> list[str]:
    """Return what of /etc is there to be shown."""
    found = [path for name in OF_ETC for path in glob.glob(f"/etc/{name}")]
    return [path for path in found if not path.startswith("/etc/php") or all(map(_PHP.fullmatch, os.listdir(path)))]


def in_memory(megabytes: int) -> str:
    """Return the options of a file system in memory (tmpfs) that takes so much, and so much of names and attributes."""
    return f"size={megabytes}m,nr_inodes={megabytes * NAMES_PER_MB},mode=700"


def check(layout: Layout) -> None:
    """Refuse a root that would cover what commands are run with.

    Raises:
        ValueError: it holds the system's programs or its libraries.
    """
    for directory in () if layout.machine and not layout.writable else SYSTEM:
        if os.path.lexists(directory) and within(directory, layout.root):
            raise ValueError(f"the root {layout.root!r} holds {directory!r}, which every command needs as it is")


def build(layout: Layout) -> None:
    """Make the private root that of this process, whose current directory is the project's root.

    Needs a mount and a PID namespace of its own. Afterwards the current directory is `HELD`, and nobody who takes this
    process over can make writable what is shown read-only.

    Raises:
        OSError: something cannot be mounted.
    """
    os.umask(0o022)
    socket.sethostname(HOST_NAME)
    mounts.keep_to_ourselves()
    mounts.new("tmpfs", _BASE, NO_SUID | NO_DEVICES, f"size={_BASE_MB}m,mode=755")
    for path in _EMPTY:
        os.makedirs(_BASE + path, exist_ok=True)
    for link, target in LINKS:
        os.makedirs(_BASE + os.path.dirname(link), exist_ok=True)
        os.symlink(target, _BASE + link)
    shown: list[str] = []
    for path in (*SYSTEM, *sorted(layout.toolchains)):
        if not any(within(path, other) for other in shown) and _is_real(path) and show(path):
            shown.append(path)
    for path in of_etc():
        show(path)
    if layout.authorities:
        write_file(_BASE + AUTHORITIES, layout.authorities.decode("utf-8", "replace"))
    for path, text in _made_up(layout.identity):
        write_file(_BASE + path, text)
    for name in DEVICES:
        write_file(f"{_BASE}/dev/{name}", "")
        mounts.bind(f"/dev/{name}", f"{_BASE}/dev/{name}", READ_ONLY | NO_SUID | NO_PROGRAMS)
    for name, directory in layout.caches:
        os.makedirs(f"{_BASE}{SHOWN}/{name}")
        mounts.bind(directory, f"{_BASE}{SHOWN}/{name}", READ_ONLY | NO_SUID | NO_DEVICES)
    held_as = NO_SUID | NO_DEVICES | (0 if layout.writable else READ_ONLY)
    mounts.bind(".", _BASE + HELD, held_as)
    os.makedirs(_BASE + layout.root, exist_ok=True)
    _mount_proc(layout.processes)
    mounts.change_root(_BASE)
    mounts.restrict("/", READ_ONLY)
    os.chdir(HELD)
    namespaces.settle(SCRATCH)


def show(path: str, base: str = _BASE) -> bool:
    """Show a file, a directory or a link of the system as it is, read-only; say whether there is one."""
    if os.path.islink(path):
        os.makedirs(base + os.path.dirname(path), exist_ok=True)
        if not os.path.lexists(base + path):
            os.symlink(os.readlink(path), base + path)
        return False  # what it leads to has a path of its own
    if not os.access(path, os.R_OK):
        return False
    if os.path.isdir(path):
        os.makedirs(base + path, exist_ok=True)
    else:
        write_file(base + path, "")
    mounts.bind(path, base + path, READ_ONLY | NO_SUID | NO_DEVICES)
    return True


def _is_real(path: str) -> bool:
    """Say whether no link leads to where a path lies; one may have been put there since it was judged."""
    return path in SYSTEM or os.path.realpath(os.path.dirname(path)) == os.path.dirname(path)


def _made_up(identity: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the files that tell of one user and no more."""
    user, group = os.geteuid(), os.getegid()
    return (
        ("/etc/passwd", f"agent:x:{user}:{group}:agent:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
        ("/etc/group", f"agent:x:{group}:\nnogroup:x:65534:\n"),
        ("/etc/hosts", f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n"),
        # Without it libc takes the first line of a name, and a server at ::1 would not be found by `localhost`.
        ("/etc/host.conf", "multi on\n"),
        # musl asks without a connection, so nothing tells it that nobody is there: it waits as long as this says.
        ("/etc/resolv.conf", "options timeout:0 attempts:1\n"),
        ("/etc/hostname", f"{HOST_NAME}\n"),
        # Who looks up a name asks the network for it, in vain: so it is seen that a command wants one.
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        ("/etc/gitconfig", git_settings(identity)),
    )


def git_settings(identity: tuple[str, str]) -> str:
    """Return git's settings of the whole system, with the name and the address that stand in commits."""
    who = "".join(
        f"\t{key} = {_quoted(value)}\n" for key, value in zip(("name", "email"), identity, strict=True) if value
    )
    # The root may belong to somebody who has no number in here; git packs in the background, which ends with the
    # command.
    return f"[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n{who and '[user]'}\n{who}"


def _quoted(value: str) -> str:
    """Return a value as git's settings take it (git-config(1), "Syntax")."""
    return '"' + "".join({"\\": "\\\\", '"': '\\"', "\n": " ", "\0": " "}.get(each, each) for each in value) + '"'


def _mount_proc(processes: int) -> None:
    proc = f"{_BASE}/proc"
    os.makedirs(proc)
    mounts.new("proc", proc, NO_SUID | NO_DEVICES | NO_PROGRAMS, "hidepid=2")
    namespaces.limit_numbers(proc, processes)
    mounts.restrict(proc, READ_ONLY)  # as user 0, one could else change the whole machine there


def write_file(path: str, text: str) -> None:
    """Write a file of the tree that is made, with the directories that it needs."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
