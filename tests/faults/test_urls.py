"""Every row of the URL corpora: a real call of fetch_url, in a real worker, by the real broker, at real TLS servers.

After every row: no connection to an address that is not one of a listed host's, no look-up of a name that is not
listed, no CANARY anywhere, and the next plain fetch works.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from supervisor.categories.web import WebConfig
from supervisor.errors import WorkerDied
from tests.corpus_rows import rows, value
from tests.web_server import Visit
from tests.web_world import ADDRESSES, Answer, Workers, World
from workers.wire import messages

ROWS: Final = rows("urls.json", "more_urls.json")

HASTY_S: Final = 0.5
"""Seconds for a fetch in rows where the network or a server lets it wait for ever."""

SLOW: Final = {"dribble", "dribble_headers", "headers_hang", "never", "stall_after", "status_1xx_forever"}


class Outcome(NamedTuple):
    """What a row did."""

    answer: Answer
    visits: Mapping[str, list[Visit]]
    asked: list[str]
    taken: list[str]
    peak_mb: float

    @property
    def result(self) -> str | None:
        return self.answer.content if isinstance(self.answer, messages.Done) else None

    @property
    def text(self) -> str:
        """Everything that the model is told."""
        if isinstance(self.answer, messages.Failed):
            return self.answer.message
        return (
            f"{self.answer.content}\n{self.answer.note}" if isinstance(self.answer, messages.Done) else str(self.answer)
        )

    @property
    def kind(self) -> str:
        if isinstance(self.answer, WorkerDied):
            return self.answer.ordered or "worker_crashed"
        return self.answer.kind if isinstance(self.answer, messages.Failed) else "done"

    @property
    def requests(self) -> list[Visit]:
        return [visit for seen in self.visits.values() for visit in seen if visit.request]


@pytest.fixture(scope="module")
def workers(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    with Workers(world, tmp_path_factory.mktemp("web")) as workers:
        yield workers


def config(row: Mapping[str, Any]) -> WebConfig:
    """Return the operator's decisions for a row: the defaults, or its own, and less patience where it must wait."""
    setup = row.get("setup", {})
    waits = (
        "hang" in setup.get("dns", {}).values()
        or "hang" in setup.get("connect", {}).values()
        or "hang_in_handshake" in setup.get("tls", {}).values()
        or any(SLOW & set(page.get("body", {})) for page in setup.get("http", {}).values())
    )
    given = dict(row.get("web", {}))
    given = {key: tuple(inner) if isinstance(inner, list) else inner for key, inner in given.items()}
    return WebConfig(**{**({"fetch_s": HASTY_S} if waits else {}), **given})


def play(row: Mapping[str, Any], world: World, workers: Workers) -> Outcome:
    setup = value(row.get("setup", {}))
    world.begin(names=setup.get("dns"), roads=setup.get("connect"), pages=setup.get("http"), faults=setup.get("tls"))
    (answer,) = workers.fetch(config(row), {"url": value(row["url"])})
    visits = world.visits()
    return Outcome(answer, visits, list(world.asked), list(world.taken), max(map(peak_mb, workers.pids()), default=0))


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has had at once."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


def connected_hosts(outcome: Outcome) -> set[str]:
    owners = {address: host for host, address in ADDRESSES.items()}
    return {owners.get(address, address) for address in outcome.taken}


