"""The official Python SDK, as it is, drives the daemon: at its socket, and through `strongroom acp`."""

import asyncio
import base64
import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import acp
import acp.schema as sdk
import pytest
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent

from supervisor.acp import extensions
from supervisor.journal.facts import CallStarted
from tests.daemon_process import ASK, DaemonProcess, Lines, named, scripted
from tests.media_files import pdf, picture
from tests.supervisor.command import CODE, HANG_GUARD

CONFIG: Final = """
model = "offline"
[profiles.vault]
ask = ["write_file"]
"""
ABLE: Final = sdk.ClientCapabilities(elicitation=sdk.ElicitationCapabilities(form=sdk.ElicitationFormCapabilities()))


accepted: Final = partial(sdk.AcceptElicitationResponse, action="accept")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Asked:
    """A permission that the daemon asked for."""

    session: str
    call: sdk.ToolCallUpdate
    options: list[str]
    """Their ids."""
    meta: dict[str, Any]


Answer = Callable[[Asked], Awaitable[str | None]]
"""Returns the id of the option that the person chose; None where the question was closed."""


def always(option: str | None) -> Answer:
    async def answer(_asked: Asked) -> str | None:
        return option

    return answer


class Editor:
    """A client as an editor is one. What it hears is kept in order."""

    def __init__(self) -> None:
        self._agent: acp.Agent | None = None
        self._news = asyncio.Event()
        self.forget()

    def forget(self) -> None:
        """Be as a new one, on the same connection."""
        self.answer = always("reject_once")
        self.form: sdk.CreateElicitationResponse = sdk.DeclineElicitationResponse(action="decline")
        self.asked: list[Asked] = []
        self.forms: list[tuple[str, sdk.ElicitationFormSessionMode]] = []
        self.said: list[dict[str, Any]] = []
        """Every message that came, as JSON."""
        self.sent: list[dict[str, Any]] = []

    # --- what the SDK calls ---------------------------------------------------------------------------------------

    def on_connect(self, conn: acp.Agent) -> None:
        self._agent = conn

    async def session_update(self, session_id: str, update: Any, **_meta: Any) -> None:
        pass  # `observe` has it, in order and as it was sent

    async def request_permission(
        self, session_id: str, tool_call: sdk.ToolCallUpdate, options: list[sdk.PermissionOption], **meta: Any
    ) -> sdk.RequestPermissionResponse:
        asked = Asked(session_id, tool_call, [option.option_id for option in options], meta)
        self.asked.append(asked)
        self._news.set()
        chosen = await self.answer(asked)
        if chosen is None:
            return sdk.RequestPermissionResponse(outcome=sdk.DeniedOutcome(outcome="cancelled"))
        return sdk.RequestPermissionResponse(outcome=sdk.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_meta: Any) -> sdk.CreateElicitationResponse:
        self.forms.append((message, mode))
        return self.form

    def hold(self, option: str | None = None) -> asyncio.Event:
        """Let the person answer nothing before the event that is returned, and then choose an option, or close."""
        may_answer = asyncio.Event()

        async def answer(_asked: Asked) -> str | None:
            await may_answer.wait()
            return option

        self.answer = answer
        return may_answer

    async def begin(self, asking: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Begin something, and return it when the person is asked about it."""
        task = asyncio.create_task(asking)
        await self.until(lambda: self.asked)
        return task

    def observe(self, event: StreamEvent) -> None:
        (self.said if event.direction is StreamDirection.INCOMING else self.sent).append(event.message)
        self._news.set()

    # --- what a test asks -----------------------------------------------------------------------------------------

    @property
    def agent(self) -> ClientSideConnection:
        assert isinstance(self._agent, ClientSideConnection)
        return self._agent

    async def raw(self, method: str, params: Any) -> Any:
        """Send a request that the SDK has no function for."""
        return await self.agent._conn.send_request(method, params)

    async def notify(self, method: str, params: Any) -> None:
        await self.agent._conn.send_notification(method, params)

    async def cancel_request(self, method: str) -> None:
        """Cancel the only request of a method."""
        [request] = [message for message in self.sent if message.get("method") == method]
        await self.notify("$/cancel_request", {"requestId": request["id"]})

    async def new(self, cwd: Path, **options: Any) -> str:
        """Open a session; `options` as in `supervisor.acp.extensions.SessionOptions`."""
        meta: dict[str, Any] = {extensions.OPTIONS: options}
        opened = await self.agent.new_session(cwd=str(cwd), **meta)
        return opened.session_id

    async def prompt(self, session: str, text: str) -> sdk.PromptResponse:
        return await self.agent.prompt(session_id=session, prompt=[sdk.TextContentBlock(type="text", text=text)])

    async def until(self, has_happened: Callable[[], object]) -> None:
        """Return once something that comes from the daemon has made `has_happened` true."""
        while not has_happened():
            self._news.clear()
            await self._news.wait()

    @property
    def opened(self) -> list[str]:
        """The sessions that were opened, in order."""
        results = [message.get("result") for message in self.said]
        return [result["sessionId"] for result in results if isinstance(result, dict) and "sessionId" in result]

    def updates(self, session: str, kind: str = "") -> list[dict[str, Any]]:
        return [
            message["params"]["update"]
            for message in self.said
            if message.get("method") == "session/update"
            and message["params"]["sessionId"] == session
            and kind in ("", message["params"]["update"]["sessionUpdate"])
        ]

    def text(self, session: str) -> str:
        """Return what the agent said."""
        return "".join(update["content"]["text"] for update in self.updates(session, "agent_message_chunk"))

    def calls(self, session: str) -> dict[str, dict[str, Any]]:
        """Return every call as it stands after its last update."""
        calls: dict[str, dict[str, Any]] = {}
        for update in (*self.updates(session, "tool_call"), *self.updates(session, "tool_call_update")):
            calls.setdefault(update["toolCallId"], {}).update(update)
        return calls

    def history(self, session: str) -> list[Any]:
        """Return what a person sees, a row for each message and call, in order: messages by id, calls as they ended."""
        seen: dict[str, list[Any]] = {}
        for update in self.updates(session):
            match update:
                case {"sessionUpdate": "agent_message_chunk" | "user_message_chunk" as who, "messageId": key}:
                    seen.setdefault(key, [who, key, ""])[2] += update["content"]["text"]
                case {"toolCallId": key}:
                    row = seen.setdefault(key, ["call", key, {}])
                    facts = ("title", "kind", "status", "content", "locations", "rawInput", "rawOutput")
                    row[2].update({name: update[name] for name in facts if name in update})
                case _:
                    pass
        return list(seen.values())

    def position(self, has: Callable[[dict[str, Any]], object]) -> int:
        """Return where in what was said the last message is of which `has` is true."""
        return max(number for number, message in enumerate(self.said) if has(message))


Story = Callable[[Editor], Awaitable[None]]


@asynccontextmanager
async def at_socket(daemon: DaemonProcess, editor: Editor) -> AsyncIterator[ClientSideConnection]:
    connection = daemon.connect()
    connection.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=2**24)
    agent = acp.connect_to_agent(
        cast("acp.Client", editor), writer, reader, use_unstable_protocol=True, observers=[editor.observe]
    )
    try:
        yield agent
    finally:
        await agent.close()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def over_stdio(daemon: DaemonProcess, editor: Editor) -> AsyncIterator[ClientSideConnection]:
    async with acp.spawn_agent_process(
        cast("acp.Client", editor),
        sys.executable,
        *("-m", "supervisor", "acp"),
        env={"STRONGROOM_HOME": str(daemon.home), "PYTHONPATH": str(CODE)},
        cwd=daemon.folder,
        transport_kwargs={"limit": 2**24, "stderr": subprocess.DEVNULL, "shutdown_timeout": HANG_GUARD},
        use_unstable_protocol=True,
        observers=[editor.observe],
    ) as (agent, process):
        yield agent
    assert process.returncode == 0


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module", params=[at_socket, over_stdio], ids=["socket", "stdio"])
def editor(request: pytest.FixtureRequest, daemon: DaemonProcess, loop: asyncio.Runner) -> Iterator[Editor]:
    """A connected editor: one connection for all tests, as a person has an editor open all day."""
    editor = Editor()
    connection = request.param(daemon, editor)
    loop.run(connection.__aenter__())
    yield editor
    loop.run(connection.__aexit__(None, None, None))


def in_an_editor(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a test of what one editor does, in its event loop: it has introduced itself; what it opens is closed.

    A test that wants a `session` gets one in `cwd`.
    """
    wanted = inspect.signature(test).parameters

    async def story(editor: Editor, cwd: Path, fixtures: dict[str, Any]) -> None:
        editor.forget()
        async with asyncio.timeout(HANG_GUARD):
            info = sdk.Implementation(name="an editor", version="2")
            await editor.agent.initialize(protocol_version=1, client_capabilities=ABLE, client_info=info)
            try:
                if "session" in wanted:
                    fixtures["session"] = await editor.new(cwd)
                await test(**{name: each for name, each in fixtures.items() if name in wanted})
            finally:
                for session in editor.opened:
                    with suppress(acp.RequestError):  # it is closed already
                        await editor.agent.close_session(session_id=session)

    def run(loop: asyncio.Runner, **fixtures: Any) -> None:
        loop.run(story(fixtures["editor"], fixtures["cwd"], fixtures))

    run.__name__ = test.__name__
    names = dict.fromkeys(["editor", "cwd", "loop", *wanted])
    asked = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names if name != "session"]
    run.__signature__ = inspect.Signature(asked)  # type: ignore[attr-defined]
    return run


