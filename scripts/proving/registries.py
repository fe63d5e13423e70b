"""Source distributions and tarballs, fetched by name with the clients of this machine, as they are set up here."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from scripts.proving.catalog import Origin, Project

_PATIENCE_S: Final = 180


_IGNORED: Final = "\n.venv/\n*.egg-info/\n_version.py\n__pycache__/\nnode_modules/\ntarget/\n"
"""What repositories of such projects ignore; their archives do not say so, or hold it."""


class NotReached(Exception):
    """The registry does not give it, or there is no client for it. Its text is the last line that was said."""


def lay_out(project: Project, place: Path) -> None:
    """Put a project's files into an empty directory.

    Raises:
        NotReached: they cannot be had.
    """
    _FETCH[project.origin](project, place)
    if project.origin == "made":
        return
    for made in place.rglob("*.egg-info"):
        shutil.rmtree(made)
    with (place / ".gitignore").open("a") as file:
        file.write(_IGNORED)


def _make(project: Project, place: Path) -> None:
    for name, text in project.files.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _pypi(project: Project, place: Path) -> None:
    words = ("--no-deps", "--no-binary", project.name, "--dest", str(place), project.name)
    _run([sys.executable, "-m", "pip", "download", "--quiet", *words], place)
    _unpack(next(place.glob("*.tar.gz"), None), place)


def _npm(project: Project, place: Path) -> None:
    _run(["npm", "pack", "--silent", project.name], place)
    _unpack(next(place.glob("*.tgz"), None), place)


def _crates(project: Project, place: Path) -> None:
    """Fetch a crate as the dependency of an empty one; or see that those of what is made can be had, and lock them."""
    if project.files:
        _make(project, place)
        _run(["cargo", "generate-lockfile", "--quiet"], place)
        return
    user = place / ".user"
    _run(["cargo", "init", "--quiet", "--vcs", "none", "--name", "user", str(user)], place)
    with (user / "Cargo.toml").open("a") as manifest:
        manifest.write(f'{project.name} = "*"\n')  # its last table is that of dependencies
    words = ("--quiet", "--versioned-dirs", "--respect-source-config")
    _run(["cargo", "vendor", *words, str(place / ".all")], user)
    source = next((place / ".all").glob(f"{project.name}-*"))
    shutil.rmtree(user)
    for each in source.iterdir():
        each.rename(place / each.name)
    shutil.rmtree(place / ".all")
    (place / ".cargo-checksum.json").unlink(missing_ok=True)


def _go(project: Project, place: Path) -> None:
    """Fetch a module; or see that those of what is made can be had, and write their sums down."""
    if project.files:
        _make(project, place)
        _run(["go", "mod", "tidy"], place)
        return
    told = json.loads(_run(["go", "mod", "download", "-json", f"{project.package}@latest"], place))
    shutil.copytree(told["Dir"], place, dirs_exist_ok=True, copy_function=shutil.copyfile)
    for each in (place, *place.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)


_FETCH: Final[Mapping[Origin, Callable[[Project, Path], None]]] = MappingProxyType(
    {"made": _make, "pypi": _pypi, "npm": _npm, "crates": _crates, "go": _go}
)


def _unpack(archive: Path | None, place: Path) -> None:
    """Unpack the one directory of an archive into the place where it lies."""
    if archive is None:
        raise NotReached("there is no source distribution")
    with tarfile.open(archive) as packed:
        packed.extractall(place, filter="data")
    archive.unlink()
    (top,) = place.iterdir()
    for each in top.iterdir():
        each.rename(place / each.name)
    top.rmdir()


def _run(command: Sequence[str], place: Path) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=place,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotReached(str(error)) from error
    if done.returncode:
        raise NotReached((done.stderr.strip() or done.stdout.strip() or "it failed").splitlines()[-1])
    return done.stdout
