"""What an answer to a question about a call allows: only what was offered, and only where it is clear."""

import json
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from supervisor.acp import extensions
from supervisor.acp.extensions import EDITED, SCOPE, UNCONFINED
from supervisor.daemon.protocol.approval_options import filled, form, options, understood
from supervisor.rules.rule import Rule
from supervisor.tools.approval import ApprovalDecision
from tests.each_row import each_row
from tests.supervisor.changes import TODAY

TOUCH: Final = '{"command": "touch", "args": ["a"]}'
PLAIN: Final = extensions.ApprovalRequest(tool="exec_shell", arguments=TOUCH, reason="", stage="effects")
RULE: Final = replace(PLAIN, covers="touch\n a")
EDIT: Final[dict[str, Any]] = {"writes": ["docs/"], "deletes": ["docs/"]}
OFFERED: Final = Rule("allow", ("touch",), ("a",), max_files=10, until=TODAY, kinds=("content",))
MADE: Final = replace(OFFERED, writes=("docs/",), deletes=("docs/",))
WITH_RULE: Final = replace(RULE, rule=msgspec.to_builtins(OFFERED))
ESCALATION: Final = replace(PLAIN, escalation=True)
NETWORK: Final = replace(PLAIN, stage="network", editable=False)


def answer(
    told: extensions.ApprovalRequest, option: str, meta: dict[str, Any] | None = None, *, knows_extensions: bool = True
) -> ApprovalDecision | None:
    result = {"outcome": {"outcome": "selected", "optionId": option}, "_meta": meta or {}}
    offered = [each.option_id for each in options(told, forms=True)]
    return understood(told, json.dumps(result).encode(), offered, by="x", knows_extensions=knows_extensions)


def test_the_options_say_what_they_do_and_which_rule_they_make() -> None:
    assert [(each.option_id, each.name, each.kind) for each in options(RULE, forms=True)] == [
        ("allow_once", "Apply these changes", "allow_once"),
        ("edit", "Edit, then run...", "allow_once"),
        ("allow_session", "For this session: touch\\n a", "allow_always"),
        ("allow_always", "Always: touch\\n a", "allow_always"),
        ("reject_once", "Reject", "reject_once"),
    ]


STAGES: Final = {
    "call": "Run it",
    "effects": "Apply these changes",
    "direct": "Run it on the root itself",
    "network": "Rehearse it with the network",
    "refused": "Leave it at that",
}


@each_row(("stage", "name"), STAGES.items())
def test_a_yes_is_named_by_what_it_does(stage: extensions.Stage, name: str) -> None:
    told = replace(ESCALATION, stage=stage)
    assert [each.name for each in options(told, forms=False)] == [name, "Reject"]


YES: Final[list[tuple[extensions.ApprovalRequest, str, dict[str, Any], dict[str, Any]]]] = [
    (PLAIN, "allow_once", {}, {}),
    (PLAIN, "allow_once", {SCOPE: "once", UNCONFINED: False, extensions.REMARK: "why"}, {"remark": "why"}),
    (RULE, "allow_session", {}, {"scope": "session"}),
    (RULE, "allow_always", {}, {"scope": "always"}),
    (RULE, "allow_once", {SCOPE: "session"}, {"scope": "session"}),
    (RULE, "allow_always", {EDITED: {"command": "ls"}}, {"edited": '{"command":"ls"}'}),
    (ESCALATION, "allow_once", {UNCONFINED: True}, {"unconfined": True}),
    (WITH_RULE, "allow_always", {extensions.RULE: EDIT}, {"scope": "always", "rule": MADE}),
    (WITH_RULE, "allow_once", {SCOPE: "session", extensions.RULE: EDIT}, {"scope": "session", "rule": MADE}),
]


@each_row(("told", "option", "meta", "says"), YES)
def test_a_clear_yes_is_one(
    told: extensions.ApprovalRequest, option: str, meta: dict[str, Any], says: dict[str, Any]
) -> None:
    assert answer(told, option, meta) == ApprovalDecision(approved=True, by="x", **says)


NO: Final[list[tuple[extensions.ApprovalRequest, str, dict[str, Any], bool]]] = [
    (RULE, "reject_once", {SCOPE: "always"}, True),
    (RULE, "something", {}, True),
    (WITH_RULE, "allow_once", {extensions.RULE: EDIT}, True),
    (RULE, "allow_always", {extensions.RULE: EDIT}, True),
    (WITH_RULE, "allow_always", {extensions.RULE: {**EDIT, "programs": ["sh"]}}, True),
    (WITH_RULE, "allow_always", {extensions.RULE: {**EDIT, "writes": ["../x"]}}, True),
    (WITH_RULE, "allow_always", {extensions.RULE: "all"}, True),
    (WITH_RULE, "allow_always", {extensions.RULE: EDIT}, False),
    (PLAIN, "allow_always", {}, True),
    (PLAIN, "allow_once", {SCOPE: "always"}, True),
    (RULE, "allow_once", {SCOPE: "for ever"}, True),
    (RULE, "allow_once", {SCOPE: ["always"]}, True),
    (RULE, "allow_once", {UNCONFINED: True}, True),
    (ESCALATION, "allow_once", {UNCONFINED: 1}, True),
    (ESCALATION, "allow_once", {UNCONFINED: "yes"}, True),
    (ESCALATION, "allow_once", {UNCONFINED: True, SCOPE: "session"}, True),
    (NETWORK, "allow_once", {EDITED: {"command": "ls"}}, True),
    (RULE, "allow_once", {SCOPE: "always"}, False),
    (ESCALATION, "allow_once", {UNCONFINED: True}, False),
    (PLAIN, "allow_once", {EDITED: {"command": "ls"}}, False),
]


@each_row(("told", "option", "meta", "knows_extensions"), NO)
def test_everything_else_declines(
    told: extensions.ApprovalRequest, option: str, meta: dict[str, Any], knows_extensions: bool
) -> None:
    found = answer(told, option, meta, knows_extensions=knows_extensions)
    assert found is not None
    assert (found.approved, found.scope, found.unconfined) == (False, "once", False)


@each_row("given", [b"null", b"{}", b'{"outcome": {"outcome": "cancelled"}}', b'"allow_once"', b"["])
def test_a_result_that_is_no_answer_declines(given: bytes) -> None:
    found = understood(RULE, given, ["allow_once"], by="x", knows_extensions=True)
    assert found == ApprovalDecision(approved=False, by="x")


FORMS: Final = [
    ("touch 'a b'", '{"command":"touch","args":["a b"]}'),
    ("a; b", '{"command":"a;","args":["b"]}'),
    ("", None),
    ("'", None),
]


@pytest.mark.parametrize(("words", "edited"), FORMS)
def test_a_command_is_edited_in_a_form_as_words(words: str, edited: str | None) -> None:
    asked = form(PLAIN, {})
    assert asked is not None
    assert asked["properties"]["words"]["default"] == "touch a"
    said = json.dumps({"action": "accept", "content": {"words": words}}).encode()
    found = filled(PLAIN, asked, said, by="x")
    assert found.approved == (edited is not None)
    assert edited is None or json.loads(found.edited or "") == json.loads(edited)


def test_there_is_no_form_for_what_it_would_not_show() -> None:
    hidden = replace(PLAIN, arguments='{"command": "a\\u202eb"}')
    assert form(hidden, {}) is None
    assert form(NETWORK, {}) is None
