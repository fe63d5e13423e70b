"""The real client library, over real HTTP, against a server that does what servers do."""

import base64
import copy
import gc
import json
import socket
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import ExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import trio
import trio.testing

from supervisor.agent.models.anthropic import PROVIDER
from supervisor.agent.models.messages_api import messages_model
from supervisor.agent.models.model import ModelOptions, ModelRequest, Progress, Reply, Retrying, ThoughtDelta
from supervisor.agent.models.providers import secrets
from supervisor.agent.models.retry import RetryPolicy
from supervisor.agent.models.server_check import checked
from supervisor.config.config_keys import NetworkConfig
from supervisor.config.settings import load
from supervisor.errors import ConfigError, ModelError
from supervisor.journal.facts import ReplyOrigin
from tests.each_row import each_row
from tests.loopback import Loopback
from tests.messages_server import USAGE, MessagesServer, block, end, error, event, fault_in, reply, start, text_block
from tests.script_server import Recorded, Response, refusing_port, silent_port
from tests.supervisor.asked_model import AT_ONCE, KEY, Asked
from tests.supervisor.command import CODE, HANG_GUARD
from tests.supervisor.model_requests import ASK, TOOL, user

HALF: Final = start() + text_block(0, "par")
CUT: Final = {"sse": HALF}
RESET: Final = {"sse": HALF, "then": "reset"}
DONE: Final = reply("done")


@asynccontextmanager
async def asking_at(url: str, **options: Any) -> AsyncIterator[Asked]:
    options = {"retries": AT_ONCE, "chance": lambda: 0.0, "idle_timeout": HANG_GUARD, **options}
    async with aclosing(messages_model("claude-test", KEY, url, **options)) as model:
        await model.warm()
        with trio.fail_after(HANG_GUARD):
            yield Asked(model)


@asynccontextmanager
async def asking(responses: Iterable[Response], **options: Any) -> AsyncIterator[Asked]:
    """Ask a server that answers so, which is `asked.server`; it takes those of the options that are its own."""
    its_own = {name: options.pop(name) for name in ("checked", "repeat_last", "on_request") if name in options}
    with MessagesServer(responses, **its_own) as server:
        async with asking_at(server.url, **options) as asked:
            asked.server = server
            yield asked


async def replied(responses: Iterable[Response], request: ModelRequest = ASK, **options: Any) -> tuple[Reply, Asked]:
    async with asking(responses, **options) as asked:
        return await asked.reply(request), asked


async def failed(responses: Iterable[Response], request: ModelRequest = ASK, **more: Any) -> tuple[ModelError, Asked]:
    async with asking(responses, **more) as asked:
        return await asked.error(request), asked


# replies ---------------------------------------------------------------------------------------------------


async def test_text_arrives_in_order_and_the_reply_is_whole() -> None:
    answer, asked = await replied([reply(["he", "llo ", "café 😀"], usage={"input_tokens": 7, "output_tokens": 9})])
    usage = {"input_tokens": 7, "output_tokens": 9}
    origin = ReplyOrigin("anthropic", "claude-test")
    assert answer == Reply([{"type": "text", "text": "hello café 😀"}], "end_turn", usage, origin=origin)
    assert "".join(asked.text) == "hello café 😀"


async def test_thinking_is_shown_and_goes_back_unchanged() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "signature_delta", "signature": "c2ln"},
    )
    async with asking([start() + thinking + text_block(1, "ok") + end(), DONE]) as asked:
        answer = await asked.reply()
        history = [user(), {"role": "assistant", "content": answer.content}, user("go on")]
        await asked.reply(ModelRequest("", [], history, 1))
    assert asked.shown[0] == ThoughtDelta("Hm.")
    assert asked.server.bodies[1]["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "ok"},
    ]


async def test_the_events_are_shown_as_they_come_and_not_at_the_end() -> None:
    seen = trio.Event()
    async with asking([{"sse": HALF, "then": "hang"}]) as asked, trio.open_nursery() as nursery:
        nursery.start_soon(asked.model.reply, ASK, lambda _: seen.set())
        await seen.wait()
        nursery.cancel_scope.cancel()


async def test_an_error_with_a_status_that_says_all_is_well_is_told_in_its_words() -> None:
    body = '{"type": "error", "error": {"type": "overloaded_error", "message": "come back later"}}'
    async with asking([{"status": 200, "body": body}, DONE]) as asked:
        assert (await asked.reply()).text == "done"
    assert [(each.kind, "come back later" in each.message) for each in asked.retries] == [("overloaded", True)]


