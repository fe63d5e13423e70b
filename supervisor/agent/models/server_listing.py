"""Models that providers' servers list, each with the limits that are told of it.

Rule: asked once and in a short time, all servers at the same time; one that does not answer is a line with the reason,
and no error. A row a format: where the list is, how the key is sent, and where in an entry its name and limits stand.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPException
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from supervisor.agent.models.provider import Provider
from supervisor.agent.models.server import configured, server_at
from supervisor.agent.models.server_limits import ServerLimits
from supervisor.agent.models.server_request import ask_server, failure_words
from supervisor.config.config_keys import Format
from supervisor.config.settings import Settings
from supervisor.errors import ConfigError

_TIME_S: Final = 5.0
"""Seconds that all servers have together."""
_MOST: Final = 2_000
"""Models of a list that are looked at."""
_NAME: Final = 200
"""Characters of a model's name, at most."""
_OK: Final = 200


class ServerListing(NamedTuple):
    """What a provider's server lists, or why that is not known."""

    models: Mapping[str, ServerLimits]
    """By the name that the server has for it."""
    problem: str = ""


class ListForm(NamedTuple):
    """Where a server of a format lists its models, and what it says of each."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    entries: str
    """The member that holds the list."""
    name: str
    window: Sequence[str]
    """The members that may tell it, the first that does counts; "a.b" is within "a"."""
    longest: Sequence[str]


def _anthropic(key: str) -> Mapping[str, str]:
    """Return how the Messages API takes a key."""
    return {"x-api-key": key, "anthropic-version": "2023-06-01"}


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}" if key else ""}


def _google(key: str) -> Mapping[str, str]:
    return {"x-goog-api-key": key}


_OPENAI: Final = ListForm(
    "models",
    _bearer,
    "data",
    "id",
    ("max_model_len", "context_length", "context_window", "max_context_length", "meta.n_ctx_train"),
    ("max_output_tokens", "max_completion_tokens", "top_provider.max_completion_tokens"),
)
"""As vLLM, OpenRouter, Groq, LM Studio and llama.cpp tell their limits; OpenAI tells none."""
LIST_FORMS: Final[Mapping[Format, ListForm]] = MappingProxyType(
    {
        "messages": ListForm("v1/models?limit=1000", _anthropic, "data", "id", ("max_input_tokens",), ("max_tokens",)),
        "chat": _OPENAI,
        "responses": _OPENAI,
        "gemini": ListForm(
            "v1beta/models?pageSize=1000", _google, "models", "name", ("inputTokenLimit",), ("outputTokenLimit",)
        ),
        "ollama": ListForm("api/tags", _bearer, "models", "name", ("context_length",), ()),
    }
)


def server_listings(rows: Sequence[Provider], settings: Settings) -> dict[str, ServerListing]:
    """Return what the servers of providers list, by the provider's name; those without a server are left out."""
    found: dict[str, ServerListing] = {}

    def ask(row: Provider) -> None:
        found[row.label] = _listing(row, settings)

    asked = [row for row in rows if row.format is not None and row.is_available(settings)]
    threads = [threading.Thread(target=ask, args=(row,), daemon=True) for row in asked]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _TIME_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    silent = ServerListing({}, f"did not answer within {_TIME_S:g} s")
    return {row.label: found.get(row.label, silent) for row in asked}


def _listing(row: Provider, settings: Settings) -> ServerListing:
    assert row.format is not None
    form, key = LIST_FORMS[row.format], row.key_in(settings)
    try:
        server = server_at(row.address(settings), *configured(settings, row.ca_file))
    except ConfigError as error:
        return ServerListing({}, str(error))
    try:
        answer = ask_server(server, form.path, {**form.headers(key), **row.headers}, _TIME_S)
    except (OSError, ValueError, HTTPException) as error:
        return ServerListing({}, f"{server.shown} cannot be reached: {failure_words(error, server, key)}")
    if answer.status != _OK:
        return ServerListing({}, f"{server.shown} answers with {answer.status}")
    try:
        return ServerListing(dict(_models(form, msgspec.json.decode(answer.content))))
    except (ValueError, RecursionError):
        return ServerListing({}, f"{server.shown} answers with no list of models")


def _models(form: ListForm, document: Any) -> Iterator[tuple[str, ServerLimits]]:
    """Yield the models of a list.

    Raises:
        ValueError: it is none.
    """
    entries = document.get(form.entries) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ValueError("no list")  # noqa: TRY004 - a document of another shape
    for entry in entries[:_MOST]:
        name = entry.get(form.name) if isinstance(entry, dict) else None
        if isinstance(name, str) and 0 < len(name) <= _NAME and name.isprintable():
            limits = ServerLimits(_first_number(entry, form.window), _first_number(entry, form.longest))
            yield name.removeprefix("models/"), limits


def _first_number(entry: Any, members: Sequence[str]) -> int:
    """Return the first of the members that is a number of tokens; 0 where none is."""
    for member in members:
        value: Any = entry
        for part in member.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if type(value) is int and 0 < value < 2**31:
            return value
    return 0
