"""Ways to hide a change from whoever reviews it, from a rehearsal to the console: each is seen, or counted."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from supervisor.acp.extensions import ApprovalRequest
from supervisor.clients.console.approval_form import typed_yes
from supervisor.clients.console.proposal_pages import ProposalPages
from supervisor.clients.console.shown import Item, ShownProposal
from supervisor.daemon.protocol import approval_options
from supervisor.display.fragments import plain
from supervisor.display.proposed_effects import presented
from supervisor.rules.suggest import suggested_rule
from tests.raw_worker import RawWorker
from tests.workers.shell.conftest import open_shell
from workers.wire.messages import Proposed

UNSEEN: Final = None
WAYS: Final[dict[str, tuple[str, str | None]]] = {
    "the last line of a long text": ("seq 30000 > f; echo evil >> f", "+evil"),
    "the last word of a long line": ("printf '%0100000d evil\\n' 0 > f", "evil"),
    "behind blanks": ("printf 'x%500sevil\\n' '' > f", "+x [500 blanks] evil"),
    "behind empty lines": ("for i in $(seq 5000); do echo; done > f; echo evil >> f", "+evil"),
    "a carriage return": ("printf 'evil\\rgood\\n' > f", "+evil\\rgood"),
    "a byte that is no text": ("printf 'evil\\xff\\n' > f", "+evil\\xff"),
    "a NUL": ("printf 'good\\0evil\\n' > f", "+good\\x00evil"),
    "UTF-16": ("printf 'e\\0v\\0i\\0l\\0\\n\\0' > f", "(UTF-16 LE, decoded)"),
    "Latin-1": ("printf 'caf\\xe9\\n' > f", "+café"),
    "escape sequences": ("printf 'evil\\x1b[2K\\rgood\\n' > f", "+evil\\x1b[2K\\rgood"),
    "characters without width": ("printf 'ev\\xe2\\x80\\x8bil\\n' > f", "+ev\\u200bil"),
    "tags": ("printf '\\xf3\\xa0\\x81\\x85\\n' > f", "+\\U000e0045"),
    "an order of letters": ("printf '\\xe2\\x80\\xaelive\\n' > f", "+\\u202elive"),
    "other ends of lines": ("printf '# \\xe2\\x80\\xa8evil\\n' > f", "+# \\u2028evil"),
    "blanks at the end": ("printf 'evil \\t\\n' > f", "+evil·→"),
    "a tab for blanks": ("printf '\\tevil\\n' > f", "+→   evil"),
    "no end of the last line": ("printf evil > f", "\\ No newline at end of file"),
    "letters in a name": ("echo > $'p\\xd0\\xb0ypal.py'", "[mixes Latin and Cyrillic]"),
    "blanks in a name": ("echo > $'a\\xe3\\x85\\xa4'", "a\\u3164"),
    "a mode": ("echo x > f; chmod 777 f", "mode 0777"),
    "a frame of its own": ("printf '\\xe2\\x94\\x94 the end\\n' > f", "│ +└ the end"),
    "among large ones": (
        "for i in 1 2 3; do yes $(printf %0200d 7) | head -c 300000 > b$i; done; echo evil > z",
        "+evil",
    ),
    "a program": ("printf '\\x7fELF\\x02\\x01\\x01\\0\\0\\0\\0\\0\\0\\0\\0\\0' > f", UNSEEN),
    "what is too large": ("yes | head -c 5000000 > f", UNSEEN),
    "a named pipe": ("mkfifo f", UNSEEN),
    "a script behind zeros": ("head -c 20000 /dev/zero > f; echo evil >> f", UNSEEN),
}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    root: Path = tmp_path_factory.mktemp("reviewed")
    with open_shell(root) as worker:
        yield worker


@pytest.mark.parametrize("way", WAYS)
def test_what_is_hidden_is_seen_or_counted(worker: RawWorker, way: str) -> None:
    script, seen = WAYS[way]
    proposed = worker.propose("run_cmd", {"command": f"exec bash -c {quoted(script)}"})
    assert isinstance(proposed, Proposed), proposed
    worker.decide(proposed, commit=False)
    request = ApprovalRequest("run_cmd", "{}", "", stage="effects", effects=presented(proposed.effects))
    assert request.effects is not None
    lines: list[str] = []

    def show(item: Item) -> None:
        assert isinstance(item, ShownProposal)
        lines.extend(map(plain, item.lines))

    pages = ProposalPages(request, "", 100, show)
    pages.first(40)
    while pages.unread:
        pages.turn(True)
    assert all(line[:1] in "┌│└" and len(line) <= 100 for line in lines)
    rule = suggested_rule(("bash",), proposed.effects, dt.date(2026, 11, 23))
    first = approval_options.options(request, forms=False)[0]
    if seen is not UNSEEN:
        assert any(seen in line for line in lines)
        assert (request.effects.unseen, typed_yes(request)) == (0, "")
    else:
        assert "│ ! 1 change, 1 unseen; no line below shows them" in lines
        assert (request.effects.unseen, rule, first.kind) == (1, None, "reject_once")
        assert typed_yes(request) == "1 of its changes cannot be seen in full"


def quoted(script: str) -> str:
    """Return a script as one word of another."""
    return "'" + script.replace("'", "'\\''") + "'"
