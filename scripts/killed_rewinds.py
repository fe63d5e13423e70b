"""Rewindings whose daemon is killed at a random instant: talk and files are as before, or both as at the turn's end.

Rule: nothing is half, whatever the instant. After the last one the journal is whole.
"""

import random
import tempfile
import time
from pathlib import Path
from typing import Final

from scripts.random_histories import NAMES
from supervisor.acp import extensions
from supervisor.config.settings import load
from supervisor.reports.verification import verify
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.histories import call

_TURNS: Final = 2
_LONGEST_S: Final = 0.5
"""Seconds that a rewinding has at most before it is killed."""


def killed_rewinds(count: int, seed: int) -> str:
    """Kill so many; return how many had gone back all the same, in words.

    Raises:
        AssertionError: one was half done, or the journal is broken.
    """
    chance, done = random.Random(seed), 0  # noqa: S311 - to be had again, not secret
    with tempfile.TemporaryDirectory() as place:
        home, root = Path(place, "home"), Path(place, "root")
        root.mkdir()
        files = [f"{name.replace('/', '-')}.txt" for name in NAMES]
        writes = [[call("write_file", path=each, content=f"{turn}\n") for each in files] for turn in range(_TURNS)]
        replies = [reply for calls in writes for reply in ({"calls": calls}, {"text": "written"})]
        daemon = DaemonProcess(home, root)
        daemon.start()
        with daemon.client() as client:
            model = scripted(Path(place, "script.jsonl"), *replies)
            session = client.new_session(root, profile="project", root=str(root), model=model)
            for turn in range(_TURNS):
                client.prompt(session, f"turn {turn}")
        at = _TURNS
        for number in range(count):
            wanted = 1 if at == _TURNS else _TURNS
            with daemon.client() as client:
                client.resume(session)
                client.begin(extensions.REWIND_METHOD, {"sessionId": session, "turn": wanted})
                time.sleep(chance.random() * _LONGEST_S)
                daemon.crash()
            daemon.start()
            with daemon.client() as client:
                at, before = _turns(client, session), at
            there = {(root / each).read_text(encoding="utf-8") for each in files}
            assert there == {f"{at - 1}\n"}, f"kill {number} of seed {seed}: files {there} and {at} turns"
            done += at != before
        daemon.end()
        problem = verify(load({"STRONGROOM_HOME": str(home)})).problem
        assert not problem, problem
    return f"{count} rewindings killed, {done} of them were gone through with, none is half done"


def _turns(client: Lines, session: str) -> int:
    """Return how many turns a client is told of that loads a session."""
    client.load(session)
    return sum(each["sessionUpdate"] == "user_message_chunk" for each in client.updates(session))
