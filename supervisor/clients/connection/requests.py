"""Requests and answers that several clients build and read in the same way. Pure.

Rule: the daemon runs in another directory than the person. Paths go to it absolute.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from supervisor.acp import extensions, schema
from supervisor.config.repositories import Names
from supervisor.errors import ConfigError, DaemonRefused

if TYPE_CHECKING:
    from supervisor.config.profiles import Profile

_NOTICES: Final = ("-suspended-", "-unseen-", "-refused-", "-answering-", "-compacted-")
"""In the ids of what a person is to know, and no model has thought."""
LISTED_PAGES: Final = 20
"""Pages of a listing that are looked through for a session."""


def absolute(path: str | None) -> str | None:
    """Return a path as the daemon understands it."""
    return None if path is None else os.path.abspath(os.path.expanduser(path))


def absolute_model(name: str) -> str:
    """Return a model's name as the daemon understands it."""
    if ":" not in name:
        return name  # no file: nothing has to be imported that knows them
    from supervisor.agent.models.providers import provider_of

    row = provider_of(name)
    return f"{row.prefix}{absolute(name.removeprefix(row.prefix))}" if row is not None and row.is_file else name


def prompt(
    session: str,
    text: str,
    answer_schema: dict[str, Any] | None = None,
    attached: Sequence[dict[str, Any]] = (),
    files: Sequence[dict[str, Any]] = (),
    check: str | None = None,
) -> schema.PromptParams:
    """Return what asks for a turn, with a JSON Schema that its final answer must be valid by, if any.

    `attached` are blocks that come before the text, `files` such that come after it; `check` as in `turn_meta`.
    """
    blocks = [*attached, {"type": "text", "text": text}, *files]
    return schema.PromptParams(session_id=session, prompt=blocks, meta=turn_meta(answer_schema, check))


def turn_meta(answer_schema: dict[str, Any] | None, check: str | None = None) -> dict[str, Any] | None:
    """Return the `_meta` of a prompt with such a schema, and a check; None leaves that to the profile."""
    meta = {extensions.ANSWER_SCHEMA: answer_schema, extensions.TURN_CHECK: check}
    return {name: value for name, value in meta.items() if value is not None} or None


def schema_in(file: str) -> dict[str, Any]:
    """Return the JSON Schema that stands in a file.

    Raises:
        ConfigError: it cannot be read, or holds no JSON object.
    """
    try:
        found = msgspec.json.decode(Path(file).read_bytes())
    except OSError as error:
        raise ConfigError(f"The schema {file!r} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The schema {file!r} is not JSON: {error}.") from error
    if not isinstance(found, dict):
        raise ConfigError(f"The schema {file!r} is no JSON object.")
    return found


def options(profile: "Profile", **more: Any) -> extensions.SessionOptions:
    """Return what asks for a session of a profile that was resolved here; `more` are other fields of it."""
    if profile.by_name:
        names = Names(profile.group, profile.technology, profile.environment or "")
        return extensions.SessionOptions(profile=profile.name, **names._asdict(), **more)
    return extensions.SessionOptions(profile=profile.name, root=profile.root, **more)


class Chosen(Protocol):
    """What was chosen of a session on a command line; None leaves a value to the configuration."""

    @property
    def profile(self) -> str | None:
        """The profile's name."""

    @property
    def model(self) -> str | None:
        """The model's name."""

    @property
    def root(self) -> str | None:
        """Absolute."""

    @property
    def names(self) -> Names:
        """Of a repository."""

    @property
    def mode(self) -> extensions.ModeName | None:
        """Which changes are asked about."""


def chosen_options(chosen: Chosen, **more: Any) -> extensions.SessionOptions:
    """Return what asks for a session as it was chosen; `more` are other fields of it."""
    return extensions.SessionOptions(
        profile=chosen.profile, model=chosen.model, root=chosen.root, **chosen.names._asdict(), mode=chosen.mode, **more
    )


def changes(chosen: Chosen, facts: extensions.SessionFacts) -> list[tuple[str, str]]:
    """Return the options of an earlier session that are otherwise chosen now, with their values.

    Raises:
        ConfigError: it is on another root, which it keeps.
    """
    if chosen.root is not None and os.path.realpath(chosen.root) != os.path.realpath(facts.root):
        raise ConfigError(
            f"The session {facts.session_id} is on {facts.root}, and stays there: leave out --root {chosen.root}, or "
            "begin a new session there."
        )
    wanted = ((option, getattr(chosen, option)) for option in ("profile", "model", "mode"))
    return [(option, value) for option, value in wanted if value is not None and value != getattr(facts, option)]


