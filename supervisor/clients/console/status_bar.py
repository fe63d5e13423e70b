"""Status bar and progress line for a width. Pure.

Rule: parts that do not fit are left out, the least important first; the state is always there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from supervisor.acp import schema
from supervisor.clients.console.session_state import SessionState
from supervisor.clients.console.styled_text import summary
from supervisor.clients.status import duration
from supervisor.display.clock_time import clock_time
from supervisor.display.columns import cut, width
from supervisor.display.fragments import Fragments

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_SECOND: Final = 10
_THOUSAND: Final = 1000
_GAP: Final = 3

READY: Final = "Ready"
ASKS: Final = "Waiting for you"
_WORDS: Final[Mapping[str, str]] = {
    "Input": READY,
    "Thinking": "Thinking",
    "ReviewAction": ASKS,
    "Executing": "Running",
    "Finalizing": "Finishing",
    "Suspended": "Waiting",
    "Done": READY,
}
"""What people read for a turn's states, by their names in the protocol."""
_TONES: Final[Mapping[str, str]] = {
    READY: "bold green",
    **dict.fromkeys(("Thinking", "Finishing"), "bold cyan"),
    **dict.fromkeys(("Running", "Waiting", ASKS), "bold yellow"),
}

HINTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("Input", "Done"), ("Enter send", "/help", "Shift-Tab mode", "Esc leave")),
    "Suspended": ("/go goes on", "Enter next line", "Esc leave"),
    "waits": ("Esc ends it", "/model switches", "/go tries now"),
    "ReviewAction": ("Esc reject", "^C cancel", "^O show all"),
    "asked": ("^C cancel", "^O show all"),
    "Connecting": ("Esc leave",),
    "confirm": ("y yes", "n no"),
    "pick": ("Enter takes", "letters narrow", "Esc leaves"),
    "rule": ("Enter shows what it covers", "Esc as it was"),
    "reason": ("Enter reject", "Esc no reason"),
    **dict.fromkeys(("cancelling", "leaving"), ("^C again to leave",)),
    "busy": ("Esc stop", "^O show call"),
}
"""Key hints by state, the most important first."""


def tokens(count: int) -> str:
    """Return a number of tokens in a few characters."""
    if count < _THOUSAND:
        return str(count)
    if count < 100 * _THOUSAND:
        return f"{count / _THOUSAND:.1f}k"
    return f"{count / _THOUSAND:.0f}k" if count < _THOUSAND**2 else f"{count / _THOUSAND**2:.1f}M"


def money(cost: schema.Cost) -> str:
    """Return an amount of money."""
    amount = f"{cost.amount:.2f}" if cost.amount >= 1 or not cost.amount else f"{cost.amount:.4f}"
    return f"${amount}" if cost.currency == "USD" else f"{amount} {cut(cost.currency, 8)}"


def title(state: SessionState, *, asked: bool) -> str:
    """Return what the window's title says: what goes on, and where; `asked`: a question waits."""
    word = ASKS if asked else word_of(state.turn_state)
    return ", ".join(part for part in (word, state.facts.root.rstrip("/").rpartition("/")[2]) if part)


def word_of(state: str) -> str:
    """Return what people read for a turn's state."""
    return _WORDS.get(state, state)


def bar(
    state: SessionState, columns: int, *, status: str = "", hints: str = "", waiting: int = 0, seconds: float = 0.0
) -> Fragments:
    """Return the bottom bar.

    Args:
        state: the session's.
        columns: at most so many are used.
        status: what to say in place of the turn's state, such as "Connecting".
        hints: the row of `HINTS`; by default the state's.
        waiting: how many lines are queued.
        seconds: that the turn has taken, or the last one took; 0 where there was none.
    """
    shown = status or word_of(state.turn_state)
    facts = list(_facts(state, waiting, seconds))
    keys = list(HINTS.get(hints or status or state.turn_state, HINTS["busy"]))
    while facts and width(_joined(shown, facts, keys)) > columns:
        if len(keys) > 1:
            keys.pop()
        elif len(facts) > 1:
            facts.pop()
        elif keys:
            keys.pop()
        else:
            facts.pop()
    fragments: Fragments = [(_TONES.get(shown, "bold"), cut(shown, columns))]
    if facts:
        fragments.append(("", f" · {' · '.join(facts)}"))
    if keys and width(_joined(shown, facts, keys)) <= columns:
        used = sum(width(text) for _, text in fragments)
        text = " · ".join(keys)
        fragments.append(("dim", " " * (columns - used - width(text)) + text))
    return fragments


def _facts(state: SessionState, waiting: int, seconds: float) -> Iterator[str]:
    """Yield what the bar says besides the state, the most important first."""
    if waiting:
        yield f"{waiting} queued"
    kind, colon, file = (state.other_model or state.facts.model).rpartition(":")
    yield from (part for part in (cut(f"{kind}{colon}{file.rpartition('/')[2]}", 32), cut(_profile(state), 20)) if part)
    if state.used and state.size:
        yield f"{max(0, 100 - 100 * state.used // state.size)}% left"
    if state.cost is not None:
        yield money(state.cost)
    if seconds >= 1:
        yield duration(seconds)
    if state.used:
        yield f"{tokens(state.used)} tokens"
    yield from (f"{each.of} {each.used}" for each in state.budgets)


def _profile(state: SessionState) -> str:
    """Return the profile, and the mode where that is another than usual."""
    mode = state.facts.mode
    return state.facts.profile if mode == "edits" else f"{state.facts.profile}, {mode}"


def _joined(state: str, facts: list[str], keys: list[str]) -> str:
    return " · ".join([state, *facts]) + (" " * _GAP + " · ".join(keys) if keys else "")


def queued(lines: Sequence[tuple[str, bool]], columns: int, rows: int) -> Fragments:
    """Return the last lines that wait, a row each; of each it is said whether it is kept, and not to be sent."""
    told: Fragments = []
    for text, kept in lines[-rows:]:
        why = "kept" if kept else "queued"
        told += [("dim", f"{chr(10) if told else ''}  {why} "), ("", cut(f"> {text}", max(4, columns - len(why) - 3)))]
    return told


def progress(
    state: SessionState, columns: int, seconds: float, now: float = 0.0, *, cancelling: bool = False
) -> Fragments:
    """Return the line that says what is going on, `seconds` after it began; empty when nothing is.

    `now` is in seconds since the epoch.
    """
    if state.turn_state in ("Input", "Done", "ReviewAction") and not cancelling:
        return []
    frame = FRAMES[int(seconds * FRAMES_PER_SECOND) % len(FRAMES)]
    clock = duration(seconds)
    running = state.running
    if cancelling:
        about = "cancelling"
    elif state.waits and state.suspended is not None and state.suspended.until is not None:
        about = f"waiting until {clock_time(state.suspended.until, now)}  {state.suspended.why}"
    elif running and state.turn_state == "Executing":
        about = ", ".join(summary(call, 60) for call in running)
    else:
        about = word_of(state.turn_state)
    if state.retry:
        about += f"  {state.retry}"
    elif state.thought and not running:
        about += f"  {state.thought.strip().rsplit(chr(10), 1)[-1]}"
    return [("cyan", f"{frame} "), ("", cut(about, max(4, columns - len(clock) - 5))), ("dim", f"  {clock}")]