@pytest.mark.parametrize("more", [{}, {"then": "reset"}, {"then": "hang"}], ids=["end", "reset", "silence"])
async def test_a_reply_that_has_said_why_it_stopped_needs_no_more(more: dict[str, str]) -> None:
    unended = (
        start({**USAGE, "output_tokens": 1}) + text_block(0, "all of it") + end().partition("event: message_stop")[0]
    )
    answer, asked = await replied([{"sse": unended, **more}], rest_timeout=0.05)
    assert (answer.text, answer.stop_reason, asked.retries) == ("all of it", "end_turn", [])
    assert answer.usage["output_tokens"] == USAGE["output_tokens"]


async def test_data_after_the_end_is_read_and_ignored() -> None:
    late = "event: ping\ndata: {}\n\n" * 3
    async with asking([{"sse": DONE + late, "gap": 0.001}, DONE]) as asked:
        assert (await asked.reply()).text == "done"
        await asked.reply()
    assert {request.connection for request in asked.server.requests} == {0}


# requests --------------------------------------------------------------------------------------------------


async def test_the_request_says_what_was_asked_and_marks_the_prefix_for_the_cache() -> None:
    history = [user("one"), {"role": "assistant", "content": [{"type": "text", "text": "two"}]}, user("three")]
    _, asked = await replied([DONE], ModelRequest("Be brief.", [TOOL], history, 1, ModelOptions(max_tokens=77)))
    mark = {"type": "ephemeral"}
    assert asked.server.bodies == [
        {
            "model": "claude-test",
            "max_tokens": 77,
            "stream": True,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
            "tools": [TOOL],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": mark}]},
                history[1],
                {"role": "user", "content": [{"type": "text", "text": "three", "cache_control": mark}]},
            ],
        }
    ]


async def test_without_a_system_prompt_the_last_tool_is_marked() -> None:
    async with asking([DONE, DONE]) as asked:
        await asked.reply(ModelRequest("", [TOOL, {**TOOL, "name": "other"}], [user()], 0))
        await asked.reply(ModelRequest("", [], [user()], 0))
    assert "system" not in asked.server.bodies[0]
    assert ["cache_control" in tool for tool in asked.server.bodies[0]["tools"]] == [False, True]
    assert "tools" not in asked.server.bodies[1]


async def test_a_history_with_calls_never_goes_without_tools() -> None:
    history = [
        user(),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "gone", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]},
    ]
    _, asked = await replied([DONE], ModelRequest("Be brief.", [], history, 1))
    assert [tool["name"] for tool in asked.server.bodies[0]["tools"]] == ["no_tool"]
    assert asked.server.bodies[0]["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    "content",
    [[{"type": "thinking", "thinking": "x", "signature": "y"}], "plain", []],
    ids=["a thought", "a string", "nothing"],
)
async def test_a_message_that_cannot_be_marked_is_sent_as_it_is(content: Any) -> None:
    history = [{"role": "user", "content": content}]
    _, asked = await replied([DONE], ModelRequest("", [], history, 0), checked=False)
    assert asked.server.bodies[0]["messages"] == history


async def test_the_callers_history_is_not_touched() -> None:
    request = ModelRequest("s", [TOOL], [user()], 0)
    before = copy.deepcopy(request)
    async with asking([DONE, error(529, "busy"), DONE]) as asked:
        await asked.reply(request)
        await asked.reply(request)
    assert request == before
    assert asked.server.bodies[0] == asked.server.bodies[1] == asked.server.bodies[2]


async def test_the_environment_decides_nothing_about_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "evil")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "evil")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "authorization: Bearer evil\nX-Api-Key: evil")
    _, asked = await replied([DONE])
    headers = asked.server.requests[0].headers
    assert "evil" not in headers.values()
    assert KEY in headers.get("authorization", "") + headers.get("x-api-key", "")
    assert "Bearer evil" not in headers.values()


async def test_a_request_has_the_headers_of_the_library_and_none_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Mine: yes\nUser-Agent: me\nX-A: \udcff\nAnthropic-Version: 1")
    _, asked = await replied([DONE])
    headers = asked.server.requests[0].headers
    assert "yes" not in headers.values()
    assert headers["content-type"] == "application/json"
    assert headers["anthropic-version"] != "1"
    assert headers["user-agent"] != "me"
    assert {"x-stainless-lang", "accept-encoding"} <= set(headers)


