"""What a person decides about is exactly what runs."""

import json
from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.clients.console.approval_form import ApprovalForm, wider_approvals
from tests.supervisor.clients.console.typist import LONG_ONE, Typist


def form(arguments: str, tool: str = "run_cmd", **more: Any) -> ApprovalForm:
    return ApprovalForm(extensions.ApprovalRequest(tool=tool, arguments=arguments, reason="", **more))


LAID_OUT: Final = [
    ("one text", '{"command": "ls -l"}', "command", "ls -l"),
    ("lines", '{"command": "a\\nb"}', "command", "a\nb"),
    ("several", '{"a": "x", "b": 1}', "", '{\n  "a": "x",\n  "b": 1\n}'),
    ("a time that is none", '{"command": "a", "timeout_s": "9"}', "", '{\n  "command": "a",\n  "timeout_s": "9"\n}'),
    ("a time", '{"command": "make", "timeout_s": 90.5}', "command", "make"),
    ("no text", '{"a": 1}', "", '{\n  "a": 1\n}'),
    ("controls", '{"command": "a\\u001b[2Jb"}', "", '{\n  "command": "a\\u001b[2Jb"\n}'),
    ("a tab", '{"command": "a\\tb"}', "", '{\n  "command": "a\\tb"\n}'),
    ("a bidirectional override", '{"command": "a\u202eb"}', "", '{\n  "command": "a\\u202eb"\n}'),
    ("half a character", '{"command": "\\ud800"}', "", '{"command": "\\ud800"}'),
    ("a name twice", '{"command": "ls", "command": "rm"}', "", '{\n  "command": "ls",\n  "command": "rm"\n}'),
    ("a precise number", '{"n": 1.00000000000000000001}', "", '{\n  "n": 1.00000000000000000001\n}'),
    ("no JSON", '{"a"', "", '{"a"'),
    ("no JSON with controls", "\x1b", "", "\\x1b"),
    ("nothing", "", "", "{}"),
]


@pytest.mark.parametrize(("arguments", "key", "text"), [row[1:] for row in LAID_OUT], ids=[row[0] for row in LAID_OUT])
def test_it_is_laid_out(arguments: str, key: str, text: str) -> None:
    found = form(arguments)
    assert (found.key, found.text) == (key, text)
    assert found.settle(text) == ""
    assert found.edited is None


@pytest.mark.parametrize(
    ("stage", "text"),
    [("switch", "Ask another model? m is \\x1b down"), ("turn", "Go on with this turn? m is \\x1b down")],
)
def test_a_question_that_no_call_is_behind_is_a_sentence(stage: extensions.Stage, text: str) -> None:
    request = extensions.ApprovalRequest(
        tool="switch_model", arguments="{}", reason="m is \x1b down", editable=False, stage=stage
    )
    found = ApprovalForm(request)
    assert (found.text, found.label) == (text, "")
    assert found.settle(text) == ""
    assert found.edited is None


def written(arguments: dict[str, str], tool: str = "write_file") -> ApprovalForm:
    effects = extensions.ProposedEffects(changes=[extensions.ChangedName(path="a", what="added", diff="+x\n")])
    return form(json.dumps(arguments), tool, stage="effects", effects=effects)


def test_new_text_of_a_file_is_edited_as_text_and_the_rest_stays() -> None:
    found = written({"path": "a", "content": "漢\n# b\n"})
    assert (found.key, found.text, found.brief) == ("content", "漢\n# b\n", True)
    assert found.settle("c\n") == ""
    assert json.loads(found.edited or "") == {"path": "a", "content": "c\n"}
    edit = written({"path": "a", "old": "x\ty", "new": "z"}, "edit_file")
    assert edit.settle("w") == ""
    assert json.loads(edit.edited or "") == {"path": "a", "old": "x\ty", "new": "w"}


def test_new_text_with_what_cannot_be_seen_is_edited_as_json() -> None:
    found = written({"path": "a", "content": "x\u202e\n"})
    assert (found.key, found.is_escaped, found.brief) == ("", True, True)
    assert '"content": "x\\u202e\\n"' in found.text
    assert found.to_read == "path: a\ncontent:\n  x\\u202e"


def test_the_box_of_an_edit_leaves_the_screen_to_its_difference_until_it_is_edited() -> None:
    for arguments in ({"path": "a", "content": "x\n" * 40}, {"path": "a", "content": "\t\n" * 40}):
        typist = Typist()
        typist.ask(tool="write_file", arguments=json.dumps(arguments), **LONG_ONE)
        rows = typist.queue.rows
        typist.rest(1.0)
        typist.press("Tab")
        assert rows < typist.queue.rows


EDITED: Final = [
    ('{"timeout_s": 90, "command": "make"}', "make all", {"command": "make all", "timeout_s": 90}),
    ('{"command": "ls"}', 'ls "é"\npwd', {"command": 'ls "é"\npwd'}),
    ('{"command": "ls"}', "", {"command": ""}),
    ('{"a": 1, "b": 2}', '{\n\t"a": 1.0,\r\n "b": [2]}', {"a": 1.0, "b": [2]}),
    ('{"a": 1}', '{"a": "\\u001b"}', {"a": "\x1b"}),
]


@pytest.mark.parametrize(("arguments", "text", "sent"), EDITED)
def test_an_edited_text_is_sent_as_it_stands(arguments: str, text: str, sent: Any) -> None:
    found = form(arguments)
    assert found.settle(text) == ""
    assert found.edited is not None
    assert json.loads(found.edited) == sent
    assert "\n" not in found.edited


