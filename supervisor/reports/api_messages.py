"""A session's messages as models' APIs take them. Pure but for the images and documents, which are read.

Rule: what is returned could be sent, to a model that sees everything. What was left open is shown closed, and what a
server sent goes back as it came to the last of its kind alone.
"""

from collections.abc import Sequence

from supervisor.agent.models import gemini_contents
from supervisor.agent.models.chat_messages import chat_messages
from supervisor.agent.models.chat_reader import FORMAT_NAME as CHAT
from supervisor.agent.models.gemini_contents import FORMAT_NAME as GEMINI
from supervisor.agent.models.inline_contents import inlined
from supervisor.agent.models.model import CONTENTS, Message, ModelRequest
from supervisor.agent.models.response_items import response_items
from supervisor.agent.models.responses_reader import FORMAT_NAME as RESPONSES
from supervisor.agent.shown_contents import filled
from supervisor.agent.story_transcript import transcript_of
from supervisor.journal.contents import ContentStore
from supervisor.journal.facts import Compacted, SessionChanged, SessionOpened
from supervisor.journal.journal import JournalEntry


def anthropic_messages(entries: Sequence[JournalEntry], store: ContentStore) -> Sequence[Message]:
    """Return the `messages` of the Messages API."""
    request = _request(entries, store)
    return inlined(request, request.messages)


def openai_items(entries: Sequence[JournalEntry], store: ContentStore) -> Sequence[Message]:
    """Return the `input` of OpenAI's Responses."""
    request = _request(entries, store)
    return list(response_items(request, _writer(request, RESPONSES)))


def openai_chat(entries: Sequence[JournalEntry], store: ContentStore) -> Sequence[Message]:
    """Return the `messages` of Chat Completions."""
    request = _request(entries, store)
    return list(chat_messages(request, _writer(request, CHAT)))


def gemini_turns(entries: Sequence[JournalEntry], store: ContentStore) -> Sequence[Message]:
    """Return Gemini's `contents`; a model that is none of it stands for the newest."""
    request = _request(entries, store)
    model = _model(entries)
    return gemini_contents.contents(request, _writer(request, GEMINI), model if GEMINI in model else GEMINI)


def _request(entries: Sequence[JournalEntry], store: ContentStore) -> ModelRequest:
    transcript = transcript_of([entry for entry in entries if not isinstance(entry.fact, Compacted)])
    for fact in transcript.closing_facts():
        transcript.apply(fact)
    request = ModelRequest("", (), transcript.messages, transcript.step, origins=transcript.origins)
    refused = transcript.refused_contents.get(_model(entries), frozenset())
    return filled(request, transcript, store, CONTENTS, refused)


def _writer(request: ModelRequest, form: str) -> str:
    """Return the provider that wrote the last reply whose items have a form; "" where there is none."""
    return next((each.provider for each in reversed([*request.origins.values()]) if each.format == form), "")


def _model(entries: Sequence[JournalEntry]) -> str:
    """Return the session's model; "" where it has none."""
    opened = [entry.fact for entry in entries if isinstance(entry.fact, SessionOpened | SessionChanged)]
    return (opened[-1].model or "") if opened else ""