# the way to the server -------------------------------------------------------------------------------------

CREDENTIALS: Final = "me:CANARY%2Fsecret"


class Proxy(Loopback):
    """Hears requests and refuses them, in words that repeat what it was told."""

    def __init__(self, status: bytes = b"HTTP/1.1 407 No") -> None:
        super().__init__()
        self.heads: list[str] = []
        self.status = status

    def taken(self, _peer: str) -> None:
        pass

    def serve(self, connection: socket.socket, _what: None) -> None:
        self.heads.append(connection.recv(65536).decode("latin-1"))
        words = b"I know you: CANARY/secret, CANARY%2Fsecret"
        connection.sendall(b"%s\r\nContent-Length: %d\r\n\r\n%s" % (self.status, len(words), words))


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"])
async def test_no_proxy_and_no_certificates_of_the_environment_count(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("default login me password CANARY")
    with Proxy() as proxy:
        for variable, value in {name: proxy, "SSL_CERT_FILE": "/nonexistent", "NETRC": tmp_path / ".netrc"}.items():
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}" if value is proxy else str(value))
        monkeypatch.setenv("HOME", str(tmp_path))
        _, asked = await replied([DONE])
    assert proxy.heads == []
    assert KEY in "".join(asked.server.requests[0].headers.values())


async def test_the_configured_proxy_is_asked_and_told_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with MessagesServer([DONE]) as proxy:
        async with asking_at("http://nowhere.invalid/v", proxy=f"http://{CREDENTIALS}@127.0.0.1:{proxy.port}") as asked:
            await asked.reply()
    request = proxy.requests[0]
    assert request.path == "http://nowhere.invalid/v/v1/messages"
    assert request.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"me:CANARY/secret").decode()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_word_of_a_password_is_in_what_a_proxy_makes_of_it(scheme: str) -> None:
    with Proxy() as proxy:
        place = f"127.0.0.1:{proxy.port}"
        address = f"{scheme}://you:CANARY2@host.invalid:8443"
        async with asking_at(address, proxy=f"http://{CREDENTIALS}@{place}", retries=RetryPolicy(0)) as asked:
            caught = await asked.error()
        server = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": KEY, "STRONGROOM_HOME": "/nonexistent"}
        settings = load(server)
        network = NetworkConfig(proxy=f"http://{CREDENTIALS}@{place}")
        settings = replace(settings, config=msgspec.structs.replace(settings.config, network=network))
        found = await trio.to_thread.run_sync(checked, PROVIDER, settings)
    assert "CANARY" not in repr((found, caught, str(caught), settings.config))
    assert "host.invalid:8443" in found.detail
    assert [head.split()[:2] for head in proxy.heads] == (
        [["CONNECT", "host.invalid:8443"]] * 2
        if scheme == "https"
        else [
            ["POST", "http://host.invalid:8443/v1/messages"],
            ["GET", "http://host.invalid:8443/v1/models?limit=1000"],
        ]
    )
    assert all("roxy-" in head and "Basic " in head for head in (head.replace("P", "p") for head in proxy.heads))
    assert {*secrets(settings)} >= {"CANARY%2Fsecret", "CANARY/secret", "CANARY2"}


async def test_the_name_and_password_of_a_server_go_to_it_and_nowhere_else() -> None:
    with MessagesServer(
        [DONE, {"status": 307, "headers": {"location": "http://user:CANARY@else.invalid/x"}}]
    ) as server:
        async with asking_at(f"http://{CREDENTIALS}@127.0.0.1:{server.port}/?version=2") as asked:
            await asked.reply()
            caught = await asked.error()
    assert server.requests[0].path == "/v1/messages?version=2"
    assert server.requests[0].headers["authorization"].startswith("Basic ")
    assert server.requests[0].headers["x-api-key"] == KEY
    assert caught.kind == "bad_response"
    assert "says to ask 'else.invalid' instead, which is not followed" in str(caught)
    assert len(server.requests) == 2


