"""Contexts of local models: whatever a conversation holds and however a model counts, nothing of it is cut silently."""

import base64
import json
import random
import re
from collections.abc import Callable
from typing import Any, Final

import pytest

from supervisor.agent.models.model import Message, ModelRequest
from supervisor.agent.models.ollama_context import ContextPlan, Counted, check_uncut, plan
from supervisor.agent.models.ollama_model import OllamaModel
from supervisor.errors import ModelError
from supervisor.tools.catalog import offers
from tests.ollama_server import MODEL, OllamaServer, quarter, reply
from tests.supervisor.asked_model import KEY, QUICK, Asked, asked_of
from tests.supervisor.model_requests import kept, result, user

_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]|\s+|[^\w\s]|\w", re.ASCII)


def pieces(text: str) -> int:
    """Count as a tokenizer with a small vocabulary does: words in pieces of five letters, digits one by one."""
    return sum(-(-len(each) // 5) if each.isalpha() and each.isascii() else 1 for each in _PIECE.findall(text))


TOKENIZERS: Final[dict[str, Callable[[str], int]]] = {
    "a quarter of the bytes": quarter,
    "a third": lambda text: len(text.encode()) // 3 + 1,
    "half": lambda text: len(text.encode()) // 2 + 1,
    "pieces of words": pieces,
    "characters in a text that is not ASCII": lambda text: len(text) // 4 + sum(not each.isascii() for each in text),
}
WORDS: Final = ["the", "quick", "brown", "fox", "jumps", "over", "internationalization", "of", "everything", "matters"]


def prose(dice: random.Random, size: int) -> str:
    return " ".join(dice.choices(WORDS, k=size // 5))


def code(dice: random.Random, size: int) -> str:
    return "\n".join(f"    if {dice.choice(WORDS)}[{n}] >= self._size: return {{'x': {n}}}" for n in range(size // 50))


def encoded(dice: random.Random, size: int) -> str:
    return base64.b64encode(dice.randbytes(size * 3 // 4)).decode()


def hexadecimal(dice: random.Random, size: int) -> str:
    return dice.randbytes(size // 2).hex()


def chinese(dice: random.Random, size: int) -> str:
    return "".join(chr(dice.randrange(0x4E00, 0x9FA5)) for _ in range(size // 3))


def table(dice: random.Random, size: int) -> str:
    return json.dumps([{"id": n, "value": dice.random(), "name": dice.choice(WORDS)} for n in range(size // 60)])


TEXTS: Final = [prose, prose, code, code, table, encoded, hexadecimal, chinese]


async def converse(asked: Asked, dice: random.Random, window: int, tools: list[dict[str, Any]]) -> int:
    """Hold a conversation until it does not fit or has gone on for long; return how many replies there were."""
    messages: list[Message] = [user(prose(dice, 200))]
    origins: dict[int, Any] = {}
    for step in range(12):
        sent = ModelRequest("You are a test. " * 40, tools, messages, step, origins=origins)
        try:
            answer = await asked.reply(sent)
        except ModelError as error:
            refused = error.kind == "context_full" and "Send less at once" in str(error)
            assert refused, error  # noqa: PT017 - where it ends is chance's to say
            return step
        told, origin = kept(answer, *(f"c{step}_{n}" for n in range(len(answer.calls))))
        origins[len(messages)] = origin
        results = [
            result(block["id"], dice.choice(TEXTS)(dice, dice.randrange(1, window)))
            for block in told["content"]
            if block["type"] == "tool_use"
        ]
        messages += [told, user(*results) if results else user(dice.choice(TEXTS)(dice, window // 4))]
    return 12


@pytest.mark.corpus
@pytest.mark.parametrize("refuses", [False, True], ids=["an old server", "a new server"])
@pytest.mark.parametrize("tokens", TOKENIZERS.values(), ids=TOKENIZERS)
async def test_of_long_conversations_none_is_cut_silently(tokens: Callable[[str], int], refuses: bool) -> None:
    dice = random.Random(5)
    tools = [each.as_api() for each in offers(["read_file", "write_file", "list_files"]).values()]
    answers = [
        reply("so", [("read_file", {"path": "a"})] * 2, thoughts=["Hm. " * 50]),
        reply("done"),
        reply(calls=[("list_files", {"pattern": "**"})]),
    ]
    replies = ended = 0
    for _ in range(25):
        window = dice.choice([8192, 16_384, 32_768])
        with OllamaServer([], window=window, tokens=tokens, refuses=refuses) as server:
            server.add(*(dice.choice(answers) for _ in range(12)))
            options = {**QUICK, "provider": "ollama", "served_as": MODEL}
            async with asked_of(Asked(OllamaModel("ollama/x", KEY, server.url, **options)), server) as asked:
                count = await converse(asked, dice, window, tools)
        assert server.cuts == [False] * count
        assert server.loads <= 4
        replies, ended = replies + count, ended + (count < 12)
    assert replies > 50
    assert ended > 5


# plans ------------------------------------------------------------------------------------------------------

TOOLS: Final = [{"type": "function", "function": {"name": "read_file", "description": "Read.", "parameters": {}}}]


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def planned(*messages: dict[str, Any], counted: Counted | None = None, **more: Any) -> ContextPlan:
    limits = {"wanted": 1000, "window": 131_072, **more}
    return plan([said("You are a test.", "system"), *messages], TOOLS, counted, **limits)


def test_a_context_grows_in_steps_so_that_the_model_is_seldom_loaded_anew() -> None:
    asked_for = [planned(*[said("a text " * 200)] * steps).context for steps in range(1, 101)]
    assert asked_for == sorted(asked_for)
    assert sorted(set(asked_for)) == [8192, 16_384, 32_768, 65_536, 131_072]


def test_a_context_does_not_shrink_below_what_the_model_has() -> None:
    assert planned(said("hi"), floor=32_768).context == 32_768
    assert planned(said("hi"), floor=32_768, window=16_384).context == 16_384


def test_a_reply_never_has_more_than_what_is_left() -> None:
    told = planned(said("a text " * 3000), wanted=30_000, window=16_384)
    assert told.context == 16_384
    assert 512 <= told.reply < 16_384 - len("a text " * 3000) // 4


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ModelError, match=r"about \d+ tokens and the model's context 8192") as caught:
        planned(said("a text " * 5000), window=8192)
    assert caught.value.kind == "context_full"


def test_a_count_of_the_server_corrects_the_estimate_in_both_directions() -> None:
    long, short = said("a text " * 4000), said("go on")
    with pytest.raises(ModelError):
        planned(long, said("so", "assistant"), short, window=14_000)
    fits = planned(long, said("so", "assistant"), short, window=14_000, counted=Counted(7000, 2))
    assert fits.context == 14_000
    with pytest.raises(ModelError):
        planned(long, said("so", "assistant"), short, window=28_000, counted=Counted(27_000, 2))


def test_images_count_as_such_and_not_as_letters() -> None:
    assert planned({**said("look"), "images": ["A" * 10**6] * 2}).context == 8192
    with pytest.raises(ModelError):
        planned({**said("look"), "images": ["A"] * 9}, window=8192)


@pytest.mark.parametrize(("read", "cut"), [(0, False), (500, False), (8190, False), (99, True), (8192, True)])
def test_a_count_that_is_not_of_all_that_was_sent_is_noticed(read: int, cut: bool) -> None:
    found = ContextPlan(context=8192, reply=1000, least=100)
    if not cut:
        check_uncut(read, found)
        return
    with pytest.raises(ModelError, match="has left out a part of the conversation") as caught:
        check_uncut(read, found)
    assert caught.value.kind == "context_full"
