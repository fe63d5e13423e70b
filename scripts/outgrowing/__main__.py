"""Conversations that outgrow their model's window: compactions by the thousand, facts planted over millions of tokens,
and kills at random instants; what was lost is counted.

Rule: the loop, the transcript and the facts are the real ones; the model counts what it is sent, and refuses what its
window does not hold. In the kills the journal is a real one, too, written by a process that SIGKILL ends anywhere.
"""

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, cast

import trio

from supervisor.journal.facts import CallEnded, Compacted, Fact, TurnStarted
from supervisor.journal.journal import Journal, open_journal
from tests.supervisor.agent.long_talk import LongTalk, words
from tests.supervisor.histories import Memory, fault_in_facts

_TURNS: Final = 60
_WINDOWS: Final = (2000, 4000, 9000)
_FACT_WINDOW: Final = 200_000
_FACT_TOKENS: Final = 3_000_000
_SESSION: Final = "s"
_LIVES: Final = 20
"""Processes that go on with one conversation, one after the other."""
_LIFE_S: Final = 0.4
"""Seconds that one of them lives, at most."""


def main() -> int:
    """Return 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="scripts/outgrow", description=__doc__)
    parser.add_argument("--compactions", type=int, default=10_000, metavar="N")
    parser.add_argument("--facts", type=int, default=1_000, metavar="N", help="planted over 3 million tokens")
    parser.add_argument("--kills", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="strongroom-outgrow-") as home:
        base = Path(home)
        problems = trio.run(_compactions, base, options.compactions, options.seed)
        problems += trio.run(_facts, base, options.facts, options.seed)
        problems += _kills(base, options.kills, options.seed)
    for each in problems[:20]:
        print(f"  {each}")
    return 1 if problems else 0


async def _compactions(base: Path, wanted: int, seed: int) -> list[str]:
    """Compact until it was done so often, with models that fail, lie and are cut; return what went wrong."""
    done, turns, refused, summaries, problems = 0, 0, 0, 0, list[str]()
    for number in itertools.count(seed):
        if done >= wanted:
            break
        dice = random.Random(number)  # noqa: S311 - chance, not secrets
        window = dice.choice(_WINDOWS)
        talk = LongTalk(number, Memory(base), window, dice.choice([window, window, 0, window * 9]))
        talk.model.bytes_a_token = dice.choice([2.5, 4.0, 4.0, 6.0])
        for _ in range(_TURNS):
            line = words(dice, dice.choice([5, 30, 200]))
            end = await talk.turn(line, dice.randrange(5), dice.choice([100, 1000, 5000, 50_000]))
            turns += 1
            problems += [f"conversation {number}: a turn ended as {end}"] if end else []
        if not talk.is_as_read_again() or fault_in_facts(talk.memory.facts) or talk.model.faults:
            problems.append(f"conversation {number}: {fault_in_facts(talk.memory.facts)} {talk.model.faults[:1]}")
        done, refused = done + len(talk.compactions), refused + talk.model.refused
        summaries += sum(bool(each.summary) for each in talk.compactions)
    print(
        f"{done} compactions in {turns} turns: {summaries} with a summary, {refused} requests refused by their server, "
        f"{len(problems)} turns or conversations lost"
    )
    return problems


async def _facts(base: Path, facts: int, seed: int) -> list[str]:
    """Plant facts in a person's lines, between results of 3 million tokens in all; return which were lost."""
    talk = LongTalk(seed, Memory(base), _FACT_WINDOW)
    size = _FACT_TOKENS * 4 // facts
    for number in range(facts):
        end = await talk.turn(f"The box {number:04} holds {talk.dice.getrandbits(60):x}.", 1, size)
        if end:
            return [f"turn {number} ended as {end}"]
    lost = talk.lost_lines()
    seen = sum(len(fact.content) for fact in talk.memory.facts if isinstance(fact, CallEnded))
    print(
        f"{facts} facts over {seen // 4} tokens, {len(talk.compactions)} compactions, window {_FACT_WINDOW}: "
        f"{facts - len(lost)} verbatim in the last request of {talk.model.tokens(talk.model.sent[-1])} tokens"
    )
    return [f"lost: {each}" for each in lost]


def _kills(base: Path, kills: int, seed: int) -> list[str]:
    """Kill a process that compacts, anywhere, and go on with its journal; return what went wrong."""
    dice, problems, compactions, rows = random.Random(seed), list[str](), 0, 0  # noqa: S311
    for number in range(kills):
        file = base / f"killed-{number // _LIVES}.db"
        pid = os.fork()
        if pid == 0:
            _live(file, number)
        time.sleep(dice.uniform(0.0, _LIFE_S))
        os.kill(pid, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(pid, 0)[1]):
            problems.append(f"life {number}: it ended by itself")
        with open_journal(file) as journal:
            checked, facts = journal.verify(), [entry.fact for entry in journal.of_session(_SESSION)]
        lines = [fact.text for fact in facts if isinstance(fact, TurnStarted)]
        problems += [f"life {number}: {checked.problem}"] if checked.problem else []
        problems += [f"life {number}: a line was taken twice"] if len(set(lines)) != len(lines) else []
        if number % _LIVES == _LIVES - 1 or number == kills - 1:
            compactions, rows = compactions + sum(isinstance(each, Compacted) for each in facts), rows + len(facts)
    print(f"{kills} kills, {compactions} compactions among {rows} facts: {len(problems)} problems")
    return problems


def _live(file: Path, number: int) -> None:
    """Go on with the conversation until this process is killed, or finds that another would not go on as it does."""
    with open_journal(file) as journal:

        async def turns() -> None:
            talk = LongTalk(number, cast("Memory", _Recorded(journal)))
            await talk.conversation.resume()
            for turn in itertools.count():
                await talk.turn(f"life {number}, line {turn}", 2, 3000)
                if not talk.is_as_read_again() or talk.model.faults:
                    return

        trio.run(turns)
    os._exit(3)


class _Recorded:
    """A journal as a `Memory`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def facts(self) -> list[Fact]:
        return [entry.fact for entry in self._journal.of_session(_SESSION)]

    def as_journal(self) -> Journal:
        return self._journal


if __name__ == "__main__":
    sys.exit(main())