async def test_certificates_of_the_configuration_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(ModelError, match=r"certificates of `ca_file` in the configuration cannot be loaded"):
        await messages_model("m", KEY, PROVIDER.base_url, ca_file=str(tmp_path / "ca.pem")).warm()


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "odd", [{"text": "\ud83d"}, {"text": "x", "deep": nested(3000)}], ids=["not Unicode", "nested too deep"]
)
async def test_a_history_that_is_not_json_is_an_error_like_any_other(odd: dict[str, Any]) -> None:
    history = [{"role": "user", "content": [{"type": "text", **odd}]}]
    caught, asked = await failed([DONE], ModelRequest("", [], history, 0))
    assert caught.kind == "invalid_request"
    assert asked.server.requests == []


# errors that pass ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error(408, "late", "timeout_error", retry_after="0"), "timeout"),
        (error(409, "conflict"), "api_error"),
        (error(429, "slow down", "rate_limit_error", retry_after="0.01"), "rate_limited"),
        (error(500, "oops"), "api_error"),
        ({"status": 502, "headers": {"content-type": "text/html"}, "body": "<html>bad gateway</html>"}, "api_error"),
        (error(503, "down"), "overloaded"),
        (error(504, "late"), "timeout"),
        (error(529, "Overloaded", "overloaded_error"), "overloaded"),
        ({"status": 529}, "overloaded"),
        (error(400, "try again", x_should_retry="true"), "invalid_request"),
        ({"connect": "refused"}, "connection"),
        (CUT, "stream_truncated"),
        (RESET, "stream_truncated"),
        ({"sse": ""}, "stream_truncated"),
        ({"sse": "", "then": "reset"}, "stream_truncated"),
        (start() + event({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}), "overloaded"),
        (HALF + event({"type": "error", "error": {"type": "api_error", "message": "x"}}), "api_error"),
        (event({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}), "rate_limited"),
    ],
)
async def test_a_fault_that_may_pass_is_tried_again_and_told(fault: Response, kind: str) -> None:
    async with asking([fault, DONE]) as asked:
        assert (await asked.reply()).text == "done"
    (retry,) = asked.retries
    assert (retry.attempt, retry.kind) == (1, kind)
    assert "http://127.0.0.1:" in retry.message
    assert asked.text[-1] == "done"


async def test_the_delay_is_the_servers_or_grows() -> None:
    faults = [
        error(429, "x", retry_after_ms="7"),
        error(429, "x", retry_after="0.002"),
        error(529, "x", retry_after="Tue, 14 Nov 2023 22:13:20 GMT"),
        error(529, "x", retry_after="nonsense"),
    ]
    _, asked = await replied([*faults, DONE], retries=RetryPolicy(first=0.001), clock=lambda: 1_699_999_999.99)
    assert [retry.delay for retry in asked.retries] == [0.007, 0.002, pytest.approx(0.01, abs=1e-3), 0.008]
    assert [retry.attempt for retry in asked.retries] == [1, 2, 3, 4]


async def test_gives_up_after_the_retries_and_the_next_request_is_new() -> None:
    async with asking([*[error(529, "Overloaded")] * 5, DONE]) as asked:
        caught = await asked.error()
        assert caught.kind == "overloaded"
        assert "HTTP 529: Overloaded. Tried 5 times." in str(caught)
        assert len(asked.retries) == 4
        assert (await asked.reply()).text == "done"
    assert len(asked.server.requests) == 6


async def test_a_stream_that_is_always_cut_is_never_a_reply() -> None:
    caught, asked = await failed([RESET, CUT], repeat_last=True)
    assert caught.kind == "stream_truncated"
    assert len(asked.server.requests) == 5


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(error(429, "x", retry_after="86400"), "rate_limited"), (error(529, "x", retry_after_ms="31000"), "overloaded")],
)
async def test_a_server_that_asks_for_too_much_patience_ends_the_turn(fault: Response, kind: str) -> None:
    caught, asked = await failed([fault])
    assert caught.kind == kind
    assert "asks to wait" in str(caught)
    assert len(asked.server.requests) == 1


async def test_a_port_that_refuses_until_the_server_starts() -> None:
    with refusing_port() as port, ExitStack() as serving:

        def open_on_retry(progress: Progress) -> None:
            if isinstance(progress, Retrying) and progress.attempt == 2:
                serving.enter_context(MessagesServer([DONE], port=port))

        async with asking_at(f"http://127.0.0.1:{port}") as asked:
            assert (await asked.model.reply(ASK, open_on_retry)).text == "done"


async def test_a_port_that_always_refuses() -> None:
    with refusing_port() as port:
        async with asking_at(f"http://127.0.0.1:{port}") as asked:
            caught = await asked.error()
    assert caught.kind == "connection"
    assert f"http://127.0.0.1:{port} cannot be reached" in str(caught)
    assert [retry.kind for retry in asked.retries] == ["connection"] * 4


