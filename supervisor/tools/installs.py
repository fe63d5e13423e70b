"""Installs of one session: asked about before their first run, and settled by that one yes.

Rule: a yes to an install is a yes to its registries and to what installs change, and to nothing else: other changes are
judged like any, and of an install that fails nothing is kept. After foreign text a person is asked, whatever rules say.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Final, NamedTuple

from supervisor.categories.registries import PRESETS, Registry
from supervisor.config.profiles import Profile
from supervisor.display.escape import one_line
from supervisor.display.proposed_effects import size
from supervisor.rules.install_effects import only_installs
from supervisor.rules.installers import Install, covers
from supervisor.rules.judge_effects import Verdict
from supervisor.rules.rule import Rule
from supervisor.rules.rule_sentence import sentence
from supervisor.system.locked_packages import remember, unmet
from supervisor.system.package_caches import PackageCaches
from supervisor.system.package_look import look, plugs_in
from supervisor.tools.exfiltration.exposure import SeenText
from workers.changes.effects import Effects

UPLOAD: Final = 4_000_000
"""Bytes that an install may send: a request for each of thousands of packages."""
_YARN: Final = frozenset({"yarn", "yarnpkg"})
_LOADERS: Final = (".pnp.cjs", ".pnp.loader.mjs")
_WIDTH: Final = 80
_NAMED: Final = 3
"""Packages that are named in a question."""
FAILED: Final = "it failed, so nothing of what it had changed is kept"
INSTALLED: Final = Verdict("allow", "an install that may use the network: packages, lock files and dependencies alone")


class WantedNetwork(NamedTuple):
    """What a known install wants of the network."""

    install: Install
    places: tuple[str, ...]
    """Those of its registries, and what else the profile names that is no registry: it may reach no more."""
    rule: Rule
    """What a yes for longer would allow."""
    lacking: tuple[str, ...] = ()
    """Packages that it fetches because they are not here."""
    outputs: tuple[str, ...] = ()
    """Programs that it may build."""
    loaders: tuple[str, ...] = ()
    """Files that Node.js obeys, and by which it finds packages where yarn unpacks none: they are named beforehand."""
    elsewhere: tuple[str, ...] = ()
    """Files of the root, each with a place that it names and the install does not reach."""

    def reason(self, seen: SeenText) -> str:
        """Return why a person is asked, a clause."""
        wants = f"{one_line(self.install.command, _WIDTH)} wants {', '.join(self.places)}"
        may = f"it may send {size(self.upload(seen))}"
        away = (
            f"it does not reach other places that the root names: {', '.join(self.elsewhere)}" if self.elsewhere else ""
        )
        loads = f"it may write {', '.join(self.loaders)}, which Node.js obeys" if self.loaders else ""
        return "; ".join(filter(None, (wants, self._told(), loads, away, seen.uploads.told(), may)))

    def _told(self) -> str:
        """Return which packages are not here, a clause."""
        named = [one_line(each, _WIDTH) for each in self.lacking[:_NAMED]]
        more = [f"{len(self.lacking) - _NAMED} more"] if len(self.lacking) > _NAMED else []
        return f"not here: {', '.join([*named, *more])}" if named else ""

    def needed(self, root: str, caches: PackageCaches | None, registries: Iterable[Registry]) -> "WantedNetwork | None":
        """Return it with the packages that are not here; None where all are. Blocks."""
        places, install = dict(_places(caches, registries)), self.install
        seen = look(install.locked, root, places, install.registries)
        pairs = zip(install.locked, seen.found, strict=True)
        found = tuple(dict.fromkeys(name for locked, each in pairs for name in unmet(locked, each, places)))
        if not found and not install.always:
            return None
        away = (
            f"{one_line(at, _WIDTH)} ({one_line(path, _WIDTH)})" for path, at in seen.places if at not in self.known
        )
        elsewhere = tuple(dict.fromkeys(away))[:_NAMED]
        by_yarn = all(each.rpartition("/")[2] in _YARN for each in install.programs)
        loaders = _LOADERS if by_yarn and plugs_in(root) else ()
        return self._replace(lacking=found, outputs=tuple(seen.outputs), loaders=loaders, elsewhere=elsewhere)

    @property
    def known(self) -> set[str]:
        """Places that lock files may name: its own, and those of the registries that a mirror stands for."""
        return {*self.places, *(place for each in self.install.registries for place in PRESETS[each])}

    def remember(self, root: str, caches: PackageCaches | None, registries: Iterable[Registry]) -> None:
        """Remember what it had no need of: it has gone well. Blocks.

        Raises:
            OSError: it cannot be written.
        """
        places = dict(_places(caches, registries))
        for each, found in zip(self.install.locked, look(self.install.locked, root, places, ()).found, strict=True):
            remember(each, found, places)

    def upload(self, seen: SeenText) -> int:
        """Return how many bytes it may send."""
        return max(UPLOAD, seen.uploads.limit)


def _places(caches: PackageCaches | None, registries: Iterable[Registry]) -> Iterable[tuple[str, str]]:
    return caches.places((each.name, each.url) for each in registries) if caches is not None else ()


def wanted_network(profile: Profile, install: Install | None, today: dt.date) -> WantedNetwork | None:
    """Return what an install wants of the profile's registries, None where there is none.

    A copy has no network.
    """
    if not may_install(profile) or install is None:
        return None
    known = [each for each in profile.registries if each.name in install.registries]
    if {each.name for each in known} != {*install.registries}:
        return None
    until = today + dt.timedelta(days=365)
    rule = Rule("allow", install.programs, until=until, registries=install.registries)
    places = (*(place for each in known for place in each.places), *profile.hosts)
    return WantedNetwork(install, places, rule)


def may_install(profile: Profile) -> bool:
    """Say whether commands may be let into a registry: those of a copy have no network."""
    return bool(profile.registries) and not profile.copies


def allowing(rules: list[Rule], wanted: WantedNetwork, today: dt.date) -> Verdict | None:
    """Return the verdict of the first rule that allows an install, if there is one."""
    rule = next((each for each in rules if each.counts(today) and covers(each, wanted.install)), None)
    return None if rule is None else Verdict("allow", f"a rule covers it: {sentence(rule)}", rule)


def strange_places(wanted: WantedNetwork, effects: Effects) -> str:
    """Return the files that would have packages from elsewhere, each with a place, as a clause; "" for none."""
    found = [(place, each.path) for each in effects.changes for place in each.places if place not in wanted.known]
    told = [f"{one_line(path, _WIDTH)} would have packages from {one_line(place, _WIDTH)}" for place, path in found]
    return ", ".join(told[:_NAMED])


def settles(verdict: Verdict, wanted: WantedNetwork, effects: Effects) -> bool:
    """Say whether the yes to its network settles what an install changed: where nobody is to be asked otherwise."""
    asks = verdict.decision == "ask" and verdict.rule is None
    install, known = wanted.install, wanted.known
    return asks and only_installs(
        effects, install.registries, builds=install.builds, outputs=wanted.outputs, loaders=wanted.loaders, places=known
    )
