"""Layers over the caches of package managers, for one command: what is shown of them, and what it writes above.

Rule: below is what approved installs have left, read-only; above is this command's own, and goes with it.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from workers.confine import mounts
from workers.confine.mounts import NO_DEVICES, NO_SUID
from workers.shell.cache_table import CACHES, SHOWN
from workers.shell.cached_files import filled
from workers.shell.shell_inputs import HOME
from workers.tree.root import DIRECTORY

_OPTIONS: Final = "userxattr,lowerdir={lower},upperdir={above}/upper,workdir={above}/work"


class CacheLayers:
    """Those of one command.

    Args:
        caches: the registry of each, and its directory.
        scratch: an empty place on a file system of limited size, beside other layers.
    """

    def __init__(self, caches: Sequence[tuple[str, str]], scratch: str) -> None:
        self._places = {name: f"{scratch}/cache-{name}" for name, _ in caches if name in CACHES}
        self._uppers: dict[str, int] = {}
        for name, place in self._places.items():
            for directory in (place, f"{place}/upper", f"{place}/work"):
                os.mkdir(directory, 0o700)
            self._uppers[name] = os.open(f"{place}/upper", DIRECTORY)

    def mount(self) -> None:
        """Show them in the HOME of the command, in its own mount namespace; one that cannot be is not shown."""
        for name, above in self._places.items():
            at = f"{HOME}/{CACHES[name].place}"
            os.makedirs(at, 0o700, exist_ok=True)
            with suppress(OSError):
                options = _OPTIONS.format(lower=f"{SHOWN}/{name}", above=above)
                mounts.new("overlay", at, NO_SUID | NO_DEVICES, options)

    def filled(self) -> Iterator[tuple[str, bytes]]:
        """Yield what the command has left that may be kept: paths, the registry's name first, and contents."""
        for name, upper in self._uppers.items():
            yield from ((f"{name}/{path}", content) for path, content in filled(name, upper))

    def close(self) -> None:
        """Let go of them."""
        while self._uppers:
            os.close(self._uppers.popitem()[1])
