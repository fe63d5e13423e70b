"""Models that servers list, each format in its own way; one that does not is a sentence, and nobody waits for it."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.agent.models.providers import own_providers, rows
from supervisor.agent.models.server import below, server_at
from supervisor.agent.models.server_limits import ServerLimits
from supervisor.agent.models.server_listing import ServerListing, server_listings
from supervisor.agent.models.server_request import ask_server
from supervisor.config.config_keys import Config, Format, ProviderConfig
from supervisor.config.settings import Settings
from tests.loopback import Loopback
from tests.script_server import silent_port

KEY: Final = "sk-CANARY-secret"


class Asked(list[tuple[str, dict[str, str]]]):
    """The paths and headers of the requests."""


@contextmanager
def listing_server(status: int, body: str, only: str = "") -> Iterator[tuple[str, Asked]]:
    """Yield the address of a server that answers everything so, and what it was asked.

    With `only`, a key, it refuses requests whose headers do not end in that.
    """
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            known = any(value.endswith(only) for value in self.headers.values())
            self.send_response(status if known or not only else 401)
            self.send_header("location", "http://127.0.0.1:1/")
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def settings(environment: Mapping[str, str] = {}, **providers: ProviderConfig) -> Settings:
    return Settings(Config(providers=providers), Path("/x/config.toml"), Path("/x"), dict(environment))


def listed(url: str, spoken: Format, **more: Any) -> ServerListing:
    here = settings({"KEY": KEY}, own=ProviderConfig(f"{url}/base", spoken, "KEY", **more))
    return server_listings(own_providers(here), here)["own"]


MESSAGES: Final[list[dict[str, Any]]] = [
    {"type": "model", "id": "claude-a", "max_input_tokens": 1_000_000, "max_tokens": 128_000},
    {"id": "b"},
]
DATED: Final = {"created_at": "2026-01-01T00:00:00Z", "display_name": "a", "lifecycle": "active"}
FORMS: Final[list[tuple[Format, Any, str, tuple[str, str], dict[str, ServerLimits]]]] = [
    (
        "messages",
        {"data": MESSAGES},
        "/base/v1/models?limit=1000",
        ("x-api-key", KEY),
        {"claude-a": ServerLimits(1_000_000, 128_000), "b": ServerLimits()},
    ),
    (
        "chat",
        {
            "data": [
                {"id": "vllm", "max_model_len": 4096},
                {"id": "router", "context_length": 9, "top_provider": {"max_completion_tokens": 7}},
            ]
        },
        "/base/models",
        ("authorization", f"Bearer {KEY}"),
        {"vllm": ServerLimits(4096), "router": ServerLimits(9, 7)},
    ),
    (
        "responses",
        {"data": [{"id": "llama.cpp", "meta": {"n_ctx_train": 131072}}]},
        "/base/models",
        ("authorization", f"Bearer {KEY}"),
        {"llama.cpp": ServerLimits(131072)},
    ),
    (
        "gemini",
        {"models": [{"name": "models/gemini-x", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}]},
        "/base/v1beta/models?pageSize=1000",
        ("x-goog-api-key", KEY),
        {"gemini-x": ServerLimits(1048576, 65536)},
    ),
    (
        "ollama",
        {"models": [{"name": "llama3.2:latest", "size": 1}]},
        "/base/api/tags",
        ("authorization", f"Bearer {KEY}"),
        {"llama3.2:latest": ServerLimits()},
    ),
]


@pytest.mark.parametrize(("spoken", "document", "path", "header", "models"), FORMS, ids=[row[0] for row in FORMS])
def test_each_format_s_list_is_read(
    spoken: Format, document: Any, path: str, header: tuple[str, str], models: dict[str, ServerLimits]
) -> None:
    with listing_server(200, json.dumps(document)) as (url, asked):
        assert listed(url, spoken, headers={"X-Team": "notes"}) == ServerListing(models)
    ((where, headers),) = asked
    assert where == path
    assert (headers[header[0]], headers["x-team"]) == (header[1], "notes")


def test_the_list_is_one_that_the_official_client_reads() -> None:
    import anthropic  # and not for all tests: it is large

    dated = [{**DATED, **each} for each in MESSAGES]
    document = {"data": dated, "has_more": False, "first_id": "claude-a", "last_id": "b"}
    with (
        listing_server(200, json.dumps(document)) as (url, _),
        anthropic.Anthropic(api_key=KEY, base_url=url) as client,
    ):
        assert [(each.id, each.max_tokens) for each in client.models.list()] == [("claude-a", 128_000), ("b", None)]
        assert [*listed(url, "messages").models] == ["claude-a", "b"]


ODD: Final = [
    (401, "{}", "answers with 401"),
    (302, "{}", "answers with 302"),
    (200, "<html>", "answers with no list of models"),
    (200, "[]", "answers with no list of models"),
    (200, '{"data": {}}', "answers with no list of models"),
    (200, "[" * 100_000, "answers with no list of models"),
    (200, "x" * (8 * 2**20 + 1), "larger than any list"),
]


@pytest.mark.parametrize(("status", "body", "words"), ODD, ids=[f"{row[0]} {row[1][:9]}" for row in ODD])
def test_an_odd_answer_is_a_sentence(status: int, body: str, words: str) -> None:
    with listing_server(status, body) as (url, _):
        found = listed(url, "messages")
    assert found.models == {}
    assert words in found.problem


def test_odd_entries_are_passed_over() -> None:
    data = [
        1,
        {},
        {"id": 5},
        {"id": ""},
        {"id": "a\nb"},
        {"id": "x" * 201},
        {"id": "good", "max_tokens": True, "max_input_tokens": -1},
    ]
    with listing_server(200, json.dumps({"data": data})) as (url, _):
        assert listed(url, "messages").models == {"good": ServerLimits()}


@pytest.mark.parametrize(
    ("key", "why"),
    [(KEY, "Connection refused"), ("CAN\nARY-secret", "the key, or a header, has characters that none has")],
)
def test_no_failure_says_a_secret(key: str, why: str) -> None:
    own = ProviderConfig("http://user:pa55word@127.0.0.1:1/x", "messages", "KEY")
    here = settings({"KEY": key}, own=own)
    problem = server_listings(own_providers(here), here)["own"].problem
    assert problem == f"http://127.0.0.1:1 cannot be reached: {why}"


def test_a_query_may_hold_a_key_but_no_short_word_is_one() -> None:
    assert server_at("http://h/base?version=2&key=a%20secret-key").secrets == ("a%20secret-key", "a secret-key")


@pytest.mark.parametrize(
    ("url", "path", "below_it"),
    [
        ("http://h", "v1/messages", "http://h/v1/messages"),
        ("http://h/base/?key=1", "x", "http://h/base/x?key=1"),
        ("http://h/base?key=1", "x?alt=sse", "http://h/base/x?alt=sse&key=1"),
        ("http://h/base/v1/", "v1/messages", "http://h/base/v1/messages"),
        ("http://h/v1beta", "v1beta/models?pageSize=9", "http://h/v1beta/models?pageSize=9"),
        ("http://h/v1", "v1beta/models", "http://h/v1/v1beta/models"),
        ("http://h/x", "x/y", "http://h/x/x/y"),
    ],
)
def test_a_path_stands_below_an_address_with_one_version_and_both_queries(url: str, path: str, below_it: str) -> None:
    assert below(url, path) == below_it


def test_a_silent_server_holds_up_no_other() -> None:
    with silent_port() as port, listing_server(200, json.dumps({"data": MESSAGES})) as (url, _):
        own = {"quiet": ProviderConfig(f"http://127.0.0.1:{port}", "chat"), "loud": ProviderConfig(url, "messages")}
        here = settings({}, **own)
        found = server_listings(own_providers(here), here)
    assert [*found["loud"].models] == ["claude-a", "b"]
    assert "did not answer" in found["quiet"].problem or "timed out" in found["quiet"].problem


class Dripping(Loopback):
    """Sends a byte now and then, of an answer that has no end."""

    def taken(self, _peer: str) -> None:
        """Know nothing of it."""

    def serve(self, connection: socket.socket, _what: None) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        pause = threading.Event()
        while not pause.wait(0.02):
            connection.sendall(b" ")


def test_an_answer_without_end_ends() -> None:
    with Dripping() as server, pytest.raises(TimeoutError, match=r"has not ended after 0\.1 s"):
        ask_server(server_at(f"http://127.0.0.1:{server.port}"), "x", {}, 0.1)


def test_only_what_has_its_key_is_asked() -> None:
    here = settings(own=ProviderConfig("http://127.0.0.1:1", "chat", "KEY"))
    assert set(server_listings([*own_providers(here), *rows()], here)) == {"ollama"}  # which needs none
    row = own_providers(here)[0]
    assert not row.is_available(here)
    assert row.is_available(settings({"KEY": "x"}))