@pytest.fixture
def cwd(root: Path) -> Path:
    """Where the editor's project is: a folder with a.txt in it."""
    return root


@contextmanager
def refused(code: int, kind: str) -> Iterator[dict[str, Any]]:
    """Expect an error of ours; the dict that is yielded gets its data."""
    data: dict[str, Any] = {}
    with pytest.raises(acp.RequestError) as caught:
        yield data
    assert isinstance(caught.value.data, dict)
    data |= caught.value.data
    assert (caught.value.code, data["kind"]) == (code, kind)
    assert str(caught.value)


async def other_editor(daemon: DaemonProcess, story: Story) -> None:
    """Run a part of a story with another editor, at the socket, which cannot show forms."""
    editor = Editor()
    async with at_socket(daemon, editor) as agent:
        await agent.initialize(protocol_version=1)
        await story(editor)


# --- the connection ---------------------------------------------------------------------------------------------------


@in_an_editor
async def test_initialize_tells_what_the_agent_can_do(editor: Editor, daemon: DaemonProcess) -> None:
    told = (await editor.agent.initialize(protocol_version=1)).model_dump(by_alias=True, exclude_none=True)
    able = told["agentCapabilities"]
    assert (told["protocolVersion"], told["agentInfo"]["name"]) == (1, "strongroom")
    assert able["loadSession"]
    assert able["promptCapabilities"] == {"image": True, "audio": False, "embeddedContext": True}
    assert {"list", "resume", "close", "delete"} <= able["sessionCapabilities"].keys()
    assert extensions.STATUS_METHOD in able["_meta"][extensions.EXTENSIONS]
    assert told["_meta"][extensions.DAEMON]["pid"] == daemon.pid


