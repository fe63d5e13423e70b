"""A batch over many roots holds the workers of a few, however many there are."""

import json
import threading
from pathlib import Path
from typing import Final

from supervisor.journal.facts import CallEnded
from tests.messages_server import MessagesServer, Recorded, reply
from tests.supervisor.clients.shared import Guest
from tests.supervisor.command import Family, Strongroom, children, finished

ROOTS: Final = 7
KEPT: Final = 5
"""The one that is worked on, and those that the daemon keeps for whoever may come back."""
EACH: Final = 2
"""Workers on a root that has had one call: the one that did it, and a warm spare."""


def test_a_batch_over_many_roots_keeps_the_workers_of_a_few(strongroom: Strongroom, tmp_path: Path) -> None:
    """Every second request is the one after an item's call: then the item's worker is there."""
    items = []
    for number in range(ROOTS):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.txt").write_text(str(number))
        items.append(json.dumps({"id": number, "prompt": "go", "root": str(number)}))
    (tmp_path / "in").write_text("\n".join(items))

    started = threading.Event()
    families: list[list[int]] = []

    def look(_request: Recorded) -> None:
        started.wait(10)
        if len(server.requests) % 2 == 0:
            families.append(children(process.pid))

    replies = [reply(calls=[("read_file", {"path": "a.txt"})]), reply("done")] * ROOTS
    with MessagesServer(replies, on_request=look) as server:
        strongroom.environment["ANTHROPIC_BASE_URL"] = server.url
        process = strongroom.start("batch", "in", "--output", "out", "--model", "m")
        started.set()
        done = finished(process)
    assert (done.code, done.err) == (0, "")
    assert [fact.ok for fact in strongroom.facts if isinstance(fact, CallEnded)] == [True] * ROOTS
    daemon = 1
    assert max(len(family) for family in families) <= daemon + KEPT * EACH
    assert Family(families[-1]).is_gone()


def test_a_root_that_several_items_share_keeps_its_workers_until_the_last(guest: Guest, root: Path) -> None:
    lines = "".join(f"write {number}.txt: x; read {number}.txt\n" for number in range(8))
    (guest.folder / "in").write_text(lines)
    arguments = ("--output", "out", "--root", "root", "--model", "offline", "--concurrency", "3")
    assert guest.run("batch", "in", *arguments).code == 0
    assert {fact.kind for fact in guest.facts if isinstance(fact, CallEnded)} <= {None, "not_found"}
    assert len([fact for fact in guest.facts if isinstance(fact, CallEnded)]) == 8