async def test_a_server_that_speaks_something_else() -> None:
    with Proxy(b"220 mail") as other:
        async with asking_at(f"http://127.0.0.1:{other.port}") as asked:
            caught = await asked.error()
    assert caught.kind == "connection"
    assert f"http://127.0.0.1:{other.port} gave no answer that can be read: " in str(caught)


async def test_a_host_that_never_answers() -> None:
    with silent_port() as port:
        async with asking_at(
            f"http://127.0.0.1:{port}", connect_timeout=0.05, retries=RetryPolicy(1, first=0)
        ) as asked:
            caught = await asked.error()
    assert caught.kind == "timeout"
    assert len(asked.retries) == 1


@pytest.mark.parametrize("fault", [{"connect": "hang"}, {"sse": "", "then": "hang"}, {"sse": start(), "then": "hang"}])
async def test_silence_is_a_timeout(fault: Response) -> None:
    caught, asked = await failed([fault], repeat_last=True, idle_timeout=0.1, retries=RetryPolicy(1, first=0))
    assert [caught.kind, *(retry.kind for retry in asked.retries)] == ["timeout"] * 2


async def test_pings_are_no_silence() -> None:
    pings = 'event: ping\ndata: {"type": "ping"}\n\n' * 20
    talking = {"sse": start() + pings + text_block(0, "x") + end(), "gap": 0.1}
    answer, asked = await replied([talking], idle_timeout=2.0)
    assert (answer.text, asked.retries) == ("x", [])


async def test_an_answer_without_end_ends() -> None:
    caught, asked = await failed([{"sse": start() + text_block(0, "x"), "then": "hang"}], answer_timeout=0.1)
    assert (caught.kind, asked.retries) == ("bad_response", [])
    assert "has not ended" in str(caught)


# errors that do not ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (error(400, f"key {KEY} or 'CANARY of a header' is bad"), "invalid_request"),
        (error(400, "prompt is too long: 2 tokens > 1 maximum"), "context_full"),
        (error(401, "key sk-CANARY bad"), "authentication"),
        (error(403, "key sk-CANARY bad"), "permission"),
        (error(404, "no model sk-CANARY"), "not_found"),
        (error(413, f"{KEY}"), "request_too_large"),
        (error(422, "x"), "invalid_request"),
        (error(529, "no use", x_should_retry="false"), "overloaded"),
        ({"status": 400, "body": f"plain {KEY}"}, "invalid_request"),
        ({"status": 400, "body": json.dumps({"error": KEY})}, "invalid_request"),
        ({"status": 400, "body": json.dumps({"message": KEY})}, "invalid_request"),
        ({"status": 400, "body": json.dumps([KEY])}, "invalid_request"),
        ({"status": 400, "body": "[" * 100_000}, "invalid_request"),
        ({"status": 200, "body": "{}"}, "bad_response"),
        ({"status": 200, "body": f'{{"type": "message", "id": "{KEY}"}}'}, "bad_response"),
        ({"status": 200, "headers": {"content-type": "text/html"}, "body": f"<html>{KEY}</html>"}, "bad_response"),
        (start() + "event: x\ndata: {not json}\n\n", "bad_response"),
        (start() + "event: x\ndata: [1]\n\n", "bad_response"),
        (event({"type": "error", "error": {"type": "invalid_request_error", "message": KEY}}), "invalid_request"),
        (event({"type": "error", "error": {"type": "authentication_error", "message": "sk-CANARY"}}), "authentication"),
    ],
)
async def test_a_fault_that_cannot_pass_is_asked_once_and_the_key_stays_secret(fault: Response, kind: str) -> None:
    caught, asked = await failed([fault, DONE], headers={"X-Key": "CANARY of a header"})
    assert caught.kind == kind
    assert str(caught).startswith("http://127.0.0.1:")
    assert str(caught).endswith(".")
    assert len(asked.server.requests) == 1
    assert asked.retries == []


@pytest.mark.parametrize(("said", "patience"), [(2**21, HANG_GUARD), (1, 0.05)])
async def test_a_refusal_without_end_ends(said: int, patience: float) -> None:
    endless = {"status": 400, "headers": {"content-length": str(10**9)}, "body": "x" * said}
    caught, asked = await failed([endless], rest_timeout=patience)
    assert (caught.kind, asked.retries) == ("invalid_request", [])
    gc.collect()
    await trio.testing.wait_all_tasks_blocked()


