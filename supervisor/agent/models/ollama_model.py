"""A model that Ollama has: asked about once, then asked with a context that holds the conversation.

Rule: nothing is cut silently. What does not fit is refused before it is sent, and a reply to a part of it is none.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
import trio

from supervisor.agent.models.model import ModelRequest, Progress, Reply
from supervisor.agent.models.model_facts import CONFIGURED, model_facts
from supervisor.agent.models.ollama_api import FORMAT, SHOW, ShownModel, planned_request, shown_model
from supervisor.agent.models.ollama_context import check_uncut
from supervisor.agent.models.ollama_messages import CONTEXT
from supervisor.agent.models.remote_model import RemoteModel
from supervisor.agent.models.server_limits import NOTHING_LEARNED, ServerLimits
from supervisor.config.settings import Settings
from supervisor.errors import ModelError, ModelErrorKind

_QUESTION: Final = ModelRequest("", (), (), 0)
_CONTEXT: Final = "OLLAMA_CONTEXT_LENGTH"


class ContextLimit(NamedTuple):
    """The largest context that a model is asked for, and what says so."""

    tokens: int = 0
    """0 for as much as the model holds."""
    source: str = ""


NO_LIMIT: Final = ContextLimit()


class OllamaModel:
    """A Model of an Ollama server; `options` are RemoteModel's.

    Resource handling: it owns connections; the caller ends with `aclose`.
    """

    def __init__(
        self, name: str, api_key: str, base_url: str, *, limit: ContextLimit = NO_LIMIT, **options: Any
    ) -> None:
        self.inner = RemoteModel(name, api_key, base_url, FORMAT, **options)
        self._asker = RemoteModel(name, api_key, base_url, SHOW, **options)
        self._served_as = self.inner.served_as or name
        self._limit = limit
        self._asking = trio.Lock()
        self._shown: ShownModel | None = None
        self._context = 0
        """The largest context that was asked for: a smaller one would load the model anew."""
        self.learned = NOTHING_LEARNED
        """What the server has said of the model."""

    @property
    def name(self) -> str:
        return self.inner.name

    def __repr__(self) -> str:
        return repr(self.inner)

    async def warm(self) -> None:
        """Import the library now; the server is not asked before the first reply.

        Raises:
            ModelError: the library cannot be imported, or its client cannot be made.
        """
        await self.inner.warm()

    async def aclose(self) -> None:
        """Close the connections. The next reply would open new ones."""
        await self.inner.aclose()
        await self._asker.aclose()

    async def reply(self, request: ModelRequest, show: Callable[[Progress], None]) -> Reply:
        """Return the reply to `request`, calling `show` as it arrives.

        Raises:
            ModelError: there was no reply, after every sensible retry; or the conversation does not fit.
        """
        try:
            shown = await self._model(show)
            sent = planned_request(request, self._served_as, self.inner.provider, shown, self._context)
            self._context = max(self._context, sent.planned.context)
            reply = await self.inner.reply(sent, show)
            check_uncut(reply.usage.get("input_tokens", 0), sent.planned)
        except ModelError as error:
            words = self._advised(error.kind, str(error))
            raise ModelError(error.kind, words, billed=error.billed, retry_after=error.retry_after) from error
        assert reply.origin is not None
        item = {**reply.origin.items[0], CONTEXT: sent.planned.context}  # another process asks for no less either
        return msgspec.structs.replace(reply, origin=msgspec.structs.replace(reply.origin, items=[item]))

    async def _model(self, show: Callable[[Progress], None]) -> ShownModel:
        """Return what the server tells of the model, which is asked once."""
        if self._shown is not None:
            return self._shown
        async with self._asking:
            if self._shown is None:
                answer = await self._asker.reply(_QUESTION, show)
                await self._asker.aclose()
                assert answer.origin is not None
                self._shown = shown_model(answer.origin.items[0], self._limit.tokens)
                self.learned = ServerLimits(window=self._shown.window, told=self._shown.told)
            return self._shown

    def _advised(self, kind: ModelErrorKind, words: str) -> str:
        """Return an error's sentence with what a person can do about it here."""
        name = self._served_as
        if kind == "not_found":
            return f"{words} If the server has no such model: ollama pull {name}"
        if "does not support tools" in words:
            return f'{words} It can be told to call them in its text: tools = "text" in [models."{self.name}"].'
        if kind == "context_full":
            tokens, source = self._limit
            larger = f"allow it a larger context ({source} is {tokens} here)" if tokens else ""
            ways = ["Send less at once", larger, "or switch to a model that holds more"]
            return f"{words} {', '.join(filter(None, ways))}."
        return words


def remote_model(settings: Settings, name: str, api_key: str, base_url: str, **options: Any) -> OllamaModel:
    """Return a model as it is configured; `options` are RemoteModel's."""
    return OllamaModel(name, api_key, base_url, limit=_limit(name, settings), **options)


def _limit(name: str, settings: Settings) -> ContextLimit:
    facts, written = model_facts(name, settings), settings.variable(_CONTEXT)
    if facts.sources["window"] == CONFIGURED:
        return ContextLimit(facts.window, f'`window` in [models."{name}"]')
    return ContextLimit(int(written), _CONTEXT) if written.isascii() and written.isdecimal() else NO_LIMIT
