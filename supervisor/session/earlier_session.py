"""A session as its facts say: an earlier one, read, folded and settled, or one that was just begun."""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from supervisor.agent.models.model import Model
from supervisor.agent.shown_reply import file_of, left_behind, remove
from supervisor.agent.story_transcript import transcript_of
from supervisor.agent.transcript import STOPPED, Transcript
from supervisor.agent.turn import Event
from supervisor.config.profiles import Profile
from supervisor.errors import ConfigError
from supervisor.journal.facts import (
    CallEnded,
    CallStarted,
    ModeChanged,
    OptionChosen,
    Rewound,
    SessionChanged,
    SessionOpened,
    effective,
)
from supervisor.journal.journal import Journal, JournalEntry
from supervisor.journal.lineage import inherited
from supervisor.rules.rule import Mode
from supervisor.session.resources import SessionResources
from supervisor.tools.commit_fate import settle, settled
from supervisor.tools.exfiltration.sources import no_author, sources_of
from supervisor.tools.outcomes import abandoned, is_repeatable, with_persons_part
from supervisor.version import VERSION


def new_id() -> str:
    """Return a session's id: sorts by time, and is short enough to type the end of."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(6)


@dataclass(frozen=True)
class EarlierSession:
    """A session as its facts say: an earlier one, read and folded, or one that was just begun."""

    id: str
    entries: Sequence[JournalEntry]
    opened: SessionOpened
    transcript: Transcript
    calls: set[str]
    """The ids of its calls."""
    inherited: Sequence[JournalEntry] = ()
    """What it begins with: of the sessions that it was forked from."""

    @property
    def began_in(self) -> str:
        """The id of the session in which its conversation began: its own, but where it was forked."""
        return self.inherited[0].session if self.inherited else self.id

    @property
    def story(self) -> list[JournalEntry]:
        """All entries that its conversation stands on."""
        return [*self.inherited, *self.entries]

    @property
    def mode(self) -> Mode:
        """The mode that was chosen last."""
        chosen = (entry.fact.mode for entry in reversed(self.entries) if isinstance(entry.fact, ModeChanged))
        return next(chosen, self.opened.mode)

    @property
    def reply_options(self) -> dict[str, str]:
        """What was chosen last of the model's replies, by the option's name; without those that are as by default."""
        facts = (entry.fact for entry in self.story if isinstance(entry.fact, OptionChosen))
        return {name: value for name, value in {fact.option: fact.value for fact in facts}.items() if value}

    @property
    def rewinds(self) -> bool:
        """Whether a rewinding of it was cut off: what it has told is not known before that is settled."""
        facts = (entry.fact for entry in self.entries)
        return any(isinstance(fact, Rewound) and fact.call in self.transcript.decided for fact in facts)

    @property
    def settings(self) -> list[SessionOpened | SessionChanged]:
        """The profiles and models that it was given, one after the other."""
        return [entry.fact for entry in self.entries if isinstance(entry.fact, SessionOpened | SessionChanged)]


def read_earlier(journal: Journal, session: str) -> EarlierSession:
    """Read an earlier session. May take a while where it is long, and may run in any thread.

    Raises:
        ConfigError: there is none of that id.
        JournalError: the journal cannot be read.
    """
    entries = journal.of_session(session)
    return earlier_of(session, entries, inherited(journal, entries))


def earlier_of(session: str, entries: Sequence[JournalEntry], before: Sequence[JournalEntry] = ()) -> EarlierSession:
    """Fold the entries of a session, and those that it goes on from; raises ConfigError as `read_earlier`."""
    opened = next((entry.fact for entry in entries if isinstance(entry.fact, SessionOpened)), None)
    if opened is None and entries:
        raise ConfigError(
            f"The session {session} cannot be opened: row {entries[0].seq} of the journal, which says where it works, "
            "cannot be read. `strongroom history` shows the rest of it; begin a new session."
        )
    if opened is None:
        raise ConfigError(f"No session {session!r}. `strongroom sessions` lists them.")
    story = [*before, *entries]
    calls = {entry.fact.call for entry in story if isinstance(entry.fact, CallStarted | CallEnded)}
    return EarlierSession(session, entries, opened, transcript_of(story), calls, before)


def new_session(
    profile: Profile,
    model: Model | None,
    origin: str,
    *,
    degraded: tuple[str, ...] = (),
    cwd: str = "",
    attended: bool,
    mode: Mode = "edits",
) -> EarlierSession:
    """Return a session that has only its opening, which the caller records before it is opened.

    Args:
        profile: resolved.
        model: answers; None for a session of single calls.
        origin: for whom it is.
        degraded: protections that the operator does without.
        cwd: the client's directory, absolute.
        attended: whether there is somebody to ask.
        mode: which changes are asked about.
    """
    name, context = model.name if model else "", profile.context()
    opened = SessionOpened(profile.name, name, context, profile.tools, origin, VERSION, degraded, cwd, attended, mode)
    return EarlierSession(new_id(), (), opened, Transcript([opened]), set())


async def settle_earlier(
    earlier: EarlierSession, resources: SessionResources, profile: Profile, show: Callable[[Event], None]
) -> None:
    """Settle what an earlier process did not see end, commits and a reply, and record what became of them.

    A call of which nothing was made is begun anew by its turn, if that goes on; here it is recorded that it is.

    Raises:
        JournalError: it cannot be recorded.
        WorkerUnavailable: the root was deleted, or the daemon ends.
    """
    transcript, writer, pools = earlier.transcript, resources.writer, resources.pools(profile)
    shown = file_of(writer.journal.path, earlier.id)
    for cut in left_behind(shown, transcript):
        await writer.append(earlier.id, cut)
        transcript.apply(cut)
        show(cut)
    remove(shown)
    for call, decided in [*transcript.decided.items()]:
        started = transcript.started.get(call)
        if started is None or not decided.committed or decided.effects is None:
            continue
        found = await settle(pools, decided.number, decided.effects, decided.kept)
        if found is None:
            continue
        what: CallStarted | CallEnded = msgspec.structs.replace(started, again=True)
        if not (found.is_undone and transcript.awaits(call) and is_repeatable(started, decided)):
            unknown = abandoned(started, STOPPED, "cancelled", decided)
            ended = with_persons_part(started, settled(started, STOPPED, unknown, found, decided.end))
            files = resources.services.agent_files
            author = no_author if files is None else await files.author_in(profile.root)
            strange = pools.root.is_foreign or not profile.trusted
            sources = sources_of(effective(started), ended, author, foreign_root=strange)
            what = msgspec.structs.replace(ended, sources=sources)
        await writer.append(earlier.id, what)
        transcript.apply(what)
        show(what)
