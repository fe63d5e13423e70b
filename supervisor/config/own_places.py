"""Places of our own, which no root may be: what is kept, and the code that runs.

Rule: a root neither holds what Strongroom keeps nor lies in it. One that is written neither holds code that runs, nor a
name on the way to it, nor a directory in which code is looked for.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_OWN_CODE: Final = (
    str(Path(__file__).parent.parent),
    str(Path(__file__).parent.parent.parent / "workers"),
    str(Path(msgspec.__file__).parent.parent),
    str(Path(os.__file__).parent),
    str(Path(sys.executable).parent),
    str(Path(os.path.realpath(sys.executable)).parent),
)
"""Directories all of whose files may be run: Strongroom's, the libraries', Python's."""


def refuse_own_places(settings: Settings, root: str, *, writable: bool) -> None:
    """Make sure that a root, absolute and without links, is none of ours.

    Raises:
        ConfigError: it holds what it must not, or lies in it.
    """
    own = (settings.home, settings.config_file.parent, settings.packs, settings.contents, settings.logs)
    for kept in (*own, settings.socket):
        folder = kept.parent if kept == settings.socket and kept.parent.name == "strongroom" else kept
        real = os.path.realpath(kept)
        within = _lies_in(root, real if folder == kept else os.path.realpath(folder))
        if within or _holds(root, kept, real):
            raise ConfigError(
                f"The root {root!r} {'lies in' if within else 'holds'} {str(kept)!r}, which Strongroom keeps for "
                "itself. Choose another root (--root DIR), or make a vault (`strongroom init`), or set STRONGROOM_HOME "
                "to a directory outside of it."
            )
    for code in _OWN_CODE if writable else ():
        real = os.path.realpath(code)
        if _holds(root, Path(code), real) or _lies_in(root, real):
            raise ConfigError(
                f"The root {root!r} holds code of {code!r}, which Strongroom itself runs: an agent that writes "
                "there is no longer confined. Install Strongroom outside of the root (pipx, or a virtual environment)."
            )
    for place in _searched(settings) if writable else ():
        if holds(root, Path(place)):
            raise ConfigError(
                f"The root {root!r} holds {place!r}, where Strongroom's own Python looks for code: an agent that "
                "writes there is no longer confined. Choose a root beneath or beside it, or take it from where it is "
                "named: sys.path, a .pth file or an editable install of that Python, or LD_LIBRARY_PATH."
            )


def _searched(settings: Settings) -> Iterator[str]:
    """Yield where this interpreter, and who starts it, look for code."""
    yield from (place for place in sys.path if os.path.isabs(place))
    for finder in sys.meta_path:  # those of editable installs have a table of packages
        module = sys.modules.get(getattr(finder, "__module__", ""))
        mapping = getattr(module, "MAPPING", None)
        yield from (str(place) for place in (mapping.values() if isinstance(mapping, dict) else ()))
    yield from (place for place in settings.variable("LD_LIBRARY_PATH").split(":") if os.path.isabs(place))


def holds(root: str, kept: Path) -> bool:
    """Say whether `kept`, or a link on the way to it, lies in `root`, which is absolute and without links."""
    return _holds(root, kept, os.path.realpath(kept))


def _holds(root: str, kept: Path, real: str) -> bool:
    if _lies_in(real, root):
        return True
    return real != os.path.abspath(kept) and any(_lies_in(str(each), root) for each in _names_leading_to(kept))


def _lies_in(path: str, folder: str) -> bool:
    """Say the same of two paths without links, ten times as fast as pathlib does."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _names_leading_to(kept: Path) -> Iterator[Path]:
    """Yield the real place of each name (perhaps a link) on the way to a path."""
    absolute = Path(os.path.abspath(kept))
    for step in (absolute, *absolute.parents[:-1]):
        yield Path(os.path.realpath(step.parent)) / step.name
