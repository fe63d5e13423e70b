"""Profiles: named sets of tools with a root, and what needs approval.

Rule: a tool that a profile lacks does not exist in its sessions; it is in no catalog and no worker is started
for it. What a root may not be is said by `own_places`.
Clients resolve roots here and need no tools: these are imported when they are asked for.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from supervisor.categories.registries import EVERY_REGISTRY, PREFIX, RegistriesConfig, Registry, registries_named
from supervisor.categories.row import ProfileTraits, Surroundings
from supervisor.config.config_keys import VAULT, ProfileConfig, View
from supervisor.config.own_places import refuse_own_places
from supervisor.config.repositories import NO_NAMES, Names, Repositories, environment, real_directory
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError
from supervisor.rules.rule import Narrowing
from workers.wire.messages import Context


@dataclass(frozen=True)
class Profile:
    """One profile, ready to open sessions on. `root` is absolute and without links once resolved."""

    name: str
    root: str
    own_tools: tuple[str, ...] | None = None
    """None: those that are made for a profile of this name."""
    own_ask: tuple[str, ...] = ()
    check: str = ""  # the command that its turns must pass where they change something
    writable: bool = True
    trusted: bool = True
    """Whether its files count as the person's own; else as foreign text."""
    instructions: bool = True
    """Whether AGENTS.md and CLAUDE.md are told."""
    by_name: bool = False
    """Its root is repos_path/GROUP/TECHNOLOGY (`supervisor.config.repositories`), and no path."""
    group: str | None = None
    technology: str | None = None
    environment: str | None = None
    source_tree: bool = False
    """Its root is the top of a client's tree; no command's text is asked about, and changes go by the mode alone."""
    view: View = "private"
    """What commands see besides the root."""
    network: tuple[str, ...] = ()
    """Hosts with their ports that a person may let a command reach, each "host:port"."""
    surroundings: Surroundings | None = None
    """What its commands have of the person who opened the session; None until it was looked for."""
    registries: tuple[Registry, ...] = ()
    """Those among them that are registries of packages."""
    unavailable_tools: tuple[tuple[str, str], ...] = ()
    """Tools that cannot work here, each with the reason; they are not among `tools`."""
    copies: bool = False
    """Whether commands are rehearsed in copies of the root, as no sandbox can be made here."""
    narrowing: Narrowing | None = None
    """What the root's own file has taken away from it, or was not to."""
    complete: "Profile | None" = None
    """The profile with the unavailable tools, where there are any."""

    @cached_property
    def tools(self) -> tuple[str, ...]:
        """All that it has."""
        if self.own_tools is not None:
            return self.own_tools
        from workers.catalog import offered_tools

        return tuple(name for name, tool in offered_tools().items() if self.name in tool.profiles)

    @cached_property
    def ask(self) -> tuple[str, ...]:
        """Tools that a person must approve each time: what they would change, and first the text of a command."""
        return self.own_ask if self.own_tools is not None else tuple(filter(self.needs_approval, self.tools))

    def needs_approval(self, tool: str) -> bool:
        """Say whether its text is asked about, whatever `ask` says: for anything can be in it."""
        from workers.catalog import offered_tools

        return not self.source_tree and offered_tools()[tool].runs == "script"

    def without(self, unavailable_tools: Mapping[str, str]) -> "Profile":
        """Return the profile without some of its tools; `unavailable_tools` says why, by name."""
        if not unavailable_tools:
            return self
        tools, ask = (tuple(tool for tool in each if tool not in unavailable_tools) for each in (self.tools, self.ask))
        why = tuple(unavailable_tools.items())
        return replace(self, own_tools=tools, own_ask=ask, unavailable_tools=why, complete=self)

    def with_surroundings(self, surroundings: Surroundings) -> "Profile":
        """Return the profile for sessions whose commands have these of a person."""
        complete = self.complete and replace(self.complete, surroundings=surroundings)
        return replace(self, surroundings=surroundings, complete=complete)

    @property
    def hosts(self) -> tuple[str, ...]:
        """What of its network is no registry of packages."""
        packages = {place for each in self.registries for place in each.places}
        return tuple(place for place in self.network if place not in packages)

    @property
    def traits(self) -> ProfileTraits:
        """What the inputs of its workers depend on."""
        machine = self.view == "machine" and not self.network and not self.copies
        localhost = self.source_tree and not machine and not self.copies
        return ProfileTraits(self.network, self.surroundings, self.registries, self.copies, machine, localhost)

    def steps(self, configured: int) -> int:
        """Return how many model requests a turn may take: no more than is configured."""
        return configured if self.narrowing is None else self.narrowing.steps(configured)

    def context(self) -> Context:
        """Return what the agent and every tool are told about where they are."""
        names = {"group": self.group, "technology": self.technology, "environment": self.environment}
        return msgspec.convert({"working_directory": self.root, **names}, Context)