@pytest.mark.filterwarnings("ignore:Async generator 'httpcore2:ResourceWarning")  # the library's own slip
async def test_an_answer_that_cannot_be_unpacked() -> None:
    async with asking([{"sse": DONE, "headers": {"content-encoding": "gzip"}}]) as asked:
        assert (await asked.error()).kind == "bad_response"
        gc.collect()
        await trio.testing.wait_all_tasks_blocked()


async def test_a_message_says_who_said_what_and_what_to_do() -> None:
    caught, asked = await failed([error(401, "invalid x-api-key\n")])
    assert str(caught) == f"{asked.server.url} answered HTTP 401: invalid x-api-key. Check the API key."


async def test_a_fault_of_whoever_looks_on_is_not_the_models() -> None:
    def look(_: Progress) -> None:
        raise ValueError("from the caller")

    async with asking([DONE]) as asked:
        with pytest.raises(ValueError, match="from the caller"):
            await asked.model.reply(ASK, look)


# cancellation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [{"sse": HALF, "then": "hang"}, {"sse": HALF + "event: ping\ndata: {}\n\n" * 1000, "gap": 0.01}],
    ids=["silent", "talking"],
)
async def test_a_cancelled_reply_closes_its_connection(response: Response) -> None:
    async with asking([response, DONE]) as asked:
        with trio.CancelScope() as scope:
            await asked.model.reply(ASK, lambda _: scope.cancel())
        assert scope.cancelled_caught
        left = asked.server.requests[0].client_left
        assert await trio.to_thread.run_sync(left.wait, HANG_GUARD)
        assert (await asked.reply()).text == "done"


async def test_a_retry_can_be_cancelled_while_it_waits() -> None:
    async with asking([error(529, "x", retry_after="29")]) as asked:
        with trio.CancelScope() as scope:
            await asked.model.reply(ASK, lambda _: scope.cancel())
    assert scope.cancelled_caught


# the library -----------------------------------------------------------------------------------------------


def test_importing_the_module_imports_neither_the_library_nor_its_http() -> None:
    code = (
        "import sys, supervisor.agent.models.messages_api as module; module.messages_model('m', 'k', 'http://h');"
        "sys.exit(len({'anthropic', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_GUARD)


async def test_a_reply_waits_for_the_import_and_the_client_is_made_once() -> None:
    with MessagesServer([DONE] * 2) as server, trio.fail_after(HANG_GUARD):
        async with aclosing(messages_model("m", KEY, server.url)) as model:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(model.warm)
                nursery.start_soon(model.reply, ASK, lambda _: None)
                nursery.start_soon(model.reply, ASK, lambda _: None)
            client = model._requests
            await model.warm()
            assert model._requests is client
    assert len(server.requests) == 2


async def test_a_crowd_shares_several_clients_and_one_that_is_alone_has_the_first() -> None:
    counts = []

    def count(_request: object) -> None:
        counts.append(len(clients))

    async with asking([DONE], repeat_last=True, on_request=count) as asked:
        assert asked.model._requests is not None
        clients = asked.model._requests.clients
        first = clients[0]
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(asked.reply)
        await asked.reply()
        kept = len(clients)
        for each in clients:
            each.rested_at -= 60
        for _ in range(3):
            await asked.reply()
    assert (max(counts), kept, clients) == (4, 4, [first])
    assert len({request.connection for request in asked.server.requests[-3:]}) == 1


async def test_a_broken_library_is_an_error_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = messages_model("m", KEY, PROVIDER.base_url)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ModelError, match="reinstall"):
        await model.warm()


@each_row("key", ["", "two words", "line\n", "clé", "tab\t"])
def test_text_that_cannot_be_a_key_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ConfigError, match="The API key") as caught:
        messages_model("m", key, PROVIDER.base_url)
    assert not key or key not in str(caught.value)


@each_row(
    "url", ["localhost:8080", "ftp://host", "http://", "http://host:99999", "http://[::1", "http://a b", "http://a\n"]
)
def test_a_url_that_cannot_be_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base URL"):
        messages_model("m", KEY, url)


async def test_a_model_that_was_never_used_closes_without_the_library() -> None:
    async with aclosing(messages_model("m", KEY, PROVIDER.base_url)) as model:
        pass
    assert model._requests is None