REFUSED: Final = [
    ("[1]", "JSON object"),
    ('{"a": ', "not JSON"),
    ('{"a": 1, "a": 2}', "twice"),
    ('{"a": NaN}', "NaN"),
    ("[" * 100_000, "not JSON"),
]


def test_text_that_is_no_object_is_not_sent() -> None:
    for text, why in REFUSED:
        found = form('{"a": 1, "b": 2}')
        assert why in found.settle(text)
        assert found.text == text


UNSEEN: Final = [
    *(('{"command": "ls"}', unseen) for unseen in ("\x1b[2J", "\u202e", "\t", "\ud800", "\u200b")),
    *(('{"command": "ls", "n": 1}', unseen) for unseen in ("\u202e", "\ud800", "\u200b", "\x7f")),
]


@pytest.mark.parametrize(("arguments", "unseen"), UNSEEN)
def test_an_unseen_character_is_shown_before_it_is_sent(arguments: str, unseen: str) -> None:
    found = form(arguments)
    assert found.settle(found.text.replace("ls", f"ls {unseen}x")).startswith("The text held")
    assert unseen not in found.text
    assert found.settle(found.text) == ""
    assert json.loads(found.edited or "")["command"] == f"ls {unseen}x"


def test_a_call_that_may_not_be_edited_is_not() -> None:
    found = form('{"command": "ls"}', editable=False)
    assert found.settle("rm") == "This call cannot be edited."
    assert found.settle(found.text) == ""


# --- the words of a command -------------------------------------------------------------------------------------------

LS: Final = '{"command": "ls", "args": ["-l"]}'


def command(arguments: str = LS, **more: Any) -> ApprovalForm:
    return form(arguments, "exec_shell", **more)


def test_a_command_is_edited_as_words() -> None:
    found = command()
    assert (found.label, found.text) == ("words, no shell", "ls -l")
    assert found.settle("ls -l; 'a b'") == ""
    assert json.loads(found.edited or "") == {"command": "ls", "args": ["-l;", "a b"]}
    assert found.settle("ls 'a") == "These are not the words of a command: No closing quotation."
    assert found.settle("ls \u202ea").startswith("The text held")
    assert found.label == "arguments, JSON"
    assert found.settle(found.text) == ""
    assert json.loads(found.edited or "") == {"command": "ls", "args": ["\u202ea"]}


def test_a_command_keeps_its_time_when_it_is_edited() -> None:
    found = command('{"command": "npm", "args": ["test"], "timeout_s": 120}')
    assert (found.label, found.text) == ("words, no shell, 120 s at most", "npm test")
    assert found.settle("npm t") == ""
    assert json.loads(found.edited or "") == {"command": "npm", "args": ["t"], "timeout_s": 120}


def test_words_that_would_not_be_seen_are_shown_as_json() -> None:
    found = command('{"command": "ls", "args": ["\\u001b[2J"]}')
    assert "\\u001b[2J" in found.text
    assert found.settle(found.text) == ""
    assert found.edited is None


# --- what a yes does --------------------------------------------------------------------------------------------------

THREE: Final = extensions.ProposedEffects(totals={"added": 2, "modified": 1})
PROMISES: Final[list[tuple[extensions.Stage, extensions.ProposedEffects | None, str, str]]] = [
    ("call", None, "runs it", "runs it"),
    ("effects", THREE, "applies 3 changes", "rehearses it"),
    ("effects", extensions.ProposedEffects(totals={"mode": 1}), "applies 1 change", "rehearses it"),
    ("direct", None, "runs it on the root itself", "rehearses it"),
    ("network", THREE, "rehearses it with the network", "rehearses it"),
    ("turn", None, "goes on", "rehearses it"),
    ("refused", None, "leaves it at that", "rehearses it"),
]


def test_it_says_what_enter_does() -> None:
    for stage, effects, given, changed in PROMISES:
        found = command(stage=stage, effects=effects)
        assert (found.promise(found.text), found.promise("rm x")) == (given, changed)


def test_what_is_offered_is_the_first_key_where_nothing_else_is_asked_about() -> None:
    found = command(stage="refused", escalation=True, editable=False)
    keys = ["Alt-U real system", "Enter leaves it at that", "Esc leaves it, and says why"]
    assert found.keys(found.text, "Enter", engaged=False) == keys
    usual = command(escalation=True)
    assert usual.keys(usual.text, "Enter", engaged=False)[:3] == ["Enter runs it", "Esc rejects", "Alt-U real system"]


WIDER: Final[list[tuple[dict[str, Any], str, extensions.Scope | None, list[tuple[extensions.Scope, bool]]]]] = [
    ({"covers": "RULE"}, "ls -l", "session", [("session", False)]),
    ({"covers": "RULE"}, "ls -l", "always", [("always", False)]),
    ({"covers": "RULE"}, "rm x", "always", []),
    ({"escalation": True}, "ls -l", "always", []),
    ({"escalation": True}, "ls -l", None, [("once", True), ("once", True)]),
    ({"escalation": True}, "rm x", None, []),
    ({"covers": "RULE"}, "ls -l", None, []),
]


@pytest.mark.parametrize(("offered", "text", "to", "steps"), WIDER)
def test_a_yes_to_more_is_asked_for_where_it_is_offered(
    offered: dict[str, Any], text: str, to: extensions.Scope | None, steps: list[tuple[extensions.Scope, bool]]
) -> None:
    why, found = wider_approvals(command(stage="effects", effects=THREE, **offered), text, to)
    assert [(step.scope, step.unconfined) for step in found] == steps
    assert bool(why) == (not steps)
    assert all("RULE" in step.text for step in found if step.scope != "once")
