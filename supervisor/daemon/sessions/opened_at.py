"""The place a session was opened at, by which each profile finds its root."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from supervisor.acp import extensions
from supervisor.config.profiles import Profile, profiles, resolve
from supervisor.config.repositories import NO_NAMES, Names
from supervisor.config.settings import Settings
from supervisor.config.source_tree import profile_here
from supervisor.errors import ConfigError
from supervisor.session.earlier_session import EarlierSession

_BY_PLACE: Final = ("acp", "console", "prompt")


@dataclass(frozen=True)
class OpenedAt:
    """A client's directory, and what it named besides."""

    cwd: str
    root: str | None
    """The root, where it was named and not left to the profile."""
    names: Names = NO_NAMES
    """For a profile whose root is found by names."""
    person: tuple[tuple[str, str], ...] = ()
    """What the client told of the person's environment; where it told nothing, the daemon's own counts."""
    keys: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The keys that it told (`supervisor.agent.models.key_choice`)."""

    def default_profile(self, settings: Settings, origin: str) -> str | None:
        """Return the name of the profile where none is named: for people that of the place, else the configured one."""
        if origin not in _BY_PLACE or self.names.given:
            return None
        return profile_here(settings, self.cwd, self.root)

    def profile(self, settings: Settings, name: str | None) -> Profile:
        """Return a profile on its root.

        Raises:
            ConfigError: no such profile or root.
        """
        return resolve(settings, name, self.root, self.cwd, self.names)

    def other_profile(self, settings: Settings, name: str) -> Profile:
        """Return a profile for a session that was opened with another: what was named for one is not for the other.

        A profile that goes by names looks for them in a root that was named.

        Raises:
            ConfigError: no such profile or root.
        """
        known = profiles(settings).get(name)
        if known is None:
            return self.profile(settings, name)
        by_name = OpenedAt(self.root or self.cwd, None, self.names)
        return (by_name if known.by_name else OpenedAt(self.cwd, self.root)).profile(settings, name)

    def last_profile(self, settings: Settings, earlier: EarlierSession) -> Profile:
        """Return the profile that an earlier session had last, on the root that it had.

        Raises:
            ConfigError: no such profile, or its root is another one now.
        """
        using = earlier.settings[-1]
        profile, root = self.other_profile(settings, using.profile), using.context.working_directory
        if profile.root != root:
            raise ConfigError(
                f"The root {root!r} of session {earlier.id} now leads to {profile.root!r}. Open a new session "
                "there, if that is what you want."
            )
        return profile


def from_options(
    cwd: str, options: extensions.SessionOptions, keys: Mapping[str, str] = MappingProxyType({})
) -> OpenedAt:
    """Return the place that a client asks for, who told these `keys`."""
    names = Names(options.group, options.technology, options.environment)
    return OpenedAt(cwd, options.root, names, person_of(options), keys)


def person_of(options: extensions.SessionOptions) -> tuple[tuple[str, str], ...]:
    """Return what a client tells of the person's environment."""
    return tuple(sorted((options.variables or {}).items()))


def from_journal(earlier: EarlierSession, settings: Settings) -> OpenedAt:
    """Return where a session was opened: with a root of its own, where the profile would not have found it.

    What holds for profiles with names and for those without is each as it was last used.
    """
    cwd, root, names = earlier.opened.cwd or earlier.opened.context.working_directory, None, Names()
    for fact in {each.context.group is not None: each for each in earlier.settings}.values():
        at = fact.context
        if at.group is not None:
            names = Names(at.group, at.technology, at.environment or "")
            continue
        root = at.working_directory
        with suppress(ConfigError):
            root = None if OpenedAt(cwd, None).profile(settings, fact.profile).root == root else root
    return OpenedAt(cwd, root, names)
