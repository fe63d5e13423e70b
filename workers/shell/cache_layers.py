"""Layers over the caches of package managers, for one command: what is shown of them, and what it writes above.

Rule: below is what approved installs have left, read-only; above is this command's own, and goes with it. Where there
is nothing to show, and nothing can be fetched, there is none.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.shell.cache_table import CACHES, SHOWN
from workers.shell.cached_files import CachedFile, filled
from workers.shell.shell_inputs import HOME
from workers.tree.root import DIRECTORY

_OPTIONS: Final = "userxattr,lowerdir={lower},upperdir={above}/upper,workdir={above}/work"


class CacheLayer(NamedTuple):
    """One of them."""

    names: tuple[str, ...]
    """The rows of this place."""
    lower: tuple[str, ...]
    above: str
    upper: int


class CacheLayers:
    """Those of one command.

    Args:
        caches: the name of each, and its directory.
        scratch: an empty place on a file system of limited size, beside other layers.
        online: whether the command has a network.
    """

    def __init__(self, caches: Sequence[tuple[str, str]], scratch: str, *, online: bool = False) -> None:
        names = [name for name, _ in caches if name in CACHES]
        self._layers: dict[str, CacheLayer] = {}
        self.variables: dict[str, str] = {}
        """What package managers are told of them."""
        for place in dict.fromkeys(CACHES[name].place for name in names):
            here = tuple(name for name in names if CACHES[name].place == place)
            shown = (f"{SHOWN}/{name}" for name in here if CACHES[name].checked or not online)
            lower = tuple(each for each in shown if _is_filled(each))
            if not (lower or online):
                continue
            above = f"{scratch}/cache-{here[0]}"
            for directory in (above, f"{above}/upper", f"{above}/work"):
                os.mkdir(directory, 0o700)
            self._layers[place] = CacheLayer(here, lower, above, os.open(f"{above}/upper", DIRECTORY))
            for row in (CACHES[name] for name in here):
                told = (*row.variables, *(row.variables_if_filled if lower else ()))
                self.variables |= {name: text.format(at=f"{HOME}/{place}") for name, text in told}

    def mount(self) -> None:
        """Show them in the HOME of the command, in its own mount namespace; one that cannot be is not shown."""
        for place, layer in self._layers.items():
            at = f"{HOME}/{place}"
            os.makedirs(at, 0o700, exist_ok=True)
            with suppress(OSError):
                if layer.lower:
                    options = _OPTIONS.format(lower=":".join(layer.lower), above=layer.above)
                    mounts.new("overlay", at, NO_SUID | NO_DEVICES, options)
                else:
                    mounts.bind(f"{layer.above}/upper", at, NO_SUID | NO_DEVICES)
            for file, text in (each for name in layer.names for each in CACHES[name].files):
                os.makedirs(os.path.dirname(f"{HOME}/{file}"), 0o700, exist_ok=True)
                with suppress(FileExistsError), open(f"{HOME}/{file}", "x", encoding="utf-8") as opened:
                    opened.write(text.format(at=at))

    def filled(self) -> Iterator[CachedFile]:
        """Yield what the command has left that may be kept; the cache's name comes first in each path."""
        for layer in self._layers.values():
            yield from filled(layer.names, layer.upper, SHOWN)

    def close(self) -> None:
        while self._layers:
            os.close(self._layers.popitem()[1].upper)


def _is_filled(directory: str) -> bool:
    with suppress(OSError), os.scandir(directory) as names:
        return next(names, None) is not None
    return False