@in_an_editor
async def test_a_newer_client_is_answered_with_the_version_that_there_is(editor: Editor) -> None:
    assert (await editor.agent.initialize(protocol_version=7)).protocol_version == 1


@pytest.mark.parametrize(
    ("able", "methods"),
    [
        pytest.param({"auth": {"terminal": True}}, ["terminal"], id="can"),
        pytest.param({"_meta": {"terminal-auth": True}}, ["terminal"], id="can, as it was said before 1.21"),
        pytest.param({"auth": {"terminal": 1}}, [], id="says what is no yes"),
        pytest.param({"auth": [], "_meta": None}, [], id="says something else"),
        pytest.param({}, [], id="cannot"),
    ],
)
@in_an_editor
async def test_a_login_is_named_to_clients_that_can_open_a_terminal(
    editor: Editor, able: dict[str, Any], methods: list[str]
) -> None:
    told = await editor.raw("initialize", {"protocolVersion": 1, "clientCapabilities": able})
    assert [each["type"] for each in told["authMethods"]] == methods
    assert all(each["args"] == ["login"] for each in told["authMethods"])


@in_an_editor
async def test_authentication_is_done_by_the_kernel(editor: Editor) -> None:
    assert await editor.agent.authenticate(method_id="any") == sdk.AuthenticateResponse()


# --- a turn -----------------------------------------------------------------------------------------------------------


@in_an_editor
async def test_a_new_session_is_named_before_anything_is_heard_of_it(editor: Editor, cwd: Path) -> None:
    opened = await editor.agent.new_session(cwd=str(cwd))
    session = opened.session_id
    assert opened.modes is not None
    assert opened.modes.current_mode_id == "edits"
    assert [mode.id for mode in opened.modes.available_modes] == ["ask", "edits", "plan"]
    options = {option.id: option.current_value for option in opened.config_options or ()}
    assert options == {"model": "offline", "mode": "edits", "profile": "vault"}
    await editor.until(lambda: editor.updates(session, "available_commands_update"))
    answered = editor.position(lambda message: message.get("result", {}).get("sessionId") == session)
    heard = [n for n, message in enumerate(editor.said) if message.get("params", {}).get("sessionId") == session]
    assert answered < min(heard)
    [told] = editor.updates(session, "available_commands_update")
    hints = {each["name"]: each["input"]["hint"] for each in told["availableCommands"] if "input" in each}
    assert hints == {"rules": "revoke N, or keep N", "budget": "turn 500000 tokens", "compact": "what to keep in mind"}


@in_an_editor
async def test_what_a_session_lacks_and_why_it_waits_are_notices_that_are_not_told_again(
    editor: Editor, cwd: Path, tmp_path: Path
) -> None:
    model = scripted(tmp_path / "script.jsonl", {"fault": "overloaded", "times": 1, "text": "At last."})
    server = sdk.McpServerStdio(name="m", command="/bin/m", args=[], env=[])
    meta: dict[str, Any] = {extensions.OPTIONS: {"model": model}}
    session = (await editor.agent.new_session(cwd=str(cwd), mcp_servers=[server], **meta)).session_id
    await editor.prompt(session, "hello")
    told = [(each["severity"], each["title"]) for each in editor.updates(session, "notice")]
    assert told == [("warning", "MCP servers are ignored"), ("warning", "Asked again in 0.0 s, attempt 2")]
    assert editor.updates(session, "notice")[1]["description"] == "overloaded: scripted fault"
    editor.said.clear()
    await editor.agent.load_session(session_id=session, cwd=str(cwd))
    assert editor.text(session) == "At last."
    assert editor.updates(session, "notice") == []


