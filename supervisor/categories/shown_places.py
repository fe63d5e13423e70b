"""Places of programs that commands may be shown, and why others may not.

Rule: of an install prefix only those parts are shown that programs consist of, by name (`_PARTS`); what else lies
there, settings and credentials among it, is not. Never shown is a home, what holds one, or what lies where settings are
kept; each refusal says which. Places are shown under the path that they really have; links on the way are links.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from workers.shell.shell_inputs import within

_LINKS_AT_MOST: Final = 40
"""On the way to one file, as for the kernel (path_resolution(7))."""

_PROGRAM_DIRECTORIES: Final = ("bin", "sbin", "condabin", "shims", ".bin")

_PARTS: Final = (
    *("bin", "sbin", "condabin", "lib", "lib32", "lib64", "libexec", "include", "share", "man"),
    *("jre", "jmods", "release", "boot", "pyvenv.cfg"),
)
_EVIDENCE: Final = frozenset({"lib", "lib64", "libexec", "share", "jre"})
"""What, beside the programs, makes a directory an install prefix."""
_PARTS_BY_SIGN: Final = (
    ("lib/modules", ("conf",)),  # a JDK
    ("jre", ("conf",)),
    ("VERSION", ("VERSION", "go.env", "pkg", "src", "api", "misc")),  # Go
    (
        "conda-meta",
        ("ssl/cert.pem", "ssl/openssl.cnf", "x86_64-conda-linux-gnu", "aarch64-conda-linux-gnu", "etc/fonts"),
    ),
    ("Cellar", ("etc/ca-certificates", "etc/openssl@3/cert.pem", "etc/openssl@3/openssl.cnf")),
    ("Cellar", ("Cellar", "opt", "Caskroom", "Homebrew", "Frameworks")),  # Homebrew
)
"""Further parts, where a sign of the kind is there."""

_PACKAGES: Final = "/node_modules/"
"""What lies there needs the packages beside it."""

_SOURCES: Final = frozenset(
    {
        *(".git", ".hg", ".svn", "pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml"),
        *("build.gradle", "CMakeLists.txt", "configure.ac", "Gemfile", "composer.json", "mix.exs"),
    }
)
"""Whoever has one of these is a source tree and no install prefix: of it, the programs alone are shown."""

_SETTINGS: Final = frozenset(
    {
        *(".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".password-store", ".mozilla", ".pki"),
        *(".thunderbird", ".gcloud", ".terraform.d", ".m2", ".gem", ".vault", ".putty", ".subversion", ".git"),
        *("keyrings", ".claude", ".codex", ".gemini", ".electrum", ".bitcoin", ".ethereum", ".minikube", ".oci"),
    }
)
"""Directories that hold settings and credentials, wherever they are."""

_HOME_SIGNS: Final = (".ssh", ".gnupg", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".bash_history")
_NOT_PROGRAMS: Final = ("/etc", "/proc", "/sys", "/dev", "/boot", "/run/secrets", "/var/lib", "/var/log", "/var/spool")
_NOT_PROGRAMS_BUT: Final = ("/var/lib/snapd/snap", "/var/lib/flatpak/exports")
_PASSWORDS: Final = "/etc/shadow"

_HIDDEN_BUT: Final = frozenset(
    {".gitignore", ".gitkeep", ".keep", ".DS_Store", ".lock", ".bin", ".tools", ".links", ".package-lock.json"}
)
_PRIVATE: Final = (
    r"(?i)credentials?(\..*)?|auth\.(json|toml)|id_(rsa|dsa|ecdsa|ed25519).*|.+\.(kdbx|key|p12|pfx|pem|ovpn)|secrets?(\..*)?"
    r"|tokens?(\..*)?|(pip|npmrc|pypirc|netrc|condarc)(\.conf|\.ini)?|settings\.xml|.+_history|shadow|passwd"
)
"""Names of files that hold secrets, unless they are programs."""

_ENTRIES_AT_MOST: Final = 20_000


class NotShown(Exception):
    """No command may see a place; the text says why, for people."""


class NotThere(NotShown):
    """There is no such place."""


class HiddenPlaces(NamedTuple):
    """What no command may see, besides what says so itself."""

    home: str
    """Of the person."""
    own: tuple[str, ...]
    """Directories of Strongroom's own."""
    root: str = ""
    """Of the session; "" where there is none yet. What lies in it, a command could change."""


class RealPath(NamedTuple):
    """Where a path leads."""

    path: str
    links: tuple[str, ...]
    """The links on the way, each under the path that it really has."""


def follow(path: str, plain: set[str] | None = None) -> RealPath:
    """Return where an absolute path leads.

    Paths without a link on the way are noted in `plain`, and not looked at again.

    Raises:
        NotShown: nowhere.
    """
    plain = set() if plain is None else plain
    done, links = "", []
    head, _, name = path.rpartition("/")
    if head in plain and name not in ("", ".", ".."):
        done, path = head, name
    todo = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    while todo:
        part = todo.pop()
        if part == "..":
            done = done.rpartition("/")[0]
            continue
        at = f"{done}/{part}"
        try:
            if at in plain or not stat.S_ISLNK(os.lstat(at).st_mode):
                plain.add(at)
                done = at
                continue
            target = os.readlink(at)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotThere(f"{at} is not there") from error
        except (OSError, ValueError) as error:
            raise NotShown(f"{at[:80]} cannot be followed: {getattr(error, 'strerror', error)}") from error
        links.append(at)
        if len(links) > _LINKS_AT_MOST:
            raise NotShown("its links lead in a circle")
        done = "" if target.startswith("/") else done
        todo += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    return RealPath(done or "/", tuple(links))