def _options_of(info: schema.SessionInfo) -> dict[str, Any]:
    known = (info.meta or {}).get(extensions.OPTIONS)
    return known if isinstance(known, dict) else {}


async def listed_sessions(
    request: Callable[[str, Any, type[schema.ListResult]], Awaitable[schema.ListResult]],
    cwd: str | None = None,
    pages: int = LISTED_PAGES,
) -> list[schema.SessionInfo]:
    """Ask for sessions by `request`, of one directory or all, newest first; at most so many pages of them."""
    found: list[schema.SessionInfo] = []
    cursor: str | None = None
    for _ in range(pages):
        page = await request("session/list", schema.ListParams(cwd=cwd, cursor=cursor), schema.ListResult)
        found += page.sessions
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def newest_profile(sessions: Sequence[schema.SessionInfo]) -> str | None:
    """Return the profile of the first of a listing; None where there is none."""
    return next((_options_of(info).get("profile") for info in sessions), None)


def is_named(info: schema.SessionInfo, names: Names) -> bool:
    """Say whether a session that is listed is on the repository of these names, as far as any are given."""
    known = _options_of(info)
    wanted = {"group": names.group, "technology": names.technology}
    return all(value is None or known.get(name) == value for name, value in wanted.items())


def newest(sessions: Sequence[schema.SessionInfo], names: Names) -> str | None:
    """Return the id of the first of a listing that is on the repository of these names; None where there is none."""
    found = [info for info in sessions if is_named(info, names)]
    said = [info for info in found if info.title] or found  # rather one in which something was said
    return said[0].session_id if said else None


def ending_in(wanted: str, sessions: Sequence[schema.SessionInfo]) -> schema.SessionInfo | None:
    """Return the session of a listing whose id is, or ends in, `wanted`; None where there is none.

    Raises:
        DaemonRefused: there are several.
    """
    found = [info for info in sessions if info.session_id.endswith(wanted)]
    exact = [info for info in found if info.session_id == wanted] or found
    if len(exact) > 1:
        raise DaemonRefused(f"{len(exact)} sessions end in {wanted!r}; give more of the id.", "not_found")
    return exact[0] if exact else None


def same_root(profile: "Profile", root: str) -> None:
    """Make sure that a profile which was resolved here has the same root in the daemon.

    Raises:
        ConfigError: it has another; most likely `repos_path` was changed since the daemon has started.
    """
    if profile.root != root:
        raise ConfigError(
            f"The daemon that runs has the profile {profile.name!r} on {root!r}, and here it is on {profile.root!r}: "
            "its configuration is another. `strongroom daemon --stop` ends it."
        )


def session_facts(meta: dict[str, Any] | None, session: str) -> extensions.SessionFacts:
    """Return what a result says about its session.

    Raises:
        DaemonRefused: nothing that can be read.
    """
    try:
        return msgspec.convert((meta or {})[extensions.OPTIONS], extensions.SessionFacts)
    except (KeyError, msgspec.ValidationError) as error:
        raise DaemonRefused(f"The daemon does not say what the session {session} is.", "bad_answer") from error


def said_besides(message: str) -> Literal["end", "notice", "receipt", "tools", ""]:
    """Return what a thought of this id is, where it is a sentence of the daemon's own.

    The end of a turn that has failed, a notice, what a turn did or where its reply was cut, tools that are gone; "" is
    what a model thinks.
    """
    if message.endswith("-end"):
        return "end"
    if message.endswith("-note") or any(each in message for each in _NOTICES):
        return "notice"
    if message.endswith(("-receipt", "-cut")):
        return "receipt"
    return "tools" if "-tools-" in message else ""


def unwrapped(text: str) -> str:
    """Return what the daemon says besides, without what sets it apart from what the model thinks."""
    return text.strip().removeprefix("(").removesuffix(")")


def call_facts(meta: dict[str, Any] | None) -> extensions.CallFacts | None:
    """Return what an update says about its call, if that can be read."""
    try:
        return msgspec.convert((meta or {})[extensions.CALL], extensions.CallFacts)
    except (KeyError, msgspec.ValidationError):
        return None


def fork_params(session: str, cwd: str, turn: int | None, options: extensions.SessionOptions) -> schema.ForkParams:
    """Return what to ask the daemon for."""
    at = {} if turn is None else {extensions.FORK_TURN: turn}
    return schema.ForkParams(session_id=session, cwd=cwd, meta={extensions.OPTIONS: options, **at})