@in_an_editor
async def test_a_turn_is_heard_as_it_happens_and_whole_before_its_answer(
    editor: Editor, cwd: Path, tmp_path: Path
) -> None:
    model = scripted(
        tmp_path / "script.jsonl",
        {"text": "Let me look.", "calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]},
        {"text": "It says hello."},
    )
    session = await editor.new(cwd, model=model)
    answer = await editor.prompt(session, "what is in a.txt?")
    assert answer.stop_reason == "end_turn"
    assert answer.usage is not None
    assert answer.usage.total_tokens == 4
    answered = editor.position(lambda message: message.get("result", {}).get("stopReason"))
    heard = editor.position(lambda message: message.get("params", {}).get("sessionId") == session)
    assert heard < answered
    said = editor.updates(session, "agent_message_chunk")
    assert [(each["messageId"], each["content"]["text"]) for each in said] == [
        ("turn-1-step-0", "Let me look."),
        ("turn-1-step-1", "It says hello."),
    ]
    [started] = editor.updates(session, "tool_call")
    assert (started["title"], started["kind"], started["status"]) == ("read_file a.txt", "read", "in_progress")
    assert started["name"] == "read_file"
    assert started["rawInput"] == {"path": "a.txt"}
    assert started["locations"] == [{"path": str(cwd / "a.txt")}]
    [ended] = editor.updates(session, "tool_call_update")
    assert ended["status"] == "completed"
    assert ended["content"] == [{"type": "content", "content": {"type": "text", "text": "hello\n"}}]


@in_an_editor
async def test_every_kind_of_text_may_be_in_a_prompt(editor: Editor, session: str, cwd: Path) -> None:
    text = sdk.TextContentBlock(type="text", text="a\u2028b \U0001f512")
    link = sdk.ResourceContentBlock(type="resource_link", uri="file:///a.txt", name="a.txt")
    file = sdk.TextResourceContents(uri="file:///b.txt", text="in b")
    resource = sdk.EmbeddedResourceContentBlock(type="resource", resource=file)
    await editor.agent.prompt(session_id=session, prompt=[text, link, resource])
    await editor.agent.load_session(session_id=session, cwd=str(cwd))
    [said] = editor.updates(session, "user_message_chunk")
    assert said["content"]["text"] == (
        "a\u2028b \U0001f512\n\n[a.txt](file:///a.txt)\n\n"
        "<resource uri='file:///b.txt' id=4c1d055a31fb3c0d>\nin b\n</resource id=4c1d055a31fb3c0d>"
    )


@in_an_editor
async def test_images_and_documents_may_be_in_a_prompt(editor: Editor, session: str, cwd: Path) -> None:
    image = sdk.ImageContentBlock(type="image", data=base64.b64encode(picture()).decode(), mime_type="image/png")
    blob = base64.b64encode(pdf("x")).decode()
    file = sdk.BlobResourceContents(uri="file:///b.pdf", blob=blob, mime_type="application/pdf")
    resource = sdk.EmbeddedResourceContentBlock(type="resource", resource=file)
    text = sdk.TextContentBlock(type="text", text="read a.png")
    (cwd / "a.png").write_bytes(picture())
    await editor.agent.prompt(session_id=session, prompt=[image, resource, text])
    (call,) = editor.calls(session).values()
    assert [each["content"]["type"] for each in call["content"]] == ["text", "image"]
    await editor.agent.load_session(session_id=session, cwd=str(cwd))
    said = editor.updates(session, "user_message_chunk")[0]["content"]["text"].split("\n")
    assert [each.partition(",")[0] for each in said] == ["[image: PNG image", "[b.pdf: PDF document", "read a.png"]


STOPS: Final = {"max_tokens": "max_tokens", "refusal": "refusal", "end_turn": "end_turn", "stop_sequence": "end_turn"}


@pytest.mark.parametrize("reason", STOPS)
@in_an_editor
async def test_a_turn_says_why_it_ended(editor: Editor, cwd: Path, tmp_path: Path, reason: str) -> None:
    model = scripted(tmp_path / "script.jsonl", {"text": "So far.", "stop_reason": reason})
    session = await editor.new(cwd, model=model)
    assert (await editor.prompt(session, "go")).stop_reason == STOPS[reason]


@in_an_editor
async def test_a_command_is_answered_and_is_no_part_of_the_conversation(
    editor: Editor, session: str, cwd: Path
) -> None:
    assert (await editor.prompt(session, "/tools")).stop_reason == "end_turn"
    assert "write_file" in editor.text(session)
    assert editor.history(session) == []
    loaded = await editor.agent.load_session(session_id=session, cwd=str(cwd))
    assert loaded.field_meta is not None
    assert loaded.field_meta[extensions.OPTIONS].get("turns", 0) == 0


# --- permissions ------------------------------------------------------------------------------------------------------


@in_an_editor
async def test_permission_is_asked_with_everything_that_the_person_must_see(
    editor: Editor, session: str, cwd: Path
) -> None:
    editor.answer = always("allow_once")
    await editor.prompt(session, "write b.txt: new")
    [asked] = editor.asked
    assert asked.session == session
    assert asked.call.raw_input == {"path": "b.txt", "content": "new"}
    assert (asked.call.title, asked.call.kind, asked.call.status) == ("write_file b.txt", "edit", "pending")
    why, listing, change = asked.call.content or []
    assert isinstance(why, sdk.ContentToolCallContent)
    assert isinstance(listing, sdk.ContentToolCallContent)
    assert "asks before each write_file" in why.content.text
    assert "Would change 1 file: 1 added\n  A  b.txt  3 B" in listing.content.text
    assert change == sdk.FileEditToolCallContent(type="diff", path=str(cwd / "b.txt"), new_text="new")
    assert asked.options == ["allow_once", "edit", "reject_once"]
    assert asked.meta[extensions.REVIEW]["arguments"] == '{"path":"b.txt","content":"new"}'
    assert asked.call.tool_call_id in editor.calls(session)


@in_an_editor
async def test_a_call_that_is_allowed_runs(editor: Editor, session: str, cwd: Path) -> None:
    editor.answer = always("allow_once")
    assert (await editor.prompt(session, "write b.txt: new")).stop_reason == "end_turn"
    assert (cwd / "b.txt").read_text() == "new"
    [call] = editor.calls(session).values()
    assert call["status"] == "completed"


async def breaks(_asked: Asked) -> str | None:
    raise acp.RequestError.internal_error({"details": "the dialog is broken"})


REFUSALS: Final = {
    "rejected": always("reject_once"),
    "closed": always(None),
    "an option that was not offered": always("allow_always"),
    "an option that looks like a yes": always("Allow_Once"),
    "an empty option": always(""),
    "an error": breaks,
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=list(REFUSALS))
@in_an_editor
async def test_whatever_is_no_clear_yes_is_a_no(editor: Editor, session: str, cwd: Path, answer: Answer) -> None:
    editor.answer = answer
    assert (await editor.prompt(session, "write b.txt: new")).stop_reason == "end_turn"
    assert not (cwd / "b.txt").exists()
    assert len(editor.asked) == 1
    [call] = editor.calls(session).values()
    assert call["status"] == "failed"
    assert call["rawOutput"]["error"]["kind"] == "denied"


ORDERS: Final = {
    "no, then yes": ("no yes", []),
    "yes, then no": ("yes no", ["b.txt"]),
    "yes, twice": ("yes yes", ["b.txt"]),
    "yes under an id that nobody has": ("stray no", []),
    "yes after the cancel": ("cancel yes", []),
    "yes to the question of a turn that is over": ("cancel again yes-before no", []),
    "no to that, and yes to this": ("cancel again no-before yes", ["b.txt"]),
    "a form filled in twice": ("edit c.txt d.txt", ["c.txt"]),
    "a form filled in after the cancel": ("edit cancel c.txt", []),
    "yes while the form is open": ("edit yes close", []),
    "no while the form is open": ("edit no c.txt", ["c.txt"]),
}
"""Answers in the order in which they come, and what is written then."""


@pytest.mark.parametrize(("order", "written"), ORDERS.values(), ids=list(ORDERS))
def test_of_answers_that_come_late_or_twice_only_one_that_is_awaited_counts(
    daemon: DaemonProcess, cwd: Path, order: str, written: list[str]
) -> None:
    with daemon.client(elicitation={"form": {}}) as client:
        session = client.new_session(cwd)
        prompt = client.begin_prompt(session, "write b.txt: new")
        asked = [client.until(ASK)]
        form: dict[str, Any] = {}
        for step in order.split():
            match step:
                case "yes" | "no":
                    client.choose(asked[-1], {"yes": "allow_once", "no": "reject_once"}[step])
                case "yes-before" | "no-before":
                    client.choose(asked[0], {"yes-before": "allow_once", "no-before": "reject_once"}[step])
                case "stray":
                    client.allow({"id": "ask-9999"})
                case "edit":
                    client.choose(asked[-1], "edit")
                    form = client.until("elicitation/create")
                case "close":
                    client.reply(form, {"action": "cancel"})
                case "cancel":
                    client.notify("session/cancel", {"sessionId": session})
                case "again":
                    assert client.result(prompt)["stopReason"] == "cancelled"
                    prompt = client.begin_prompt(session, "write b.txt: new")
                    asked.append(client.until(ASK))
                case path:
                    client.reply(form, {"action": "accept", "content": {"path": path, "content": "new"}})
        client.result(prompt)
        client.status()  # what came late has arrived
        assert sorted(path.name for path in cwd.iterdir()) == ["a.txt", *written]


@in_an_editor
async def test_a_person_may_edit_a_call_in_a_form(
    editor: Editor, daemon: DaemonProcess, session: str, cwd: Path
) -> None:
    editor.answer = always("edit")
    editor.form = accepted(content={"path": "c.txt", "content": "newer"})
    await editor.prompt(session, "write b.txt: new")
    [(message, mode)] = editor.forms
    assert "write_file" in message
    assert mode.session_id == session
    assert mode.tool_call_id == editor.asked[0].call.tool_call_id
    fields = mode.requested_schema.model_dump(by_alias=True)["properties"]
    assert {name: (field["type"], field["default"]) for name, field in fields.items()} == {
        "path": ("string", "b.txt"),
        "content": ("string", "new"),
    }
    assert not (cwd / "b.txt").exists()
    assert (cwd / "c.txt").read_text() == "newer"
    [started, *_] = [fact for fact in daemon.facts_of(session, CallStarted) if fact.edited]
    assert started.edited == '{"path":"c.txt","content":"newer"}'


FORMS: Final[dict[str, sdk.CreateElicitationResponse]] = {
    "declined": sdk.DeclineElicitationResponse(action="decline"),
    "closed": sdk.CancelElicitationResponse(action="cancel"),
    "accepted with nothing": accepted(),
    "accepted with less": accepted(content={"path": "c.txt"}),
    "accepted with more": accepted(content={"path": "c.txt", "content": "x", "mode": "a"}),
    "accepted with another type": accepted(content={"path": 1, "content": "x"}),
    "accepted with a way out": accepted(content={"path": "../c.txt", "content": "x"}),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@in_an_editor
async def test_a_form_that_gives_no_good_call_changes_nothing(
    editor: Editor, session: str, cwd: Path, form: sdk.CreateElicitationResponse
) -> None:
    editor.answer = always("edit")
    editor.form = form
    await editor.prompt(session, "write b.txt: new")
    assert [call["status"] for call in editor.calls(session).values()] == ["failed"]
    assert [path.name for path in cwd.iterdir()] == ["a.txt"]
    assert not (cwd.parent / "c.txt").exists()


@in_an_editor
async def test_a_client_without_forms_is_offered_none(editor: Editor, cwd: Path) -> None:
    await editor.agent.initialize(protocol_version=1)
    session = await editor.new(cwd)
    await editor.prompt(session, "write b.txt: new")
    assert editor.asked[0].options == ["allow_once", "reject_once"]


# --- cancelling -------------------------------------------------------------------------------------------------------


@in_an_editor
async def test_a_turn_that_is_cancelled_while_it_asks_ends_as_cancelled(
    editor: Editor, session: str, cwd: Path
) -> None:
    closed = editor.hold()
    turn = await editor.begin(editor.prompt(session, "write b.txt: new"))
    await editor.agent.cancel(session_id=session)
    assert (await turn).stop_reason == "cancelled"
    closed.set()
    assert (await editor.prompt(session, "read a.txt")).stop_reason == "end_turn"
    assert not (cwd / "b.txt").exists()
    assert [call["status"] for call in editor.calls(session).values()] == ["failed", "completed"]


@in_an_editor
async def test_a_request_that_is_cancelled_is_answered_as_cancelled(editor: Editor, session: str, cwd: Path) -> None:
    closed = editor.hold()
    arguments = '{"path": "b.txt", "content": "new"}'
    params = {"sessionId": session, "tool": "write_file", "arguments": arguments}
    call = await editor.begin(editor.raw(extensions.CALL_METHOD, params))
    await editor.cancel_request(extensions.CALL_METHOD)
    with refused(-32800, "cancelled"):
        await call
    closed.set()
    assert not (cwd / "b.txt").exists()


@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
def test_a_cancel_right_behind_its_prompt_cancels_it(client: Lines, cwd: Path, method: str) -> None:
    session = client.new_session(cwd)
    for number in range(1000, 1020):
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "write b.txt: new"}]}
        both = (
            {"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": prompt},
            {"jsonrpc": "2.0", "method": method, "params": {"sessionId": session, "requestId": number}},
        )
        client.send("".join(json.dumps(each) + "\n" for each in both).encode())
        assert client.answer(number)["result"]["stopReason"] == "cancelled"
    assert not (cwd / "b.txt").exists()