async def test_a_name_that_no_host_can_have() -> None:
    with pytest.raises(ModelError, match="is not an address"):
        await messages_model("m", KEY, "http://" + "é" * 80).warm()


async def test_a_library_that_fails_while_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "anthropic.py").write_text("raise AttributeError('half of it is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "anthropic", raising=False)
    with pytest.raises(ModelError, match=r"cannot be imported \(half of it is missing\): reinstall it"):
        await messages_model("m", KEY, PROVIDER.base_url).warm()


def test_a_model_shows_its_name_and_its_host_but_no_secret() -> None:
    model = messages_model("claude-test", KEY, "https://me:CANARY@host:8443/path")
    assert model.name == "claude-test"
    assert repr(model) == "<RemoteModel claude-test at https://host:8443>"


# the corpus ------------------------------------------------------------------------------------------------

CORPUS: Final = Path(__file__).parents[3] / "corpus" / "frames.json"
HERE: Final = {"good", "http", "stream", "stop"}
"""Classes whose cases can be judged by one reply; the rest need a conversation."""


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{case['id']} {case['why'][:40]}")
        for case in json.loads(CORPUS.read_text(encoding="utf-8"))["cases"]
        if case["side"] == "model" and case["class"] in HERE
    ]


def hastened(response: Any) -> Any:
    """Ask for a hundredth of the time."""
    headers = response.get("headers", {})
    if "retry-after" not in headers:
        return response
    return {**response, "headers": {**headers, "retry-after": str(float(headers["retry-after"]) / 100)}}


@pytest.mark.parametrize("case", cases())
async def test_model_corpus(case: dict[str, Any]) -> None:
    patience = 0.05 if "hang" in json.dumps(case["responses"]) else HANG_GUARD
    outcome: Reply | ModelError
    async with asking(map(hastened, case["responses"]), repeat_last=True, idle_timeout=patience) as asked:
        try:
            outcome = await asked.reply()
        except ModelError as caught:
            outcome = caught
    if isinstance(outcome, ModelError):
        assert case["expect"] in {"turn_error", "either"}
        assert outcome.kind in case["kind"]
        assert "CANARY" not in "".join(traceback.format_exception(outcome))
    else:
        assert case["expect"] in {"turn_ok", "either"}
        assert outcome.stop_reason
    assert len(asked.server.requests) == case.get("requests", len(asked.server.requests))


# the server that these tests rely on -----------------------------------------------------------------------


