"""The provider's prompt cache, metered: what could come from it does, whatever happens to the daemon in between."""

import json
import signal
from pathlib import Path
from typing import Any, Final

from supervisor.journal.facts import CallStarted, Replied
from tests.cache_meter import CacheMeter
from tests.forked import ForkedStrongroom
from tests.messages_server import MessagesServer, reply

TURNS: Final = 4
STEPS: Final = 50
"""Of each turn, its answer included."""
MANY: Final = 30
"""Calls of some steps: more results than the provider looks back for what it has kept."""


def metered(meter: CacheMeter, number: int, *, last: bool, many: bool) -> dict[str, Any]:
    """Return a response that calls tools, or answers, with the usage that the meter counts."""
    lines = [1 + number + each for each in range(0 if last else MANY if many else 1)]
    calls = [("read_file", {"path": "a.txt", "offset": line}) for line in lines]
    return {"made": lambda body: reply("Done." if last else "", calls, usage=meter.usage(body))}


def test_what_could_come_from_the_cache_does_over_200_steps_and_a_kill(tmp_path: Path) -> None:
    meter = CacheMeter()
    script = [
        metered(meter, step, last=step == STEPS - 1, many=step % 10 == 3) for _ in range(TURNS) for step in range(STEPS)
    ]
    with MessagesServer(script) as server:
        strongroom = ForkedStrongroom.beside_a_root(tmp_path)
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        strongroom.configure("max_steps = 100\n")
        (tmp_path / "in.jsonl").write_text(json.dumps({"id": 1, "prompts": [f"turn {turn}" for turn in range(TURNS)]}))
        words = ("batch", "in.jsonl", "--output", "out.jsonl", "--root", "root", "--model", "claude-test")
        killed = strongroom.run(*words, program=("tests.supervisor.dying", "after", "150"))
        assert killed.code == -signal.SIGKILL
        assert strongroom.run(*words, "--resume").code == 0
        assert server.left == 0
        (last, *_) = [fact.call for fact in reversed(strongroom.facts) if isinstance(fact, CallStarted)]
        why = strongroom.run("why", last).out
    assert "tokens of the request came from the provider's cache" in " ".join(why.split())
    assert len([fact for fact in strongroom.facts if isinstance(fact, Replied)]) == TURNS * STEPS
    assert meter.possible > 1_000_000
    assert meter.reused >= 0.98 * meter.possible