@in_an_editor
async def test_cancelling_what_does_not_run_does_nothing(editor: Editor, session: str) -> None:
    await editor.agent.cancel(session_id=session)
    await editor.agent.cancel(session_id="no such session")
    await editor.notify("$/cancel_request", {"requestId": 10_000})
    await editor.notify("$/cancel_request", {})
    assert (await editor.prompt(session, "read a.txt")).stop_reason == "end_turn"


# --- sessions taken up again ------------------------------------------------------------------------------------------


async def two_turns(editor: Editor, cwd: Path, model: str) -> str:
    """Run two turns, the first with calls that end well and badly; return the session."""
    editor.answer = always("allow_once")
    session = await editor.new(cwd, model=model)
    await editor.prompt(session, "first")
    await editor.prompt(session, "second")
    return session


def story_model(folder: Path) -> str:
    return scripted(
        folder / "script.jsonl",
        {
            "text": "I read and write.",
            "calls": [
                {"tool": "read_file", "arguments": {"path": "a.txt"}},
                {"tool": "write_file", "arguments": {"path": "b.txt", "content": "new"}},
                {"tool": "read_file", "arguments": {"path": "missing.txt"}},
            ],
        },
        {"fault": "overloaded", "times": 1, "text": "One is missing."},
        {"text": "Still."},
        {"text": "Third."},
    )


