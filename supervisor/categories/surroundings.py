"""Surroundings of commands: the programs, the language and the name for git of who opened the session.

Rule: it is found once, as a session opens, and is the same value for whoever has the same, so that sessions share
workers. Nothing of it comes from the root but a choice: which of the person's Pythons its environments stand on, if
that is one.
"""

import glob
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from supervisor.categories.command_environment import absolute_variables, check_variables, language_of
from supervisor.categories.git_identity import git_identity
from supervisor.categories.program_links import base_named_by
from supervisor.categories.row import Surroundings
from supervisor.categories.shown_places import HiddenPlaces, NotShown, follow, refuse
from supervisor.categories.stand_ins import rustup_home
from supervisor.categories.toolchains import Toolchains, find_toolchains, with_python
from workers.shell.shell_inputs import CERTIFICATES, within

_ENVIRONMENTS: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
_PREFIXES: Final = ("JAVA_HOME", "GOROOT", "DOTNET_ROOT", *_ENVIRONMENTS)
"""Variables that name an install prefix, for the programs in it."""


_OF_RUSTUP: Final = ("settings.toml", "toolchains", "update-hashes")


class Survey(NamedTuple):
    """Surroundings, and what is told to the person alone."""

    surroundings: Surroundings
    refused: tuple[tuple[str, str], ...]
    """Places, each with why it is not shown."""


def survey(
    toolchains: tuple[str, ...],
    env: Mapping[str, str],
    kept: HiddenPlaces,
    person: Mapping[str, str],
    where: str,
    tell: Callable[[str, Toolchains], None] = lambda _place, _found: None,
) -> Survey:
    """Find out what commands in a root have of a person.

    Args:
        toolchains: those of `[shell]`.
        env: that of `[shell]`.
        kept: what no command may see, and the root.
        person: variables of the person's (`OF_THE_PERSON`).
        where: the section, for messages.
        tell: as for `find_toolchains`.

    Raises:
        ConfigError: a variable of `env` may not be given in this root.
    """
    check_variables(env, where, kept.root)
    found = find_toolchains(toolchains, kept, person, tell)
    refused = dict(found.refused)
    found, prefixes = _with_prefixes(found, kept, person, refused)
    found, rustup = _with_rustup(found, kept, person)
    found, problem = _with_venvs(found, kept, refused)
    found, packages = _with_user_packages(found, kept)
    variables = language_of(person) | prefixes | rustup | packages | absolute_variables(env, kept.root)
    identity = git_identity(kept.home, person.get("XDG_CONFIG_HOME", ""))
    files = tuple(each for each in certificates_of(person) if not (kept.root and within(each, kept.root)))
    surroundings = Surroundings(found.shown, found.path, found.own, tuple(variables.items()), identity, files, problem)
    return Survey(surroundings, tuple(refused.items()))


def _with_venvs(found: Toolchains, kept: HiddenPlaces, refused: dict[str, str]) -> tuple[Toolchains, str]:
    """Return toolchains with the Pythons that the root's environments stand on, and what is wrong with these."""
    problem = ""
    for name in dict.fromkeys((".venv", "venv", *map(os.path.dirname, found.own))):
        place = os.path.join(kept.root, name)
        if not kept.root or not os.path.lexists(f"{place}/pyvenv.cfg"):
            continue
        try:
            for programs in _bases(place, kept):
                found = with_python(found, kept, programs)
        except (NotShown, OSError, ValueError) as error:
            refused[place] = f"{error}. Make it anew: python3 -m venv --clear {name}"
            problem = (
                f"{name} has no Python that commands can see: what it was made with is gone or elsewhere. Make it "
                f"anew (python3 -m venv --clear {name}); `strongroom doctor --root .` says more"
            )
    return found, problem


def _bases(place: str, kept: HiddenPlaces) -> Iterator[str]:
    """Yield where an environment of the root says that its Python is; each must be one.

    Raises:
        NotShown: it lies elsewhere.
    """
    if not within(follow(place).path, kept.root):
        raise NotShown("it leads out of the root")
    yield from base_named_by(place)
    yield f"{place}/bin/python3" if os.path.lexists(f"{place}/bin/python3") else f"{place}/bin/python"


def _with_prefixes(
    found: Toolchains, kept: HiddenPlaces, person: Mapping[str, str], refused: dict[str, str]
) -> tuple[Toolchains, dict[str, str]]:
    """Return toolchains with what the person's variables name, and those variables that commands can see the place of.

    An environment outside of the root is not theirs where the root has its own: who installs into it would change it.
    """
    variables = {}
    for name in _PREFIXES:
        place = os.path.normpath(person.get(name) or "/")
        if place == "/" or (name in _ENVIRONMENTS and os.path.lexists(f"{kept.root}/.venv")):
            continue
        one = find_toolchains(("path",), kept, {"PATH": f"{place}/bin"})
        refused |= {f"{name}={place}"[:4096]: why for _, why in one.refused}
        if one.path or one.own:
            own = found.own + (one.own if name in _ENVIRONMENTS else ())
            found = found._replace(shown=tuple(dict.fromkeys(found.shown + one.shown)), own=tuple(dict.fromkeys(own)))
            variables[name] = place
    return found, variables


def _with_rustup(found: Toolchains, kept: HiddenPlaces, person: Mapping[str, str]) -> tuple[Toolchains, dict[str, str]]:
    """Return toolchains with all that rustup has installed, among which its stand-ins choose (`cargo +nightly`)."""
    manager = next((os.path.dirname(each) for each in found.path if os.path.exists(f"{each}/rustup")), "")
    home = rustup_home(Path(manager), kept.home, person) if manager else None
    if home is None:
        return found, {}
    try:
        real = follow(str(home)).path
        refuse(real, kept)
    except NotShown:
        return found, {}
    parts = [each for each in (f"{real}/{name}" for name in _OF_RUSTUP) if os.path.exists(each)]
    return found._replace(shown=tuple(dict.fromkeys((*found.shown, *parts)))), {
        "RUSTUP_HOME": real,
        **{name: person[name] for name in ("RUSTUP_TOOLCHAIN",) if name in person},
    }


def _with_user_packages(found: Toolchains, kept: HiddenPlaces) -> tuple[Toolchains, dict[str, str]]:
    """Return toolchains with what `pip install --user` has installed, where its programs are found."""
    base = f"{kept.home}/.local"
    packages = sorted(glob.glob(f"{glob.escape(base)}/lib/python3.*/site-packages"))
    packages = [each for each in packages if os.path.realpath(each) == each]
    if f"{base}/bin" not in found.path or not packages:
        return found, {}
    return found._replace(shown=(*found.shown, *packages)), {"PYTHONUSERBASE": base}


def certificates_of(person: Mapping[str, str]) -> Iterator[str]:
    """Yield the files of certificates that the person names; of these the certificates alone go in."""
    for each in dict.fromkeys(person.get(name, "") for name in CERTIFICATES):
        if os.path.isabs(each) and os.path.isfile(each) and os.access(each, os.R_OK):
            yield os.path.realpath(each)
