"""Budgets are never passed: by a meter on the server, with many conversations at once, and when requests get lost."""

from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio
import trio.lowlevel

from supervisor.agent.allowance import USEFUL, BudgetScope, granted
from supervisor.agent.amount import UNIT, Amount, TokenPrice, cost_of, tokens_in
from supervisor.agent.ledger import Ledger, midnight_after, midnight_before
from supervisor.agent.models.chat_api import FORMAT as CHAT
from supervisor.agent.models.messages_api import messages_model
from supervisor.agent.models.model import Model
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.retry import RetryPolicy
from supervisor.agent.turn import SuspendedTurn
from supervisor.config.config_keys import BudgetConfig, BudgetsConfig
from supervisor.config.model_keys import Price
from supervisor.journal.facts import BudgetChanged, BudgetReserved, Replied, TurnSuspended
from supervisor.journal.journal_writer import JournalWriter
from supervisor.session.session import Session
from tests.chat_server import ChatServer, chat_reply
from tests.messages_server import USAGE, MessagesServer, error, reply
from tests.metered_server import MeteredServer
from tests.supervisor.bench import Bench, begun, kinds, vault
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.histories import call, fault_in_facts, scripted

KEY: Final = "sk-ant-secret-CANARY-1"
PRICE: Final = Price(input=1.0, output=5.0, cache_read=0.1, cache_write=1.25)
AT_ONCE: Final = RetryPolicy(first=0.0)


def looks(body: Any) -> list[tuple[str, dict[str, Any]]]:
    """Let each conversation take three steps, no two alike."""
    steps = len(body["messages"]) // 2
    return [("list_files", {"pattern": f"*{steps}"})] if steps < 3 else []


def with_budgets(bench: Bench, **budgets: Any) -> Ledger:
    """Return a ledger that has read the journal anew, as a process that begins does."""
    return Ledger(bench.journal, config=BudgetsConfig(**budgets), price_of={"m": PRICE}.get)


def used_of(ledger: Ledger) -> Amount:
    """Return what all processes have used of the day."""
    ledger.read_others()
    return ledger.today().with_others()[0]


def of(bench: Bench, model: Model, ledger: Ledger) -> Session:
    profile = vault(bench.root)
    earlier = begun(bench.journal, profile, model)
    return Session(JournalWriter(bench.journal), bench.pools, profile, model, earlier, ledger=ledger)


async def asked(session: Session, ends: list[str]) -> None:
    try:
        end = await session.conversation.run_turn("go")
        ends.append(end.status)
    except SuspendedTurn as suspended:
        ends.append(suspended.fact.kind)


BUDGETS: Final[dict[str, dict[str, Any]]] = {
    "tokens of a day": {"day": BudgetConfig(tokens=150_000)},
    "money of a day": {"day": BudgetConfig(cost=0.40)},
    "both": {"day": BudgetConfig(tokens=90_000, cost=0.15), "turn": BudgetConfig(tokens=20_000)},
    "tokens of a turn": {"turn": BudgetConfig(tokens=9_500)},
}


