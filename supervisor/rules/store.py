"""Rules that people made while approving, for a session or for always: a file beside the journal, listed and revoked.

Rule: a rule counts only for the profile and the root that it was made for, by path and by identity, and until its last
day or its session's end. The file is replaced as a whole, under a lock, and is on the disk when `add` and `revoke`
return; it is read for each decision, so that what was revoked anywhere counts nowhere. Where it cannot be read, or is
not as it was written, none of its rules counts. Rules of older versions, which name no identity, are only listed.
"""

import datetime as dt
import hashlib
import logging
import secrets
from collections.abc import Callable, Container
from pathlib import Path
from typing import Final, Literal

import msgspec

from supervisor.errors import ConfigError
from supervisor.rules.rule import Rule, problem_of
from supervisor.system.safe_files import locked_for_change, read_bytes, replace_file

_LIMIT: Final = 2**20
"""Bytes of the file: more than anybody has said yes to."""
_ALPHABET: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters and digits that are not taken for each other; numbers are those of the configured rules."""
_LENGTH: Final = 4

_log: Final = logging.getLogger("strongroom.rules")


class StoredRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule, where it holds, and how it came to be."""

    id: str
    rule: Rule
    profile: str
    root: str
    made: str
    """When, UTC, as in 2027-03-04 10:15:00Z."""
    by: str
    """Who said yes, for example "console"."""
    session: str
    call: str
    """What was asked about then; empty where a person kept what instructions state."""
    identity: str = ""
    """What tells the root's directory from another one at its path; empty in what an older version wrote."""
    scope: Literal["session", "always"] = "always"

    @property
    def outdated(self) -> bool:
        """Whether an older version wrote it, which did not know what it needs to count."""
        unbounded = self.rule.decision == "allow" and self.rule.kinds is None and self.rule.registries is None
        return not self.identity or unbounded


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[StoredRule, ...] = ()
    seal: str = ""
    """Digest of the rules, as they were written; empty where an older version wrote them."""

    def sealed(self) -> "_File":
        """Return it with the seal that it should have."""
        return _File(self.rules, hashlib.sha256(msgspec.json.encode(self.rules)).hexdigest())


def _utc() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class RuleStore:
    """The rules in a file, which need not be there yet.

    Args:
        path: the file; its directory is there when a rule is added.
        now: says the time.
    """

    def __init__(self, path: Path, now: Callable[[], dt.datetime] = _utc) -> None:
        self._path = path
        self._now = now
        self._complained = ""

    def listing(self) -> list[StoredRule]:
        """Return all rules in the order in which they were made, expired ones too.

        Raises:
            ConfigError: the file cannot be read, or is damaged.
        """
        return list(self._read().rules)

    def active(self, profile: str, root: str, today: dt.date, *, identity: str = "", session: str = "") -> list[Rule]:
        """Return the rules that count there; none where the file cannot be read, which is logged once."""
        try:
            found = self._read().rules
        except ConfigError as error:
            if str(error) != self._complained:
                self._complained = str(error)
                _log.error("%s", error)
            return []
        self._complained = ""
        here = (profile, root, identity)
        return [
            each.rule
            for each in found
            if (each.profile, each.root, each.identity) == here
            and not each.outdated
            and (each.scope == "always" or each.session == session)
            and each.rule.counts(today)
        ]

    def add(
        self,
        rule: Rule,
        *,
        session: str,
        call: str,
        by: str,
        profile: str,
        root: str,
        identity: str = "",
        scope: Literal["session", "always"] = "always",
    ) -> StoredRule:
        """Keep a rule, and return it with its id. Rules of sessions go when they have expired.

        Raises:
            ConfigError: the rule means nothing, the file is damaged or full, or it cannot be written.
        """
        if problem := problem_of(rule):
            raise ConfigError(f"This cannot be a rule: {problem}")
        with locked_for_change(self._path):
            now = self._now()
            old = [each for each in self._read().rules if each.scope == "always" or each.rule.counts(now.date())]
            made = now.strftime("%Y-%m-%d %H:%M:%SZ")
            name = _new_id({each.id for each in old})
            new = StoredRule(name, rule, profile, root, made, by, session, call, identity, scope)
            self._write(_File((*old, new)))
        return new

    def end(self, session: str) -> None:
        """Drop the rules that were to hold for a session.

        Raises:
            ConfigError: the file is damaged, or it cannot be written.
        """

        def lasts(each: StoredRule) -> bool:
            return each.scope == "always" or each.session != session

        if not all(map(lasts, self._read().rules)):
            with locked_for_change(self._path):
                self._write(_File(tuple(filter(lasts, self._read().rules))))

    def revoke(self, wanted: str) -> StoredRule:
        """Take a rule back, and return it.

        Raises:
            ConfigError: there is none with that id, the file is damaged, or it cannot be written.
        """
        self._find(wanted)  # without a lock, which would need a place to be
        with locked_for_change(self._path):
            gone = self._find(wanted)
            self._write(_File(tuple(each for each in self._read().rules if each.id != wanted)))
        return gone

    def _find(self, wanted: str) -> StoredRule:
        found = next((each for each in self._read().rules if each.id == wanted), None)
        if found is None:
            raise ConfigError(f"No rule {wanted!r} that a person has made. `strongroom rules` lists them.")
        return found

    def _read(self) -> _File:
        try:
            found = msgspec.json.decode(read_bytes(self._path, _LIMIT, own=True), type=_File)
        except FileNotFoundError:
            return _File()
        except OSError as error:
            raise self._damaged(error.strerror or str(error)) from error
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self._damaged(str(error)) from error
        problem = next((text for each in found.rules if (text := problem_of(each.rule))), "")
        if problem or len({each.id for each in found.rules}) < len(found.rules):
            raise self._damaged(problem or "two of its rules have the same id")
        if found.seal != (found.sealed().seal if found.seal or any(each.identity for each in found.rules) else ""):
            raise self._damaged("something else than Strongroom has changed it")
        return found

    def _damaged(self, why: str) -> ConfigError:
        return ConfigError(
            f"{self._path} cannot be used, and no rule in it counts: {why.rstrip('.')}. Repair it, or move it away to "
            "begin without such rules."
        )

    def _write(self, content: _File) -> None:
        data = msgspec.json.format(msgspec.json.encode(content.sealed())) + b"\n"
        if len(data) > _LIMIT:
            raise ConfigError(f"{self._path} has no room for another rule. Revoke some: `strongroom rules revoke ID`.")
        try:
            replace_file(self._path, data, durable=True)
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be written: {error.strerror}. Nothing has changed.") from error


def _new_id(taken: Container[str]) -> str:
    while True:
        new = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        if new not in taken and not new.isdecimal():
            return new
