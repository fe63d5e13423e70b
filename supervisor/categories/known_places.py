"""Places where installers and version managers put programs.

Rule: each is looked for where its own variable says, else where it usually is; of several versions the newest counts.
"""

import glob
import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from supervisor.categories.stand_ins import by_version

_KNOWN: Final = (
    *("$CARGO_HOME/bin", "$PYENV_ROOT/shims", "$RBENV_ROOT/shims", "$NODENV_ROOT/shims", "$GOENV_ROOT/shims"),
    *("$ASDF_DATA_DIR/shims", "$MISE_DATA_DIR/shims", "$VOLTA_HOME/bin", "$NVM_DIR/versions/node/*/bin"),
    *("$FNM_DIR/aliases/default/bin", "$FNM_DIR/node-versions/*/installation/bin", "~/.fnm/aliases/default/bin"),
    *("$BUN_INSTALL/bin", "$DENO_INSTALL/bin", "$PNPM_HOME", "$SDKMAN_DIR/candidates/*/current/bin", "$GOPATH/bin"),
    *("/usr/local/go/bin", "~/sdk/go*/bin", "~/.local/bin", "$UV_PYTHON_INSTALL_DIR/cpython-*/bin"),
    *("~/miniforge3/bin", "~/mambaforge/bin", "~/miniconda3/bin", "~/anaconda3/bin", "~/micromamba/bin"),
    *("~/.ghcup/bin", "~/.cabal/bin", "~/.dotnet/tools", "~/.juliaup/bin"),
    *("/home/linuxbrew/.linuxbrew/bin", "/home/linuxbrew/.linuxbrew/sbin", "~/.linuxbrew/bin", "/opt/*/bin"),
)
"""Where installers put programs; of what a pattern matches, the newest version counts."""
_ALL_OF: Final = ("$SDKMAN_DIR/candidates/*/current/bin", "/opt/*/bin")
"""Patterns of which each match is another program."""

_USUAL: Final[Mapping[str, str]] = MappingProxyType(
    dict(
        pair.split("=")
        for pair in (
            *("$CARGO_HOME=~/.cargo", "$PYENV_ROOT=~/.pyenv", "$RBENV_ROOT=~/.rbenv", "$NODENV_ROOT=~/.nodenv"),
            *("$GOENV_ROOT=~/.goenv", "$ASDF_DATA_DIR=~/.asdf", "$MISE_DATA_DIR=~/.local/share/mise", "$GOPATH=~/go"),
            *("$VOLTA_HOME=~/.volta", "$NVM_DIR=~/.nvm", "$FNM_DIR=~/.local/share/fnm", "$BUN_INSTALL=~/.bun"),
            *("$DENO_INSTALL=~/.deno", "$PNPM_HOME=~/.local/share/pnpm", "$SDKMAN_DIR=~/.sdkman"),
            "$UV_PYTHON_INSTALL_DIR=~/.local/share/uv/python",
        )
    )
)
"""Where these are, unless the person's variable of that name says otherwise."""


def known_places(home: str, person: Mapping[str, str]) -> Iterator[str]:
    """Yield those that are there, for a `person` of those variables."""
    for pattern in _KNOWN:
        name, _, rest = pattern.partition("/")
        named = person.get(name[1:], "").split(":")[0]
        place = (
            glob.escape(named) if os.path.isabs(named) else _USUAL.get(name, name).replace("~", glob.escape(home), 1)
        )
        found = sorted(filter(os.path.isdir, glob.iglob(f"{place}/{rest}".rstrip("/"))), key=by_version)
        yield from found if pattern in _ALL_OF else found[-1:]