@pytest.mark.parametrize("budgets", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize(("per_token", "many"), [(1, 50), (4, 200)], ids=["a byte a token", "four bytes a token"])
async def test_no_budget_is_passed_by_many_at_once(
    bench: Bench, budgets: dict[str, Any], per_token: int, many: int
) -> None:
    ledger = with_budgets(bench, **budgets)
    ends: list[str] = []
    with trio.fail_after(HANG_GUARD), MeteredServer(looks, per_token=per_token) as server:
        async with (
            aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model,
            trio.open_nursery() as nursery,
        ):
            sessions = [of(bench, model, ledger) for _ in range(many)]
            for session in sessions:
                nursery.start_soon(asked, session, ends)
    day, turn = budgets.get("day"), budgets.get("turn")
    cost = server.billed_input * 1_000_000 + server.billed_output * 5_000_000
    assert len(ends) == many
    assert {"budget"} <= set(ends) <= {"ok", "budget"}
    if day is not None:
        assert day.tokens is None or 0 < server.billed <= day.tokens
        assert day.cost is None or cost <= day.cost * UNIT
        assert ledger.today().used.tokens == server.billed
        assert ledger.today().promised == Amount()
        assert server.billed > 0.5 * (day.tokens or 0)  # and it is used, not merely spared
    for session in sessions:
        spent = session.conversation.transcript.spending.turn
        assert turn is None or spent.tokens <= turn.tokens
        facts = bench.facts(session)
        assert spent.tokens == sum(tokens_in(fact.usage) for fact in facts if isinstance(fact, Replied))
    assert used_of(with_budgets(bench, day=BudgetConfig())).tokens == server.billed


@pytest.mark.parametrize("per_token", [1, 4], ids=["a byte a token", "four bytes a token"])
async def test_processes_of_one_home_do_not_pass_the_budget_of_the_day_together(bench: Bench, per_token: int) -> None:
    ledgers = [with_budgets(bench, day=BudgetConfig(tokens=150_000)) for _ in range(3)]
    ends: list[str] = []
    with trio.fail_after(HANG_GUARD), MeteredServer(looks, per_token=per_token) as server:
        async with (
            aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model,
            trio.open_nursery() as nursery,
        ):
            for number in range(60):
                nursery.start_soon(asked, of(bench, model, ledgers[number % 3]), ends)
    assert len(ends) == 60
    assert {"budget"} <= set(ends) <= {"ok", "budget"}
    assert 75_000 < server.billed <= 150_000
    for ledger in ledgers:
        assert used_of(ledger) == used_of(with_budgets(bench, day=BudgetConfig()))
        assert ledger.today().others_promised == Amount()


@pytest.mark.parametrize("told", [{}, {"input_tokens": 9}, {"output_tokens": 9}], ids=["none", "no reply", "no prompt"])
async def test_a_reply_whose_server_does_not_say_what_it_took_counts_in_full(
    bench: Bench, told: dict[str, int]
) -> None:
    ledger = with_budgets(bench, day=BudgetConfig(tokens=100_000))
    with trio.fail_after(HANG_GUARD), MessagesServer([reply("yes", usage=told)]) as server:
        async with aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model:
            session = of(bench, model, ledger)
            await session.conversation.run_turn("go")
    (reserved,) = (fact for fact in bench.facts(session) if isinstance(fact, BudgetReserved))
    assert ledger.today().used.tokens == session.conversation.transcript.spending.session.tokens == reserved.tokens


async def test_a_reply_that_gets_lost_counts_in_full(bench: Bench) -> None:
    ledger = with_budgets(bench, day=BudgetConfig(tokens=60_000))
    ends: list[str] = []
    with trio.fail_after(HANG_GUARD), MeteredServer(looks, cuts=lambda number: number % 3 == 0) as server:
        async with (
            aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model,
            trio.open_nursery() as many,
        ):
            for _ in range(20):
                many.start_soon(asked, of(bench, model, ledger), ends)
    assert {"budget"} <= set(ends) <= {"ok", "budget"}
    assert server.billed <= ledger.today().used.tokens <= 60_000
    assert used_of(with_budgets(bench, day=BudgetConfig(tokens=60_000))) == ledger.today().used


async def test_a_request_that_was_refused_counts_nothing(bench: Bench) -> None:
    ledger = with_budgets(bench, session=BudgetConfig(tokens=100_000))
    with trio.fail_after(HANG_GUARD), MessagesServer([error(500, "no")] * 2 + [error(401, "no")]) as server:
        async with aclosing(messages_model("m", KEY, server.url, retries=AT_ONCE)) as model:
            session = of(bench, model, ledger)
            end = await session.conversation.run_turn("go")
    assert end.kind == "authentication"
    assert session.conversation.transcript.spending.session.tokens == 0
    assert ledger.today().used == Amount()


@pytest.mark.parametrize("stays_open", [False, True], ids=["cancelled", "left as by a crash"])
async def test_a_request_that_was_cut_counts_in_full_also_for_the_next_process(bench: Bench, stays_open: bool) -> None:
    ledger = with_budgets(bench, day=BudgetConfig(tokens=100_000))
    with trio.fail_after(HANG_GUARD), MessagesServer([{"sse": "", "then": "hang"}, reply("yes")]) as server:
        async with aclosing(messages_model("m", KEY, server.url)) as model:
            session = of(bench, model, ledger)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.conversation.run_turn, "go")
                while not server.requests:
                    await trio.lowlevel.checkpoint()
                if stays_open:
                    session.conversation.leave_open()
                nursery.cancel_scope.cancel()
            reserved = [fact for fact in bench.facts(session) if isinstance(fact, BudgetReserved)]
            assert len(reserved) == 1
            assert reserved[0].tokens > 8192
            for each in (ledger, with_budgets(bench, day=BudgetConfig(tokens=100_000))):
                assert used_of(each).tokens == reserved[0].tokens
            ledger.config = BudgetsConfig()
            await (session.conversation.resume() if stays_open else session.conversation.run_turn("go"))
    told = sum(USAGE.values())  # of another request, which no budget counts
    assert used_of(with_budgets(bench, day=BudgetConfig(tokens=100_000))).tokens == reserved[0].tokens + told


async def test_the_longest_reply_is_what_the_budget_still_holds(bench: Bench) -> None:
    with trio.fail_after(HANG_GUARD), MessagesServer([reply("short")], repeat_last=True) as server:
        async with aclosing(messages_model("m", KEY, server.url)) as model:
            free = of(bench, model, with_budgets(bench))
            await free.conversation.run_turn("go")
            session = of(bench, model, with_budgets(bench, turn=BudgetConfig(tokens=11_000)))
            await session.conversation.run_turn("go")
    most = [body["max_tokens"] for body in server.bodies]
    assert most[0] == 8192
    assert USEFUL <= most[1] < 8192


