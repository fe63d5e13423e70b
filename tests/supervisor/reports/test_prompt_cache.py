"""Misses of the prompt cache, and their causes, from a session's facts."""

from typing import Any, Final

import msgspec

from supervisor.journal.facts import (
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
from supervisor.reports.prompt_cache import PromptCache
from tests.each_row import each_row
from workers.wire.messages import Context


def replied(
    fresh: int, read: int = 0, written: int = 0, *, model: str = "m", left_out: int = 0, **usage: Any
) -> Replied:
    counts = {"input_tokens": fresh, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, **usage}
    return Replied(1, 0, [], "end_turn", counts, ReplyOrigin("p", model), left_out=left_out)


def folded(*facts: tuple[Fact, float]) -> PromptCache:
    cache = PromptCache()
    for fact, at in facts:
        cache.apply(fact, at)
    return cache


OPENED: Final = (SessionOpened("p", "m", Context("/"), (), "", ""), 0.0)
FIRST: Final = (replied(10, 0, 5000, reasoning_tokens=9), 0.0)


def test_what_was_sent_before_can_be_reused_and_is_counted() -> None:
    cache = folded(FIRST, (replied(5, 5005, 90), 10.0), (replied(5, 5095, 90), 20.0))
    assert (cache.possible, cache.reused, cache.misses, cache.last_miss) == (5010 + 5100, 5005 + 5095, 0, "")
    assert cache.step == "5095 of 5190 tokens of the request came from the provider's cache"


CAUSES: Final[dict[str, tuple[list[tuple[Fact, float]], Replied, float, str]]] = {
    "another model": ([], replied(9, 0, 5000, model="n"), 9.0, "another model had answered before"),
    "another profile": (
        [(SessionChanged("q", "m", Context("/"), ()), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "the profile was changed",
    ),
    "all of it": (
        [
            (SessionChanged("q", "m", Context("/"), ()), 1.0),
            (SessionChanged("q", "n", Context("/"), ()), 1.0),
            (ToolsChanged(1, "web", ("fetch_url",)), 1.0),
        ],
        replied(9, 0, 5000, model="n"),
        9.0,
        "the profile was changed, and the model was changed, and the list of tools was changed: web is back",
    ),
    "nothing that was chosen anew": (
        [(SessionChanged("p", "m", Context("/"), ()), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "the provider has not kept it",
    ),
    "fewer images": (
        [],
        replied(9, 2000, 3000, left_out=50),
        9.0,
        "old images or documents were left out, to have room for new ones or as they are not kept",
    ),
    "an earlier turn": ([(Rewound(1), 1.0)], replied(9, 0, 5000), 9.0, "the conversation went back to an earlier turn"),
    "another turn": (
        [(TurnStarted(2, "x"), 1.0)],
        replied(9, 2000, 3000),
        9.0,
        "a new turn began, for which the provider leaves out what was thought in the one before",
    ),
    "fewer tools": (
        [(ToolsChanged(1, "web", ("fetch_url",), "they crash"), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "the list of tools was changed: web failed",
    ),
    "tools again": (
        [(ToolsChanged(1, "web", ("fetch_url",)), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "the list of tools was changed: web is back",
    ),
    "a refused document": (
        [(ContentsRefused(1, "m", (), "no"), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "words stand in place of what the model's server refused",
    ),
    "other thinking": (
        [(OptionChosen("effort", "high"), 1.0), (OptionChosen("max_tokens", "9"), 2.0)],
        replied(9, 0, 5000),
        9.0,
        "how much the model thinks was changed",
    ),
    "another length": (
        [(OptionChosen("max_tokens", "9"), 1.0)],
        replied(9, 0, 5000),
        9.0,
        "the provider has not kept it",
    ),
    "a pause": (
        [(TurnStarted(1, "x"), 700.0)],
        replied(9, 0, 5000),
        720.0,
        "12 minutes had passed, and it is kept for five",
    ),
    "nothing": ([], replied(9, 0, 5000), 9.0, "the provider has not kept it"),
    "half of it": ([], replied(9, 2500, 2500), 9.0, "the provider has not kept it"),
}


@each_row(("between", "last", "at", "cause"), CAUSES.values(), ids=CAUSES)
def test_a_miss_is_told_with_its_cause(between: list[tuple[Fact, float]], last: Replied, at: float, cause: str) -> None:
    cache = folded(OPENED, FIRST, *between, (last, at))
    missed = cache.possible - cache.reused
    assert (cache.misses, cache.last_miss) == (1, f"{missed} tokens were not in the provider's cache: {cause}")
    assert cache.step.endswith(f"; {missed} more could have: {cause}")


def test_what_a_rewinding_took_away_could_not_be_reused() -> None:
    later = msgspec.structs.replace(replied(4000, 5005, 90), turn=2)
    cache = folded(FIRST, (later, 10.0), (Rewound(1), 11.0), (replied(900, 5005), 12.0))
    assert (cache.possible, cache.reused, cache.misses) == (5010 * 2, 5005 * 2, 0)


def test_a_fork_could_reuse_what_its_turn_had_and_counts_for_itself() -> None:
    later = msgspec.structs.replace(replied(4000, 5005, 90), turn=2)
    forked = SessionOpened("p", "m", Context("/"), (), "", "", fork=ForkPoint("s", 1, 9))
    before = OPENED, FIRST, (later, 10.0), (forked, 11.0)
    hit = folded(*before, (replied(900, 5005), 12.0))
    assert (hit.possible, hit.reused, hit.misses) == (5010, 5005, 0)
    missed = folded(*before, (replied(900, 5), 999.0))
    assert (
        missed.last_miss
        == "900 tokens were not in the provider's cache: 16 minutes had passed, and it is kept for five"
    )


def test_a_short_prompt_is_not_kept() -> None:
    cache = folded((replied(500), 0.0), (replied(600), 1.0))
    assert cache.last_miss.endswith("so short a prompt is not kept, by some models not below 4096 tokens")


def test_the_end_of_a_prompt_that_is_no_whole_block_is_no_miss() -> None:
    cache = folded((replied(1663), 0.0), (replied(300, 1536), 1.0))
    assert (cache.misses, cache.possible, cache.reused) == (0, 1663, 1536)
    assert folded((replied(1664), 0.0), (replied(300, 1536), 1.0)).misses == 1


def test_a_server_that_tells_nothing_of_a_cache_misses_nothing() -> None:
    silent = Replied(1, 0, [], "end_turn", {"input_tokens": 9000, "output_tokens": 1})
    cache = folded((silent, 0.0), (silent, 1.0))
    assert (cache.possible, cache.misses, cache.step) == (0, 0, "")
