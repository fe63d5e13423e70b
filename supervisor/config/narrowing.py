"""`.strongroom.toml` in a root: what whoever wrote it wants less of there.

Rule: anybody may have written it, so it can only narrow: each key takes away from the profile, or denies, and what
would add something is refused by name. So it counts until the person, who is asked once a content, says that it does
not. It is read where it stands, through no link, and bounded. One that cannot be read, or has a mistake, opens no
session: what it was to take away is not known.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from supervisor.categories.registries import PREFIX
from supervisor.categories.web import host_port
from supervisor.config.config_reader import toml_as
from supervisor.config.profiles import Profile
from supervisor.display.escape import one_line
from supervisor.errors import ConfigError, reason
from supervisor.rules.rule import Narrowing, Rule, problem_of
from supervisor.rules.rule_sentence import sentence
from supervisor.system.safe_files import NO_LINK

NAME: Final = ".strongroom.toml"
_LIMIT: Final = 2**14
"""Bytes of the file."""
_WIDTH: Final = 300


class NarrowingFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of `.strongroom.toml`."""

    tools: tuple[str, ...] | None = None
    """All that is left of the profile's tools."""
    ask: tuple[str, ...] = ()
    """Tools that are asked about besides, each time."""
    network: tuple[str, ...] | None = None
    """All that is left of the profile's hosts and ports."""
    web: tuple[str, ...] | None = None
    """All that is left of the sites that `fetch_url` may reach."""
    max_steps: Annotated[int, Meta(ge=1, le=1000)] | None = None
    rules: tuple[Rule, ...] = ()
    """They can only deny."""


def narrowed(
    profile: Profile, uses: Callable[[str], bool | None] = lambda _digest: None, sites: Sequence[str] = ()
) -> Profile:
    """Return a profile, resolved, as the file of its root leaves it.

    Args:
        profile: resolved.
        uses: says whether a person lets a file with a digest count; None: nobody has said.
        sites: that `fetch_url` may reach.

    Raises:
        ConfigError: there is a file that cannot be read, or has a mistake.
    """
    file = Path(profile.root) / NAME
    data = _content(file)
    if data is None:
        return profile
    digest = hashlib.sha256(data).hexdigest()
    chosen = uses(digest)
    if chosen is False:
        return replace(profile, narrowing=Narrowing(str(file), ("not used, as you decided",), digest, chosen))
    wanted = toml_as(data, file, NarrowingFile)
    for number, rule in enumerate(wanted.rules, 1):
        only = "" if rule.decision == "deny" else f"it can only deny, and not {rule.decision}."
        if problem := only or problem_of(rule):
            raise ConfigError(f"{file}: number {number} of `rules`: {problem}")
    web = None if wanted.web is None else tuple(each for each in wanted.web if _is_among(each, sites))
    narrowing = Narrowing(str(file), (), digest, chosen, wanted.max_steps, wanted.rules, web)
    return _applied(profile, wanted, narrowing)


def _is_among(site: str, sites: Sequence[str]) -> bool:
    """Say whether a site, or all below a name, may be reached by a list."""
    try:
        host_port(f"{site.removeprefix('*.')}:443")
    except ValueError:
        return False
    return site in sites or any(each.startswith("*.") and site.endswith(each[1:]) for each in sites)


def _applied(profile: Profile, wanted: NarrowingFile, narrowing: Narrowing) -> Profile:
    tools, network = profile.tools, profile.network
    told, refused = [], [*_added("tools", wanted.tools or (), tools), *_added("ask", wanted.ask, tools)]
    if wanted.tools is not None:
        tools = tuple(tool for tool in tools if tool in wanted.tools)
        told.append(f"its tools are {', '.join(tools) or 'none'}")
    ask = tuple(dict.fromkeys((*profile.ask, *(tool for tool in wanted.ask if tool in tools))))
    if added := [tool for tool in ask if tool not in profile.ask]:
        told.append(f"it asks before each {', '.join(added)}")
    if wanted.network is not None:
        places = {f"{PREFIX}{each.name}": each.places for each in profile.registries}
        named = [place for each in wanted.network for place in places.get(each, (each,))]
        refused += _added("network", named, network)
        network = tuple(place for place in network if place in named)
        told.append(f"its hosts are {', '.join(network) or 'none'}")
    if narrowing.web is not None:
        refused += _added("web", wanted.web or (), narrowing.web)
        told.append(f"its sites are {', '.join(narrowing.web) or 'none'}")
    if wanted.max_steps is not None:
        told.append(f"a turn has {wanted.max_steps} steps at most")
    told += [sentence(rule) for rule in wanted.rules]
    lines = tuple(one_line(each, _WIDTH) for each in (*told, *refused))
    registries = tuple(each for each in profile.registries if set(each.places) <= set(network))
    return replace(
        profile,
        own_tools=tools,
        own_ask=tuple(tool for tool in ask if tool in tools),
        network=network,
        registries=registries,
        narrowing=narrowing._replace(told=lines),
    )


def _added(key: str, wanted: Sequence[str], has: Sequence[str]) -> list[str]:
    """Say what a key names that the profile does not have, and does not get."""
    more = [each for each in wanted if each not in has]
    return [f"refused: `{key}` names {', '.join(more)}, which the profile does not have"] if more else []


def _content(file: Path) -> bytes | None:
    """Return what is in the file; None where there is none.

    Raises:
        ConfigError: it is no regular file, or has more bytes than it may.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | NO_LINK)
    except FileNotFoundError:
        return None
    except OSError as error:
        why = "it is a link, which is not followed" if file.is_symlink() else reason(error)
        raise ConfigError(f"{file} cannot be read: {why}. Make it a file, or take it away.") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError(f"{file} cannot be read: it is no regular file. Take it away.")
        with open(descriptor, "rb", closefd=False) as opened:
            data = opened.read(_LIMIT + 1)
    finally:
        os.close(descriptor)
    if len(data) > _LIMIT:
        raise ConfigError(f"{file} has more than {_LIMIT} bytes. Make it smaller, or take it away.")
    return data
