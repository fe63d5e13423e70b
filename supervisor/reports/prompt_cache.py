"""The provider's prompt cache: how much of what could come from it did, and why the rest did not.

Rule: a fold over a session's facts with their times. All that a request before had could be there for the next one,
after a rewinding or in a fork what the last one of the turn had that is gone on from; what was not is a miss, and its
cause is what happened in between. A server that tells nothing of a cache has no misses. What a fork begins with was
counted where it happened.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, CallEnded, CallStarted, FaultsAllowed,
InstructionsRead, ModeChanged, ModelRetried, ModelSwitched, ReplyCut, RuleRevoked, SessionDeleted, TurnEnded,
TurnQuestioned, TurnResumed, TurnSuspended, Unreadable.
"""

from typing import Final

from supervisor.journal.facts import (
    Compacted,
    ContentsRefused,
    Fact,
    ForkPoint,
    OptionChosen,
    Replied,
    ReplyOrigin,
    Rewound,
    SessionChanged,
    SessionOpened,
    ToolsChanged,
    TurnStarted,
)

_READ: Final = "cache_read_input_tokens"
_WRITTEN: Final = "cache_creation_input_tokens"
_SHORT: Final = 4096
"""Tokens below which some models' prompts are not kept, others' from a quarter of that on: the pages on caching of
https://docs.anthropic.com, https://platform.openai.com and https://ai.google.dev."""
_BLOCK: Final = 128
"""Tokens of the blocks that OpenAI keeps: less than one is no miss."""
_KEPT_S: Final = 300
"""Seconds for which they keep a prompt at least (the same pages)."""
_HIT: Final = 0.98
"""The share of what could come from the cache that counts as all."""

_OF_A_SETUP: Final = (
    ("profile", "the profile was changed"),
    ("model", "the model was changed"),
    ("context", "what the model is told of its surroundings was changed"),
)


class PromptCache:
    """What is known of the cache of one session."""

    def __init__(self) -> None:
        self.possible = 0
        """Tokens that could have come from the cache."""
        self.reused = 0
        """Those of them that did."""
        self.misses = 0
        self.last_miss = ""
        """How much was missed last, and why, as a sentence without its full stop."""
        self.step = ""
        """The same for the last reply, whether it missed something or not."""
        self._before = 0
        """Tokens of the last request."""
        self._sent: dict[int, int] = {}
        """The same of each turn."""
        self._at = 0.0
        self._left_out = 0
        self._origin: ReplyOrigin | None = None
        self._setup: SessionOpened | SessionChanged | None = None
        self._changed: dict[str, None] = {}
        """What has happened since, each a clause that says why the next request begins otherwise."""
        self._new_turn = self._thought = False

    def apply(self, fact: Fact, at: float) -> None:
        """Take one more fact into account, recorded at `at`, in seconds since 1970."""
        match fact:
            case SessionOpened(fork=ForkPoint(turn=turn)):
                self.possible = self.reused = self.misses = 0
                self._before, self.last_miss, self.step = self._sent.get(turn, 0), "", ""
                self._set_up(fact)
            case SessionOpened() | SessionChanged():
                self._set_up(fact)
            case OptionChosen(option="effort"):
                self._changed["how much the model thinks was changed"] = None
            case Compacted():
                self._changed["the conversation was compacted"] = None
            case ContentsRefused():
                self._changed["words stand in place of what the model's server refused"] = None
            case ToolsChanged():
                what = "failed" if fact.because else "is back"
                self._changed[f"the list of tools was changed: {fact.category} {what}"] = None
            case Rewound(turn=turn):
                self._before = self._sent.get(turn, 0)
                self._changed["the conversation went back to an earlier turn"] = None
            case TurnStarted():
                self._new_turn = True
            case Replied():
                self._replied(fact, at)
            case _:
                return

    def _set_up(self, fact: SessionOpened | SessionChanged) -> None:
        before, self._setup = self._setup or fact, fact
        self._changed |= {why: None for field, why in _OF_A_SETUP if getattr(fact, field) != getattr(before, field)}

    def _replied(self, fact: Replied, at: float) -> None:
        read, usage = fact.usage.get(_READ, 0), fact.usage
        sent = usage.get("input_tokens", 0) + read + usage.get(_WRITTEN, 0)
        told = _READ in usage or _WRITTEN in usage
        possible = min(self._before, sent) if told else 0
        missed = possible - read
        self.step = f"{read} of {sent} tokens of the request came from the provider's cache" if told else ""
        if possible:
            self.possible += possible
            self.reused += min(read, possible)
        if missed >= _BLOCK and read < _HIT * possible:
            self.misses += 1
            cause = self._cause(fact, at, possible)
            self.last_miss = f"{missed} tokens were not in the provider's cache: {cause}"
            self.step += f"; {missed} more could have: {cause}"
        self._before, self._at, self._origin, self._left_out = sent, at, fact.origin, fact.left_out
        self._sent[fact.turn] = sent
        self._thought = _thought(fact) or (self._thought and not self._new_turn)
        self._changed, self._new_turn = {}, False

    def _cause(self, fact: Replied, at: float, possible: int) -> str:
        """Say why what was sent before was not there, as far as that can be known from here."""
        changed = list(self._changed)
        if fact.left_out > self._left_out:
            changed.append("old images or documents were left out, to have room for new ones or as they are not kept")
        if not changed and fact.origin and self._origin and _who(fact.origin) != _who(self._origin):
            changed.append("another model had answered before")
        if changed:
            return ", and ".join(changed)
        if possible < _SHORT and not fact.usage.get(_READ):
            return f"so short a prompt is not kept, by some models not below {_SHORT} tokens"
        if at - self._at > _KEPT_S:
            return f"{(at - self._at) / 60:.0f} minutes had passed, and it is kept for five"
        if self._new_turn and self._thought:
            return "a new turn began, for which the provider leaves out what was thought in the one before"
        return "the provider has not kept it"


def _who(origin: ReplyOrigin) -> tuple[str, str]:
    return origin.provider, origin.model


def _thought(fact: Replied) -> bool:
    return bool(fact.usage.get("reasoning_tokens")) or any(block["type"] == "thinking" for block in fact.content)