_HIDES_NOTHING: Final = "would show, on the root /, what commands are not shown: look with a command"

_BUILT_IN: Final = (
    Profile(VAULT, VAULT),
    Profile("project", ".", network=EVERY_REGISTRY),
    Profile("code", ".", source_tree=True, network=EVERY_REGISTRY),
    Profile("operator", ".", view="machine"),
    Profile("librarian", "{repos_path}/{group}/{technology}", writable=False, trusted=False, by_name=True),
)


def profiles(settings: Settings) -> Mapping[str, Profile]:
    """Return all profiles: the built-in ones, then the configured.

    Raises:
        ConfigError: a configured profile names a tool that does not exist, or lacks what a new one needs.
    """
    config, file = settings.config, settings.config_file
    found = {profile.name: profile for profile in _BUILT_IN}
    for name, wanted in config.profiles.items():
        found[name] = _configured(file, name, found.get(name), wanted)
    found = {name: _networked(file, profile, config.registries) for name, profile in found.items()}
    return MappingProxyType(found)


def check_profiles(settings: Settings) -> None:
    """Make sure that a configuration that was read is one with which sessions can be opened.

    Raises:
        ConfigError: it is not.
    """
    if settings.config.profile not in (None, *profiles(settings)):
        raise ConfigError(f"{settings.config_file}: there is no profile {settings.config.profile!r}.")


def profile_of(settings: Settings, name: str | None) -> Profile:
    """Return the profile called `name` (default: the configured one, or `vault`), not yet on a root.

    Raises:
        ConfigError: there is no such profile.
    """
    known = profiles(settings)
    name = name or settings.config.profile or VAULT
    if name not in known:
        raise ConfigError(f"No profile {name!r}. Choose one of: {', '.join(known)}.")
    return known[name]


def resolve(
    settings: Settings, name: str | None, root: str | None, cwd: str | None = None, names: Names = NO_NAMES
) -> Profile:
    """Return the profile called `name` (default: the configured one, or `vault`) on `root` (default: its own).

    The profile `vault` is on the directory of that name in `cwd`, where there is one, else on its own root.
    A profile's own root that is relative is beneath `cwd`; where it does not exist there, it is `cwd` itself. Without
    `cwd` it is beneath the current directory, and must exist. A person may name a link as the root; a link that merely
    lies in a directory, as in a cloned repository, does not lead the agent out of it.

    A profile whose root goes by names takes them from `names`; where there is neither group nor technology, from the
    repository that `cwd` lies in. It takes no `root`, and the others take no names.

    Raises:
        ConfigError: no such profile, directory or name, or a root that holds what it must not.
    """
    profile = profile_of(settings, name)
    name = profile.name
    if profile.by_name:
        profile = _by_name(settings, profile, root, cwd, names)
        real = Path(profile.root)
    elif names.given:
        raise ConfigError(
            f"The profile {name!r} works on a root, not on a group and a technology. Leave out --group, --technology "
            "and --environment, or use them with --profile librarian."
        )
    else:
        real = _own_root(profile, cwd) if root is None else _real_directory(root, name)
    if profile.traits.machine and str(real) == "/":
        return _whole_machine(profile)
    refuse_own_places(settings, str(real), writable=profile.writable)
    return replace(profile, root=str(real))


def _whole_machine(profile: Profile) -> Profile:
    """Return a profile on the whole machine: commands alone, which see what is not hidden, and change nothing."""
    from workers.catalog import offered_tools, supervised_tools

    hiding = [*supervised_tools(), *(name for name, tool in offered_tools().items() if tool.runs == "script")]
    others = {tool: _HIDES_NOTHING for tool in profile.tools if tool not in hiding}
    return replace(profile, root="/", writable=False).without(others)


def repositories(settings: Settings) -> Repositories:
    """Return where the repositories of the profile `librarian` are."""
    return Repositories(settings.config.librarian.repos_path, settings.config_file)