def assistant(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def use(call_id: str = "t1", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "read_file", "input": {}, **changes}


def result(call_id: str = "t1", content: Any = "text", **changes: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **changes}


def told(*content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


MARKED: Final = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


@each_row(
    "messages",
    [
        [user()],
        [{"role": "user", "content": "hi"}],
        [user(), assistant(use()), told(result())],
        [user(), assistant(use("a"), use("b")), told(result("b"), result("a"), {"type": "text", "text": "and"})],
        [user(), assistant(use("a")), told(result("a")), assistant(use("b")), told(result("b", is_error=True))],
        [user(), assistant(use()), told(result(content=""))],
        [user(), assistant(use()), told(result(content=[{"type": "text", "text": "x"}]))],
        [told(*[MARKED] * 4)],
        [user(), assistant(use(input={"cache_control": {"type": "text", "text": ""}})), told(result())],
    ],
)
def test_the_server_accepts_a_valid_history(messages: list[Any]) -> None:
    assert fault_in({"model": "m", "max_tokens": 1, "stream": True, "messages": messages}) is None


@each_row(
    ("messages", "message"),
    [
        ([], "at least one"),
        ([assistant({"type": "text", "text": "x"})], "alternate"),
        ([user(), user()], "alternate"),
        ([user(), assistant({"type": "text", "text": "x"})], "last one"),
        ([told()], "must not be empty"),
        ([{"role": "user", "content": " "}], "must not be empty"),
        ([user("")], "non-whitespace"),
        ([user(" \n")], "non-whitespace"),
        ([user(), assistant(), user()], "must not be empty"),
        ([user(), assistant(use()), user()], "without `tool_result`"),
        ([user(), assistant(use("a"), use("b")), told(result("a"))], "immediately after: b"),
        ([user(), assistant(use()), told(result(), result())], "single result"),
        ([told(result())], "unexpected `tool_use_id`"),
        ([user(), assistant(use()), told({"type": "text", "text": "x"}, result())], "must come first"),
        ([user(), assistant(use(), use()), told(result())], "must be unique"),
        ([user(), assistant(use()), told(result()), assistant(use()), told(result())], "must be unique"),
        ([user(), assistant(use(input=[])), told(result())], "must be an object"),
        ([user(), assistant(use("no id!")), told(result("no id!"))], "is not an id"),
        ([user(), assistant(use(name="")), told(result())], "is not a name"),
        ([user(), assistant(use()), told(result(content="", is_error=True))], "is_error"),
        ([user(), assistant(use()), told(result(content=[{"type": "text", "text": ""}]))], "non-whitespace"),
        ([user(), assistant(result()), user()], "for the user"),
        ([told(use())], "no place for a tool_use"),
        ([user(), assistant({"type": "thinking", "thinking": "x"}), user()], "signature"),
        ([told(*[MARKED] * 5)], "at most 4"),
        ([told({**MARKED, "cache_control": {"type": "eternal"}})], "ephemeral"),
        ([{"role": "user", "content": [{"text": "x"}]}], "needs a type"),
        ([{"role": "user"}], "role and content"),
        ([user(), assistant(use(id=7)), told(result(tool_use_id=7))], "is not an id"),
        ([user(), assistant(use(name=7)), told(result())], "malformed"),
    ],
)
def test_the_server_refuses_what_the_api_would(messages: list[Any], message: str) -> None:
    assert message in (fault_in({"model": "m", "max_tokens": 1, "stream": True, "messages": messages}) or "")


@each_row(
    ("changes", "message"),
    [
        ({"model": ""}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stream": False}, "stream"),
        ({"system": ""}, "system"),
        ({"system": []}, "system"),
        ({"tools": [TOOL, TOOL]}, "unique"),
        ({"tools": [{**TOOL, "name": "no name!"}]}, "bad name"),
        ({"tools": [{**TOOL, "input_schema": {"$ref": "#/x"}}]}, "must be object"),
    ],
)
def test_the_server_judges_the_rest_of_the_request(changes: dict[str, Any], message: str) -> None:
    body = {"model": "m", "max_tokens": 1, "stream": True, "messages": [user()], **changes}
    assert message in (fault_in(body) or "")
    assert "JSON object" in (fault_in(None) or "")


async def test_a_refused_request_uses_up_nothing_of_the_script() -> None:
    async with asking([DONE]) as asked:
        caught = await asked.error(ModelRequest("", [], [user("")], 0))
        assert "HTTP 400: messages.0: text content blocks" in str(caught)
        assert asked.server.left == 1
        assert (await asked.reply()).text == "done"
        assert "used up" in str(await asked.error())
    assert [request.refused is None for request in asked.server.requests] == [False, True, True]


@pytest.mark.parametrize("half", [b"POST /v1", b"POST /v1/messages HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"])
def test_the_server_takes_half_a_request_for_none(half: bytes) -> None:
    with MessagesServer([DONE]) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(half)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""
        assert (server.requests, server.left) == ([], 1)


def test_the_server_tells_a_mistake_in_its_script() -> None:
    with pytest.raises(ValueError, match="cannot have"):
        MessagesServer([{"see": "typing error"}])


@pytest.mark.parametrize("stop", ["end of input", "SIGTERM"])
def test_the_server_as_a_program(stop: str, tmp_path: Path) -> None:
    script, record = tmp_path / "script.json", tmp_path / "record.jsonl"
    script.write_text(json.dumps([{"$repeat_response": [DONE, 2]}]), encoding="utf-8")
    command = [sys.executable, "-m", "tests.messages_server", "--script", str(script), "--record", str(record)]
    with subprocess.Popen(command, cwd=CODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        trio.run(ask_once, f"http://127.0.0.1:{int(process.stdout.readline())}")
        if stop == "SIGTERM":
            process.terminate()
        else:
            process.stdin.close()
        assert process.wait(HANG_GUARD) == 0
    (request,) = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert request["path"] == "/v1/messages"
    assert request["body"]["model"] == "claude-test"


async def ask_once(url: str) -> None:
    async with asking_at(url) as asked:
        await asked.reply()


async def test_the_server_tells_of_each_request_before_it_answers() -> None:
    seen: list[Recorded] = []
    look: Callable[[Recorded], None] = seen.append
    async with asking([DONE], on_request=look) as asked:
        await asked.reply()
        assert seen == asked.server.requests
