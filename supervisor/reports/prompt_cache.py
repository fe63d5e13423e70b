"""The provider's prompt cache: how much of what could come from it did, and why the rest did not.

Rule: a fold over a session's facts with their times. All that a request before had could be there for the next one;
what was not is a miss, and its cause is what happened in between. A server that tells nothing of a cache has no misses.

Facts ignored: BatchStarted, BudgetChanged, BudgetReserved, CallDecided, CallEnded, CallStarted, FaultsAllowed,
ModeChanged, ModelRetried, ModelSwitched, RuleRevoked, SessionDeleted, TurnEnded, TurnQuestioned, TurnResumed,
TurnStarted, TurnSuspended, Unreadable.
"""

from typing import Final

from supervisor.journal.facts import (
    ContentsRefused,
    Fact,
    OptionChosen,
    Replied,
    ReplyOrigin,
    SessionChanged,
    SessionOpened,
    ToolsChanged,
)

_READ: Final = "cache_read_input_tokens"
_WRITTEN: Final = "cache_creation_input_tokens"
_SHORT: Final = 1024
"""Tokens below which providers keep nothing (https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching)."""
_KEPT_S: Final = 300
"""Seconds for which they keep a prompt at least (the same page)."""
_HIT: Final = 0.98
"""The share of what could come from the cache that counts as all: its end is cut to whole blocks."""


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
        self._at = 0.0
        self._origin: ReplyOrigin | None = None
        self._changed = ""

    def apply(self, fact: Fact, at: float) -> None:
        """Take one more fact into account, recorded at `at`, in seconds since 1970."""
        match fact:
            case SessionOpened():
                self._changed = ""
            case SessionChanged():
                self._changed = "the profile or the model was changed"
            case OptionChosen(option="effort"):
                self._changed = "how much the model thinks was changed"
            case ContentsRefused():
                self._changed = "words stand in place of what the model's server refused"
            case ToolsChanged():
                what = "failed" if fact.because else "is back"
                self._changed = f"the list of tools was changed: {fact.category} {what}"
            case Replied():
                self._replied(fact, at)
            case _:
                return

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
        if possible and read < _HIT * possible:
            self.misses += 1
            cause = self._cause(fact, at, possible)
            self.last_miss = f"{missed} tokens were not in the provider's cache: {cause}"
            self.step += f"; {missed} more could have: {cause}"
        self._before, self._at, self._origin, self._changed = sent, at, fact.origin, ""

    def _cause(self, fact: Replied, at: float, possible: int) -> str:
        """Say why what was sent before was not there, as far as that can be known from here."""
        if self._changed:
            return self._changed
        if fact.origin is not None and self._origin is not None and _who(fact.origin) != _who(self._origin):
            return "another model had answered before"
        if possible < _SHORT:
            return f"less than {_SHORT} tokens are not kept"
        if at - self._at > _KEPT_S:
            return f"{(at - self._at) / 60:.0f} minutes had passed, and it is kept for five"
        return "the provider has not kept it"


def _who(origin: ReplyOrigin) -> tuple[str, str]:
    return origin.provider, origin.model
