"""The flow ledger of one session: what its addresses have said since something private was read. Pure.

Rule: an address that nobody was asked about is paid for when its call is recorded, wherever it led: what was refused or
failed may have been heard on the way. A person's yes to an address that the budget does not cover has been told what
had left by then and what may leave next, four times as much, and begins the count anew; any other yes only lets its own
address go, unpaid. Addresses that lead to no allowed site reach nobody and cost nothing. One that the person typed is
paid for, and the first time never asked about.
"""

from collections import deque
from collections.abc import Callable, Sequence
from math import ceil
from typing import Final, NamedTuple

import msgspec

from supervisor.broker.allowlist import Allowlist
from supervisor.categories.web import HostPort, WebConfig
from supervisor.journal.facts import CallStarted, Flow, SourceKind, effective
from supervisor.tools.exfiltration.address_price import COMPOSED, FetchHistory, priced
from supervisor.tools.exfiltration.known_addresses import KnownAddresses, normal
from workers.catalog import CATEGORIES
from workers.url import Url, parse

ADDRESSES: Final = {
    tool.name: tool.subject for category in CATEGORIES.values() for tool in category.tools if tool.kind == "fetch"
}
"""Tools that fetch, and the argument of each that names an address: it may carry out what was read."""

_GROWTH: Final = 4
_GROWS: Final = 2
"""How often the budget grows: who says yes again and again is not asked less and less."""

_CHARACTERS_OF_A_THING: Final = 100
_WAITING: Final = 4 * 2**20
"""Characters of texts that wait for the first address to be priced, the latest ones."""


class FlowBudget(NamedTuple):
    """What may leave a session without a question."""

    bits: int
    addresses: int
    """Composed ones."""
    origins: tuple[str, ...]
    """Where allowed sites begin, those that are named one by one."""
    reaches: Callable[[Url], bool]
    """Says whether an address leads to an allowed site."""


class FlowLedger:
    """What is known, and what was paid."""

    def __init__(self, known: KnownAddresses | None = None, history: FetchHistory | None = None) -> None:
        self._known = known or KnownAddresses()
        self._history = history or FetchHistory()
        self._waiting: deque[tuple[str, SourceKind] | CallStarted] = deque()
        self._waiting_size = 0
        self._later: tuple[list[CallStarted], FlowLedger | None] = ([], None)
        """Calls that were judged last, and the ledger after them."""

    def learn(self, text: str, author: SourceKind) -> None:
        """Take a text into account whose links may be followed."""
        self._waiting.append((text, author))
        self._waiting_size += len(text)
        while self._waiting_size > _WAITING:
            oldest = next(each for each in self._waiting if isinstance(each, tuple))
            self._waiting.remove(oldest)
            self._waiting_size -= len(oldest[0])

    def apply(self, call: CallStarted) -> None:
        """Take a call into account that fetches, if it may."""
        if call.tool in ADDRESSES and (call.decision == "allow" or (call.decision == "ask" and call.approved)):
            self._waiting.append(call)

    def after(self, calls: Sequence[CallStarted]) -> "FlowLedger":
        """Return the ledger as it is once more calls are recorded, for as long as this one stays as it is."""
        if not calls:
            return self
        self.catch_up()
        done, later = self._later
        if later is None or list(calls[: len(done)]) != done:
            done, later = [], FlowLedger(self._known, self._history.copy())
        for each in calls[len(done) :]:
            later.apply(each)
        self._later = list(calls), later
        return later

    def price(self, text: str, budget: FlowBudget) -> Flow | None:
        """Return what fetching an address would say; None where it would reach nobody."""
        address = normal(text)
        if address is None or not budget.reaches(parse(address)):
            return None
        self.catch_up()
        history, grown = self._history, _grown(self._history.yeses)
        bits, way = priced(address, self._known, history, budget.origins)
        much = history.bits + bits > budget.bits * grown
        over = much or (way == COMPOSED and history.composed >= budget.addresses * grown)
        typed_now = address in self._known.typed and address not in history.fetched
        return Flow(round(bits, 3), way, over and not typed_now)

    def told(self) -> str:
        """Return how much has left, as a clause; "" where nothing has."""
        self.catch_up()
        if not self._history.addresses:
            return ""
        bits, count, composed = ceil(self._history.bits), self._history.addresses, self._history.composed
        noun = "address" if count == 1 else "addresses"
        return f"{bits} bits in {count} {noun} have left this session unasked, {composed} of them composed"

    def asks(self, flow: Flow, budget: FlowBudget) -> str:
        """Return why a person should decide about an address that the budget does not cover."""
        says = "the address was composed and" if flow.way == COMPOSED else "the choice of this known address"
        now, then = _grown(self._history.yeses), _grown(self._history.yeses + 1)
        return (
            f"{says} says about {ceil(flow.bits)} bits to its site, and private text was read before; "
            f"{self.told() or 'nothing has left this session unasked'}, of {budget.bits * now} bits in "
            f"{budget.addresses * now} composed addresses that may (`unasked_bits`, `unasked_addresses` in [web]); "
            f"after a yes, {budget.bits * then} bits in {budget.addresses * then} may before the next question"
        )

    @property
    def waiting(self) -> int:
        """Things that `catch_up` goes through, about."""
        return self._waiting_size // _CHARACTERS_OF_A_THING

    def catch_up(self) -> None:
        """Take apart what waits; for no two threads at once."""
        if not self._waiting:
            return
        waiting, self._waiting, self._waiting_size, self._later = self._waiting, deque(), 0, ([], None)
        for each in waiting:
            if isinstance(each, CallStarted):
                self._went(each)
                continue
            number = self._known.learn(*each)
            if number is not None:
                self._history.read(number, page=each[1] == "page")

    def _went(self, call: CallStarted) -> None:
        history, flow = self._history, call.flow
        address = normal(fetched_address(call.tool, effective(call)) or "")
        if address is None:
            return
        history.went(address, self._known)
        if flow is None:
            return
        history.ways[flow.way] += 1
        if call.decision == "allow":
            history.bits += flow.bits
            history.addresses += 1
            history.composed += flow.way == COMPOSED
        elif flow.over:
            history.bits, history.addresses, history.composed = 0.0, 0, 0
            history.yeses += 1


def _grown(yeses: int) -> int:
    """Return how many times the budget may leave unasked after so many answers."""
    return int(_GROWTH ** min(yeses, _GROWS))


def fetched_address(tool: str, arguments: str) -> str | None:
    """Return the address in a call's arguments, raw JSON; None where it has none."""
    try:
        address = msgspec.json.decode(arguments)[ADDRESSES[tool]] if tool in ADDRESSES else None
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        return None  # the tool will refuse it
    return address if isinstance(address, str) else None


def flow_budget(web: WebConfig) -> FlowBudget:
    """Return what may leave a session unasked for the sites of `web`."""
    allowed = Allowlist(web.allow, web.ports)
    origins = tuple(f"https://{host}/" for host in web.allow if "*" not in host)
    return FlowBudget(
        web.unasked_bits, web.unasked_addresses, origins, lambda url: not allowed.why_not(HostPort(url.host, url.port))
    )