CHECKS: Final[Mapping[str, Callable[[Outcome, Any], bool]]] = {
    "no_connect": lambda done, _: (done.taken, done.visits) == ([], {}),
    "connect_only": lambda done, wanted: set(done.taken) <= set(wanted),
    "connect_only_hosts": lambda done, wanted: connected_hosts(done) | set(done.visits) <= set(wanted),
    "connects": lambda done, wanted: done.taken == wanted,
    "dns_queries_max": lambda done, most: len(done.asked) <= most,
    "no_dns": lambda done, _: done.asked == [],
    "no_plaintext": lambda done, _: not any(visit.plaintext for seen in done.visits.values() for visit in seen),
    "tls_name": lambda done, name: {visit.server_name for visit in done.requests} <= {name},
    "request_lacks": lambda done, word: not any(word.encode() in visit.request for visit in done.requests),
    "request_lacks_header": lambda done, name: not any(name in visit.headers for visit in done.requests),
    "requested": lambda done, wanted: [visit.headers["host"] + visit.target for visit in done.requests] == wanted,
    "requests_max": lambda done, most: len(done.requests) <= most,
    "max_ms": lambda _done, _most: True,  # the call has ended: within PATIENCE, or it would have failed
    "max_rss_mb": lambda done, most: 0 < done.peak_mb <= most,
    "max_result_bytes": lambda done, most: len(done.text.encode()) <= most,
    "mentions": lambda done, word: word in done.text,
    "result": lambda done, text: done.result in {None, text},
    "tui_safe": lambda done, _: done.text.replace("\n", "").replace("\t", "").isprintable(),
}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['id']} {row['class']}" for row in ROWS])
def test_a_row_ends_as_it_says(
    row: dict[str, Any],
    world: World,
    workers: Workers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    setup = row.get("setup", {})
    if setup.keys() & {"env", "netrc"}:
        for name, inner in setup.get("env", {}).items():
            monkeypatch.setenv(name, inner)
        monkeypatch.setenv("HOME", str(tmp_path))
        (tmp_path / ".netrc").write_text(setup.get("netrc", ""))
        workers.retire()  # the next ones are started with that about them

    outcome = play(row, world, workers)

    kinds = {"allow": ["done"], "either": ["done", *row.get("kind", [])]}.get(row["expect"], row.get("kind", []))
    assert outcome.kind in kinds, outcome.text
    for check in row.get("checks", []):
        ((name, wanted),) = check.items()
        assert CHECKS[name](outcome, value(wanted)), (check, outcome)

    allowed = config(row).allow
    assert [name for name in outcome.asked if name not in allowed and not covered(name, allowed)] == []
    assert set(outcome.taken) <= {*ADDRESSES.values(), *row.get("addresses", [])}
    assert "stray" not in outcome.visits or row.get("addresses")
    sent = b"".join(visit.plaintext + visit.request for seen in outcome.visits.values() for visit in seen)
    assert "CANARY" not in outcome.text + caplog.text
    assert b"CANARY" not in sent
    then = play(value(setup.get("then", {"url": "https://elixirforum.com/after"})), world, workers)
    assert (then.kind, then.result) == ("done", "OK"), then.text


def covered(name: str, allowed: tuple[str, ...]) -> bool:
    """Say whether a starred entry covers a name."""
    return any(entry.startswith("*.") and name.endswith(entry[1:].lower().rstrip(".")) for entry in allowed)


def contents(answers: list[Answer]) -> list[object]:
    return [answer.content if isinstance(answer, messages.Done) else answer for answer in answers]


def test_several_fetches_run_at_the_same_time_in_several_workers(world: World, workers: Workers) -> None:
    world.begin(pages={"github.com/together": {"body": {"meet": 4}}})
    answers = workers.fetch(WebConfig(), *[{"url": "https://github.com/together"}] * 4)
    assert contents(answers) == ["4 met here"] * 4


def test_a_hanging_name_holds_up_nobody_else(world: World, workers: Workers) -> None:
    world.begin(names={"hexdocs.pm": "hang"})
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(workers.fetch, WebConfig(), *[{"url": "https://hexdocs.pm/slow"}] * 2)
        quick = workers.fetch(WebConfig(), *[{"url": "https://github.com/quick"}] * 2)
        workers.run(world.release)
    assert [contents(quick), contents(slow.result())] == [["OK", "OK"]] * 2
    assert sorted(world.asked) == ["github.com"] * 2 + ["hexdocs.pm"] * 2


def test_a_fetch_that_is_cancelled_while_its_connection_is_made_leaves_nothing_open(
    world: World, workers: Workers
) -> None:
    world.begin()
    workers.fetch(WebConfig(), {"url": "https://github.com/x"})  # from here on the template runs
    world.begin(roads={"140.82.112.3": "hang"})
    workers.retire()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        workers.run(workers.abandon, WebConfig(), {"url": "https://github.com/x"})
    workers.retire()
    assert world.taken == ["140.82.112.3"] * 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_name_that_changes_between_two_fetches_is_judged_each_time(world: World, workers: Workers) -> None:
    world.begin(names={"github.com": [["140.82.112.3"], ["127.0.0.1"], ["140.82.112.3"], ["140.82.112.3", "::1"]]})
    answers = [workers.fetch(WebConfig(), {"url": "https://github.com/x"})[0] for _ in range(4)]
    kinds = [answer.kind if isinstance(answer, messages.Failed) else "done" for answer in answers]
    assert kinds == ["done", "address_not_allowed"] * 2
    assert world.taken == ["140.82.112.3"] * 2
