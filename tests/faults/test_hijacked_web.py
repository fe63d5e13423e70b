"""An attacker's Python in the real web worker, facing the real broker: what it asks for is judged, and nothing else.

After every row: no connection but to a listed host's public address, no look-up of a name that is not listed, and the
next fetch of the same workers ends as it should.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pytest

from supervisor.categories.web import WebConfig
from tests.hostile_worker import hostile_command
from tests.web_world import ADDRESSES, Workers, World
from workers.wire import messages

ASK: Final = """
from workers.wire import frames, messages
end = context.engine._broker._socket
def say(data):
    os.write(end.fileno(), data)
def hear():
    data, ancillary, _, _ = end.recvmsg(4096, 64)
    answer = frames.decode_brokered(data)
    for _, _, numbers in ancillary:
        os.close(int.from_bytes(numbers[:4], sys.byteorder))
    return getattr(answer, "kind", "connected") + (" with a descriptor" if ancillary else "")
def ask(host, port=443):
    say(frames.datagram(messages.Connect(host, port)))
    return hear()
"""

REFUSED: Final = "domain_not_allowed"
JUNK: Final = "invalid_arguments"
GRANTED: Final = "connected with a descriptor"


class Row(NamedTuple):
    name: str
    code: str
    result: Any
    names: dict[str, list[list[str]]] = {}  # noqa: RUF012 - never written


ROWS: Final = [
    Row("a listed host", "result = ask('github.com')", GRANTED),
    Row("another host", "result = ask('evil.com')", REFUSED),
    Row("another port", "result = ask('github.com', 22)", REFUSED),
    Row("this machine", "result = ask('localhost')", REFUSED),
    Row("an address", "result = ask('127.0.0.1')", JUNK),
    Row("a public address of a listed host", "result = ask('140.82.112.3')", JUNK),
    Row("a name behind a NUL", "result = ask('github.com\\0.evil.com')", JUNK),
    Row("a name behind a line end", "result = ask('evil.com\\n.github.com')", JUNK),
    Row("a path", "result = ask('/run/secret.sock')", JUNK),
    Row("junk", "say(b'junk')\nresult = hear()", JUNK),
    Row("a giant", "say(b'x' * 60_000)\nresult = hear()", JUNK),
    Row("an answer", "say(frames.datagram(messages.Connected('127.0.0.1')))\nresult = hear()", JUNK),
    Row("a private address", "result = ask('github.com')", "address_not_allowed", {"github.com": [["10.0.0.1"]]}),
    Row(
        "the second answer of a name",
        "result = ask('github.com'), ask('github.com')",
        (GRANTED, "address_not_allowed"),
        {"github.com": [["140.82.112.3"], ["169.254.169.254"]]},
    ),
    Row("many connections", "result = [ask('github.com') for _ in range(20)]", [GRANTED] * 16 + ["fetch_failed"] * 4),
]


@pytest.fixture(scope="module")
def hijacked(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    root = tmp_path_factory.mktemp("hijacked")
    with Workers(world, root, hostile_command(category="web")) as workers:
        yield workers


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_hijacked_worker_gets_what_the_broker_grants(row: Row, world: World, hijacked: Workers) -> None:
    world.begin(names=row.names)
    answer = hijacked.attack(WebConfig(), ASK + row.code)
    assert isinstance(answer, messages.Done), answer
    assert answer.content == f"did {row.result!r}"
    assert set(world.asked) <= set(ADDRESSES)
    assert set(world.taken) <= set(ADDRESSES.values())
    assert set(world.visits()) <= {"github.com"}
    assert plain_fetch(world, hijacked) == "OK"


def test_a_hijacked_worker_that_asks_without_end_is_replaced(world: World, hijacked: Workers) -> None:
    world.begin()
    deaf = "try:\n    while True:\n        ask('evil.com')\nexcept (frames.FrameError, OSError):\n    result = 'deaf'"
    hijacked.attack(WebConfig(), ASK + deaf)
    assert world.asked == []
    assert [plain_fetch(world, hijacked) for _ in range(3)] == ["OK"] * 3


def test_a_worker_that_ends_by_itself_is_said_to_have_done_so(world: World, hijacked: Workers) -> None:
    world.begin()
    assert str(hijacked.attack(WebConfig(), "os._exit(7)")) == "exited with code 7"
    assert plain_fetch(world, hijacked) == "OK"


def plain_fetch(world: World, workers: Workers) -> str:
    world.begin()
    (answer,) = workers.fetch(WebConfig(), {"url": "https://github.com/x"})
    return answer.content if isinstance(answer, messages.Done) else str(answer)