async def test_a_reply_that_a_budget_counts_is_not_asked_for_without_a_limit(bench: Bench) -> None:
    def judge(body: Any) -> str | None:
        return "max_tokens is too large" if body.get("max_tokens", 0) > 5000 else None

    with trio.fail_after(HANG_GUARD), ChatServer([chat_reply("yes")], judge=judge) as server:
        async with aclosing(RemoteModel("m", KEY, server.url, CHAT)) as model:
            session = of(bench, model, with_budgets(bench, turn=BudgetConfig(tokens=100_000)))
            assert (await session.conversation.run_turn("go")).status == "ok"
    assert [body["max_tokens"] for body in server.bodies] == [8192, 4096]


async def test_without_a_budget_nothing_is_reserved(bench: Bench, tmp_path: Path) -> None:
    session = of(bench, scripted(tmp_path, {"text": "yes"}), with_budgets(bench))
    await session.conversation.run_turn("go")
    assert "BudgetReserved" not in kinds(bench.facts(session))


async def suspended(session: Session, do: Callable[[], Any]) -> TurnSuspended:
    with trio.fail_after(HANG_GUARD), pytest.raises(SuspendedTurn) as found:
        await do()
    return found.value.fact


async def test_a_turn_goes_on_where_it_was_when_its_budget_is_raised(bench: Bench, tmp_path: Path) -> None:
    usage = {"input_tokens": 3000, "output_tokens": 3000}
    lines = [{"calls": [call("list_files", pattern=f"*{n}")], "usage": usage} for n in range(3)]
    session = of(
        bench, scripted(tmp_path, *lines, {"text": "yes"}), with_budgets(bench, turn=BudgetConfig(tokens=12_000))
    )
    fact = await suspended(session, lambda: session.conversation.run_turn("go"))
    assert "12,000 of 12,000 tokens" in fact.why
    assert fact.tokens > 3000
    before = bench.facts(session)
    await suspended(session, session.conversation.resume)
    assert bench.facts(session) == before
    session.conversation.change_budget(BudgetChanged("turn", tokens=200_000, by="console"))
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.resume()
    assert end is not None
    assert end.answer == "yes"
    facts = bench.facts(session)
    assert kinds(facts).count("Replied") == 4
    assert fault_in_facts(facts) is None


async def test_money_without_a_price_is_not_guessed(bench: Bench) -> None:
    with MessagesServer([reply("no")]) as server:
        async with aclosing(messages_model("unknown", KEY, server.url)) as model:
            session = of(bench, model, with_budgets(bench, session=BudgetConfig(cost=1.0)))
            fact = await suspended(session, lambda: session.conversation.run_turn("go"))
        assert server.requests == []
    assert "No price of the model unknown is known in USD" in fact.why


async def test_the_budget_of_a_day_comes_back_at_midnight(bench: Bench, tmp_path: Path) -> None:
    now = [midnight_before(1_800_000_000) + 3600]
    ledger = Ledger(bench.journal, lambda: now[0], BudgetsConfig(day=BudgetConfig(tokens=10_000)))
    session = of(bench, scripted(tmp_path, *[{"text": "yes", "usage": {"output_tokens": 9000}}] * 2), ledger)
    with suppress(SuspendedTurn):
        await session.conversation.run_turn("go")
    fact = await suspended(session, lambda: session.conversation.run_turn("go"))
    assert fact.until == midnight_after(now[0])
    now[0] = fact.until + 1
    session.conversation.resumption.clock = lambda: now[0]
    with trio.fail_after(HANG_GUARD):
        end = await session.conversation.resume()
    assert end is not None
    assert end.status == "ok"


SCOPE: Final = BudgetScope("turn", BudgetConfig(tokens=100, cost=1e-4, seconds=1.0), Amount(40, 0, 0))
ROOMS: Final[list[tuple[str, BudgetScope, int, int]]] = [
    ("by tokens", SCOPE, 10, 10),
    ("by the rest of the tokens", SCOPE._replace(used=Amount(85, 0, 0)), 10, 5),
    ("not even the input", SCOPE._replace(used=Amount(95, 0, 0)), 10, -5),
    ("by money", SCOPE._replace(budget=BudgetConfig(cost=4e-5)), 10, 6),
    ("by no money", SCOPE._replace(budget=BudgetConfig(cost=0.0)), 10, -2),
    ("by time", SCOPE._replace(used=Amount(0, 0, 1000)), 10, -1),
    ("unlimited", SCOPE._replace(budget=BudgetConfig()), 10, 10),
]


@pytest.mark.parametrize(("scope", "most", "output"), [row[1:] for row in ROOMS], ids=[row[0] for row in ROOMS])
def test_how_long_a_reply_may_be(scope: BudgetScope, most: int, output: int) -> None:
    assert granted([scope], 10, most, TokenPrice(1_000_000, 5_000_000)).output == output


def test_money_is_counted_exactly() -> None:
    usage = {"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 11, "cache_creation_input_tokens": 13}
    assert cost_of(usage, PRICE) == 3 * 1_000_000 + 7 * 5_000_000 + 11 * 100_000 + 13 * 1_250_000
    assert cost_of(usage, Price(1.0, 5.0)) == 3 * 1_000_000 + 7 * 5_000_000 + 11 * 1_000_000 + 13 * 1_250_000
    assert tokens_in(usage) == 34
    assert TokenPrice.of(PRICE) == TokenPrice(1_250_000, 5_000_000)