@pytest.mark.parametrize("closed", [False, True], ids=["still open", "closed in between"])
@in_an_editor
async def test_a_session_that_is_loaded_looks_as_it_did_when_it_happened(
    editor: Editor, daemon: DaemonProcess, cwd: Path, tmp_path: Path, closed: bool
) -> None:
    session = await two_turns(editor, cwd, story_model(tmp_path))
    live = editor.history(session)
    if closed:
        await editor.agent.close_session(session_id=session)

    async def load(other: Editor) -> None:
        loaded = await other.agent.load_session(session_id=session, cwd=str(cwd))
        assert loaded.modes is not None
        assert loaded.modes.current_mode_id == "edits"
        answered = other.position(lambda message: message.get("result", {}).get("modes"))
        last = other.position(lambda message: "sessionUpdate" in str(message) and "usage" in str(message))
        assert last < answered
        replayed = other.history(session)
        assert [row[2] for row in replayed if row[0] == "user_message_chunk"] == ["first", "second"]
        assert [row for row in replayed if row[0] != "user_message_chunk"] == live
        assert (await other.prompt(session, "third")).stop_reason == "end_turn"
        assert other.history(session)[-1] == ["agent_message_chunk", "turn-3-step-0", "Third."]

    await other_editor(daemon, load)


@in_an_editor
async def test_a_session_that_is_resumed_is_not_replayed(
    editor: Editor, daemon: DaemonProcess, cwd: Path, tmp_path: Path
) -> None:
    session = await two_turns(editor, cwd, story_model(tmp_path))
    await editor.agent.close_session(session_id=session)

    async def resume(other: Editor) -> None:
        resumed = await other.agent.resume_session(session_id=session, cwd=str(cwd))
        assert resumed.modes is not None
        assert (await other.prompt(session, "third")).stop_reason == "end_turn"
        assert other.history(session) == [["agent_message_chunk", "turn-3-step-0", "Third."]]

    await other_editor(daemon, resume)


@in_an_editor
async def test_two_editors_on_one_session_hear_the_same(
    editor: Editor, daemon: DaemonProcess, cwd: Path, tmp_path: Path
) -> None:
    session = await editor.new(cwd, model=story_model(tmp_path))

    async def listen(other: Editor) -> None:
        await other.agent.resume_session(session_id=session, cwd=str(cwd))
        other.answer = editor.answer = always("allow_once")
        await editor.prompt(session, "first")
        await other.until(lambda: other.history(session)[-1:] == editor.history(session)[-1:])
        assert other.history(session)[0] == ["user_message_chunk", "turn-1", "first"]
        assert other.history(session)[1:] == editor.history(session)

    await other_editor(daemon, listen)