def refuse(real: str, kept: HiddenPlaces) -> None:
    """Refuse a directory that no command may see any part of.

    Raises:
        NotShown: it is one.
    """
    if kept.root and within(real, kept.root):
        raise NotShown("it lies in the root, where a command could change it")
    for each in (kept.home, _PASSWORDS):
        if within(each, real):
            raise NotShown(f"it is a home, or holds one: it would show {each}")
    if any(within(real, each) or within(each, real) for each in kept.own):
        raise NotShown("it would show what Strongroom keeps")
    if settings := next((part for part in real.split("/") if part in _SETTINGS), ""):
        raise NotShown(f"it lies in {settings}, where settings and credentials are kept")
    for each in _NOT_PROGRAMS:
        if within(real, each) and not any(within(real, other) for other in _NOT_PROGRAMS_BUT):
            raise NotShown(f"{each} holds settings and data, and no programs")
    if os.path.dirname(real) in ("/home", "/") and real != "/opt":
        raise NotShown("it is the home of somebody, or a directory of the system")
    if sign := next((sign for sign in _HOME_SIGNS if os.path.lexists(f"{real}/{sign}")), ""):
        raise NotShown(f"it is a home, as it holds {sign}")


def parts_of(real: str, kept: HiddenPlaces) -> tuple[str, ...]:
    """Return what is shown of a directory with programs: of its install prefix the parts, else the directory alone.

    Raises:
        NotShown: nothing of it may be.
    """
    refuse(real, kept)
    above, packages, _ = f"{real}/".partition(_PACKAGES)
    if packages:
        refuse(above + packages.rstrip("/"), kept)
        return (above + packages.rstrip("/"),)
    prefix, name = os.path.split(real)
    if name in _PROGRAM_DIRECTORIES and _is_prefix(prefix, kept):
        return tuple(prefix_parts(prefix))
    if name not in _PROGRAM_DIRECTORIES and os.path.dirname(real) == kept.home and name.startswith("."):
        raise NotShown("a hidden directory of a home holds settings")
    refuse_secrets(real)
    return (real,)


def prefix_parts(prefix: str) -> Iterator[str]:
    """Yield the parts of an install prefix that are there, but for those that hold settings of a person's.

    Raises:
        NotShown: it cannot be read.
    """
    names = {entry.name for entry in names_in(prefix)}

    def is_there(part: str) -> bool:
        return part.split("/", 1)[0] in names and os.path.exists(f"{prefix}/{part}")

    signed = (part for sign, parts in _PARTS_BY_SIGN if is_there(sign) for part in parts)
    for part in filter(is_there, dict.fromkeys((*_PARTS, *signed))):
        path = f"{prefix}/{part}"
        if not (part == "share" and any(map(os.path.lexists, _settings_in(path)))):
            yield path


def python_parts(prefix: str) -> Iterator[str]:
    """Yield the parts of a Python's install prefix: it may be the same as that of a person's data, as ~/.local is."""
    return (each for each in prefix_parts(prefix) if os.path.basename(each) in ("bin", "lib", "lib64", "include"))


def _settings_in(directory: str) -> Iterator[str]:
    return (f"{directory}/{each}" for each in (*_SETTINGS, *_HOME_SIGNS))


def _is_prefix(prefix: str, kept: HiddenPlaces) -> bool:
    """Say whether a directory is an install prefix, and may be shown as one."""
    try:
        refuse(prefix, kept)
        names = {entry.name for entry in names_in(prefix)}
    except NotShown:
        return False
    return os.path.basename(prefix) != ".local" and bool(names & _EVIDENCE) and not names & _SOURCES


def refuse_secrets(directory: str) -> None:
    """Refuse a directory that would be shown whole where names in it say that it holds secrets.

    Raises:
        NotShown: it does, or nobody can say.
    """
    for entry in names_in(directory):
        hidden = entry.name.startswith(".") and entry.name not in _HIDDEN_BUT
        if hidden or (re.fullmatch(_PRIVATE, entry.name) and not _is_program(entry)):
            raise NotShown(f"it would show {entry.name} in it, which may hold settings or credentials")


def names_in(directory: str) -> list[os.DirEntry[str]]:
    """Return what lies in a directory.

    Raises:
        NotShown: it is none that can be read, or holds too much.
    """
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) > _ENTRIES_AT_MOST:
                    raise NotShown(f"more than {_ENTRIES_AT_MOST} names lie in it")
    except (OSError, ValueError) as error:
        raise NotShown(f"it cannot be read: {getattr(error, 'strerror', error)}") from error
    return found


def _is_program(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file() and bool(entry.stat().st_mode & 0o111)
    except OSError:
        return False


def refuse_no_python(prefix: str, kept: HiddenPlaces) -> None:
    """Refuse what is not the install prefix of a Python, as one says that may lie: a file or a link in the root.

    Raises:
        NotShown: it is none, belongs to somebody else, or may not be shown.
    """
    refuse(prefix, kept)
    owner = os.stat(prefix).st_uid if os.path.isdir(prefix) else -1
    if owner not in (os.geteuid(), 0):
        raise NotShown(f"{prefix} is not there" if owner < 0 else f"{prefix} belongs to another user")
    if not any(_is_python(entry) for entry in names_in(f"{prefix}/bin")):
        raise NotShown(f"{prefix}/bin holds no Python")
    if not any(Path(prefix).glob("lib*/python3.[0-9]*/os.py")):
        raise NotShown(f"{prefix} holds no library of Python")


def _is_python(entry: os.DirEntry[str]) -> bool:
    return re.fullmatch(r"python3(\.\d+)?t?", entry.name) is not None and _is_program(entry)