def _by_name(settings: Settings, profile: Profile, root: str | None, cwd: str | None, names: Names) -> Profile:
    """Return a profile on the one repository that `names`, or else `cwd`, say."""
    if root is not None:
        raise ConfigError(
            f"The profile {profile.name!r} takes no root such as {root!r}: it works on repos_path/GROUP/TECHNOLOGY. "
            "Use --group and --technology, or another profile with --root."
        )
    known = repositories(settings)
    group, technology = names.group, names.technology
    if group is None and technology is None:
        group, technology = known.repository_at(cwd or ".") or (None, None)
    if group is None or technology is None:
        raise known.missing_names(profile.name, names)
    found = known.find(group, technology)
    configured = settings.config.librarian.environment
    told = environment(configured if names.environment is None else names.environment)
    return replace(profile, root=str(found.root), group=found.group, technology=found.technology, environment=told)


def _own_root(profile: Profile, cwd: str | None) -> Path:
    """Return a profile's own root, for a client in `cwd`."""
    base = os.path.realpath(cwd or ".")
    if profile.name == VAULT and cwd is not None and os.path.isdir(os.path.join(base, VAULT)):
        profile = replace(profile, root=VAULT)  # the one that a person stands at comes before the configured one
    if profile.root.startswith(("/", "~")):
        return _real_directory(profile.root, profile.name)
    if profile.source_tree and profile.root == ".":
        from supervisor.config.source_tree import tree_top

        return _real_directory(tree_top(base) or base, profile.name)
    wanted = os.path.normpath(os.path.join(base, profile.root))
    if cwd is not None and not os.path.isdir(wanted):
        wanted = base
    real = _real_directory(wanted if cwd is not None else profile.root, profile.name)
    if Path(wanted).is_relative_to(base) and not real.is_relative_to(base):
        raise ConfigError(
            f"{wanted!r}, the root of profile {profile.name!r} here, is a link that leads to {str(real)!r}. "
            "Name that with --root if you mean it."
        )
    return real


def _real_directory(wanted: str, profile: str) -> Path:
    real, problem = real_directory(Path(wanted))
    if problem:
        raise ConfigError(f"The root {wanted!r} of profile {profile!r} {problem}. Name another with --root.")
    return real


def _configured(file: Path, name: str, base: Profile | None, wanted: ProfileConfig) -> Profile:
    if base is None:
        if wanted.root is None or wanted.tools is None:
            raise ConfigError(f"{file}: the new profile {name!r} needs both `root` and `tools`.")
        base = Profile(name, wanted.root, wanted.tools)
    if base.by_name and (wanted.root is not None or wanted.writable):
        raise ConfigError(
            f"{file}: the profile {name!r} is read-only, and its root is repos_path/GROUP/TECHNOLOGY. Set `repos_path` "
            "of [librarian], or make a profile of another name."
        )
    from workers.catalog import offered_tools

    given = {key: value for key, value in msgspec.structs.asdict(wanted).items() if value is not None}
    tools, ask = given.pop("tools", base.tools), given.pop("ask", base.ask)
    profile, known = replace(base, **given), offered_tools()
    for tool in (*tools, *ask):
        if tool not in known:
            raise ConfigError(f"{file}: profile {name!r}: no tool {tool!r}. Choose from: {', '.join(known)}.")
    usable = tuple(tool for tool in tools if profile.writable or not known[tool].effect)
    commands = [name for name, tool in known.items() if tool.runs]
    if not any(tool in usable for tool in commands):
        if wanted.network:
            raise ConfigError(
                f"{file}: `network` of profile {name!r} is for commands, and it has none. Give it one of "
                f"{', '.join(commands)}, or leave `network` out; it does not concern `fetch_url`, which has [web]."
            )
        profile = replace(profile, network=())
    ask = tuple(dict.fromkeys((*ask, *filter(profile.needs_approval, usable))))
    writable = any(known[tool].effect for tool in usable)
    return replace(profile, own_tools=usable, own_ask=ask, writable=writable)


def _networked(file: Path, profile: Profile, mirrors: RegistriesConfig) -> Profile:
    """Return a profile with the hosts and ports that it names, in normal form, those of its registries among them.

    Raises:
        ConfigError: one is none.
    """
    if not profile.network:
        return profile
    named = [each for each in profile.network if not each.startswith(PREFIX)]
    try:
        registries = registries_named(profile.network, mirrors)
        places = _places(named) if named else []
    except ValueError as error:
        raise ConfigError(f"{file}: `network` of profile {profile.name!r}: {error}") from error
    places += [place for each in registries for place in each.places]
    return replace(profile, network=tuple(dict.fromkeys(places)), registries=registries)


def _places(named: list[str]) -> list[str]:
    from supervisor.categories.web import host_port

    return [str(host_port(each)) for each in named]