@in_an_editor
async def test_two_sessions_on_one_connection_run_at_the_same_time(editor: Editor, cwd: Path) -> None:
    both = asyncio.Event()

    async def answer(_asked: Asked) -> str | None:
        if len(editor.asked) == 2:
            both.set()
        await both.wait()
        return "allow_once"

    editor.answer = answer
    first, second = await editor.new(cwd), await editor.new(cwd)
    answers = await asyncio.gather(editor.prompt(first, "write one.txt: 1"), editor.prompt(second, "write two.txt: 2"))
    assert [each.stop_reason for each in answers] == ["end_turn", "end_turn"]
    assert {asked.session for asked in editor.asked} == {first, second}
    assert [call["rawInput"]["path"] for call in editor.calls(first).values()] == ["one.txt"]
    assert [call["rawInput"]["path"] for call in editor.calls(second).values()] == ["two.txt"]
    assert ((cwd / "one.txt").read_text(), (cwd / "two.txt").read_text()) == ("1", "2")


# --- the list of sessions ---------------------------------------------------------------------------------------------


@in_an_editor
async def test_sessions_are_listed_by_directory_newest_first(editor: Editor, cwd: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    first, second, elsewhere = await editor.new(cwd), await editor.new(cwd), await editor.new(other)
    await editor.prompt(first, "read a.txt")
    listed = await editor.agent.list_sessions(cwd=str(cwd))
    assert [each.session_id for each in listed.sessions] == [first, second]
    assert {each.cwd for each in listed.sessions} == {str(cwd)}
    assert listed.sessions[0].title == "read a.txt"
    assert listed.sessions[0].updated_at is not None
    assert listed.next_cursor is None
    everywhere = [each.session_id for each in (await editor.agent.list_sessions()).sessions]
    assert {first, second, elsewhere} <= set(everywhere)


@in_an_editor
async def test_a_long_list_comes_in_pages(editor: Editor, cwd: Path) -> None:
    opened = [await editor.new(cwd) for _ in range(51)]
    first = await editor.agent.list_sessions(cwd=str(cwd))
    assert first.next_cursor is not None
    second = await editor.agent.list_sessions(cwd=str(cwd), cursor=first.next_cursor)
    assert second.next_cursor is None
    assert (len(first.sessions), len(second.sessions)) == (50, 1)
    assert {each.session_id for each in (*first.sessions, *second.sessions)} == set(opened)


@in_an_editor
async def test_a_session_that_is_closed_must_be_taken_up_again(editor: Editor, session: str, cwd: Path) -> None:
    await editor.prompt(session, "read a.txt")
    await editor.agent.close_session(session_id=session)
    with refused(-32002, "not_found"):
        await editor.prompt(session, "read a.txt")
    await editor.agent.resume_session(session_id=session, cwd=str(cwd))
    assert (await editor.prompt(session, "read a.txt")).stop_reason == "end_turn"


@in_an_editor
async def test_closing_a_session_cancels_its_turn(editor: Editor, session: str) -> None:
    closed = editor.hold()
    turn = await editor.begin(editor.prompt(session, "write b.txt: new"))
    await editor.agent.close_session(session_id=session)
    assert (await turn).stop_reason == "cancelled"
    closed.set()


@in_an_editor
async def test_a_session_that_is_deleted_is_not_listed_and_cannot_be_loaded(
    editor: Editor, session: str, cwd: Path
) -> None:
    for _ in range(2):
        assert await editor.raw("session/delete", {"sessionId": session}) == {}
    assert await editor.raw("session/delete", {"sessionId": "no such session"}) == {}
    assert (await editor.agent.list_sessions(cwd=str(cwd))).sessions == []
    with refused(-32002, "not_found"):
        await editor.agent.load_session(session_id=session, cwd=str(cwd))


# --- modes and options ------------------------------------------------------------------------------------------------


@in_an_editor
async def test_a_mode_says_which_changes_are_asked_about(editor: Editor, session: str, cwd: Path) -> None:
    await editor.agent.set_session_mode(session_id=session, mode_id="plan")
    assert [each["currentModeId"] for each in editor.updates(session, "current_mode_update")] == ["plan"]
    await editor.prompt(session, "write new.txt: text")
    assert not (cwd / "new.txt").exists()
    resumed = await editor.agent.resume_session(session_id=session, cwd=str(cwd))
    assert resumed.modes is not None
    assert resumed.modes.current_mode_id == "plan"


@in_an_editor
async def test_the_model_is_an_option(editor: Editor, session: str, tmp_path: Path) -> None:
    model = scripted(tmp_path / "script.jsonl", {"text": "Here I am."})
    changed = await editor.agent.set_config_option(session_id=session, config_id="model", value=model)
    options = {option.id: option.current_value for option in changed.config_options}
    assert options == {"model": model, "mode": "edits", "profile": "vault"}
    await editor.prompt(session, "hello")
    assert editor.text(session) == "Here I am."


@in_an_editor
async def test_the_profile_and_the_mode_are_options_too(editor: Editor, session: str) -> None:
    await editor.agent.set_config_option(session_id=session, config_id="mode", value="ask")
    changed = await editor.agent.set_config_option(session_id=session, config_id="profile", value="project")
    assert [option.current_value for option in changed.config_options] == ["offline", "ask", "project"]
    assert [each["currentModeId"] for each in editor.updates(session, "current_mode_update")] == ["ask"]
    await editor.prompt(session, "/tools")
    assert "list_directory" in editor.text(session)


# --- what Strongroom adds ---------------------------------------------------------------------------------------------


@in_an_editor
async def test_the_status_can_be_asked_for(editor: Editor, daemon: DaemonProcess, session: str, cwd: Path) -> None:
    await editor.prompt(session, "read a.txt")
    status = await editor.agent.ext_method("strongroom/status", {})
    assert status["daemon"]["pid"] == daemon.pid
    [found] = [each for each in status["sessions"] if each["sessionId"] == session]
    assert (found["profile"], found["model"], found["turns"], found["clients"]) == ("vault", "offline", 1, 1)
    [pool] = [each for each in status["pools"] if (each["root"], each["category"]) == (str(cwd), "files")]
    assert pool["calls"] == 1


@in_an_editor
async def test_a_tool_can_be_called_without_a_model(editor: Editor, cwd: Path) -> None:
    session = await editor.new(cwd, modelless=True)
    call = partial(editor.agent.ext_method, "strongroom/call")
    good = await call({"sessionId": session, "tool": "read_file", "arguments": '{"path": "a.txt"}'})
    assert good["answer"]["content"] == "hello\n"
    bad = await call({"sessionId": session, "tool": "read_file", "arguments": '{"path": "../a.txt"}'})
    assert bad["answer"]["error"]["kind"] == "path_escape"
    why = await editor.agent.ext_method("strongroom/why", {"toolCallId": good["call"], "sessionId": session})
    assert why["tool"] == "read_file"


@in_an_editor
async def test_a_session_can_be_checked_before_it_is_opened(editor: Editor, cwd: Path) -> None:
    checked = await editor.agent.ext_method("strongroom/check", {"root": str(cwd)})
    assert checked == {"profile": "vault", "root": str(cwd), "model": "offline"}
    with refused(-32602, "config"):
        await editor.agent.ext_method("strongroom/check", {"profile": "vualt"})


@in_an_editor
async def test_there_is_nothing_to_continue_in_a_session_at_rest(editor: Editor, session: str) -> None:
    assert await editor.agent.ext_method("strongroom/continue", {"sessionId": session}) is None


@in_an_editor
async def test_a_turn_s_answer_sums_it_up(editor: Editor, session: str) -> None:
    answer = await editor.prompt(session, "read a.txt")
    assert answer.field_meta is not None
    summary = answer.field_meta[extensions.TURN]
    assert (summary["turn"], summary["status"], summary["steps"]) == (1, "ok", 2)
    assert "hello" in summary["answer"]


# --- errors -----------------------------------------------------------------------------------------------------------

NOWHERE: Final = "20260101-000000-000000000000"

Refusal = tuple[str, dict[str, Any], int, str]
"""A request, and the error that answers it."""
WRONG: Final = (-32602, "invalid_params")

ERRORS: Final[dict[str, Refusal]] = {
    "an unknown method": ("session/unheard", {}, -32601, "unknown_method"),
    "an unknown extension": ("_other/method", {}, -32601, "unknown_method"),
    "no parameters": ("session/new", {}, *WRONG),
    "a relative directory": ("session/new", {"cwd": "here", "mcpServers": []}, *WRONG),
    "a directory with a zero byte": ("session/new", {"cwd": "/a\0b", "mcpServers": []}, *WRONG),
    "a directory that is missing": ("session/new", {"cwd": "/no/such", "mcpServers": []}, -32602, "config"),
    "a session that is not there": ("session/load", named(NOWHERE), -32002, "not_found"),
    "a session that is not open": ("session/prompt", {"sessionId": NOWHERE, "prompt": []}, -32002, "not_found"),
    "a session that is a number": ("session/prompt", {"sessionId": 1, "prompt": []}, *WRONG),
    "a cursor that is none": ("session/list", {"cursor": "next"}, *WRONG),
}


@pytest.mark.parametrize(("method", "params", "code", "kind"), ERRORS.values(), ids=list(ERRORS))
@in_an_editor
async def test_an_error_has_a_code_and_a_kind(
    editor: Editor, method: str, params: dict[str, Any], code: int, kind: str
) -> None:
    with refused(code, kind):
        await editor.raw(method, params)


SOUND: Final = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
OPTION: Final = "session/set_config_option"

IN_SESSION: Final[dict[str, Refusal]] = {
    "an empty prompt": ("session/prompt", {"prompt": []}, *WRONG),
    "a prompt of spaces": ("session/prompt", {"prompt": [{"type": "text", "text": " \n"}]}, *WRONG),
    "a sound": ("session/prompt", {"prompt": [SOUND]}, *WRONG),
    "an unknown mode": ("session/set_mode", {"modeId": "vualt"}, -32602, "config"),
    "an unknown option": (OPTION, {"configId": "x", "value": "y"}, *WRONG),
    "an option that is a boolean": (OPTION, {"configId": "model", "type": "boolean", "value": True}, *WRONG),
    "an unknown model": (OPTION, {"configId": "model", "value": "gpt"}, -32602, "config"),
}


@pytest.mark.parametrize(("method", "params", "code", "kind"), IN_SESSION.values(), ids=list(IN_SESSION))
@in_an_editor
async def test_an_error_in_a_session_leaves_it_as_it_was(
    editor: Editor, session: str, method: str, params: dict[str, Any], code: int, kind: str
) -> None:
    with refused(code, kind):
        await editor.raw(method, {"sessionId": session, **params})
    assert (await editor.prompt(session, "read a.txt")).stop_reason == "end_turn"


@in_an_editor
async def test_a_model_that_fails_fails_the_prompt_with_its_kind(editor: Editor, cwd: Path, tmp_path: Path) -> None:
    model = scripted(tmp_path / "script.jsonl", {"fault": "rate_limited"}, {"text": "Better now."})
    session = await editor.new(cwd, model=model)
    with refused(-32603, "rate_limited") as data:
        await editor.prompt(session, "hello")
    assert data["turn"]["status"] == "error"
