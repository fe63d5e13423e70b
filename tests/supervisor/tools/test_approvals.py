"""A person's part in a call: what was changed is judged again, runs, is told to the model and stays in the journal."""

import json
from typing import Any, Final, NamedTuple

import msgspec
import pytest
import trio

from supervisor.agent.blocks import result_text
from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallDecided, CallEnded, CallStarted, effective
from supervisor.rules.judge_effects import Verdict
from supervisor.tools import call_policy
from supervisor.tools.approval import ApprovalDecision, ApprovalQuestion, Approve
from supervisor.tools.exfiltration.exposure import SeenText
from supervisor.tools.outcomes import abandoned
from supervisor.tools.router import Router
from tests.supervisor.bench import Bench, vault
from tests.supervisor.command import HANG_GUARD
from tests.supervisor.recording_context import RecordingContext

WRITE: Final = '{"path": "new.txt", "content": "the model\'s"}'
EDITED: Final = '{"path": "other.txt", "content": "the person\'s"}'
CHANGED: Final = "The person changed the arguments to: "


def says(review: ApprovalDecision) -> Approve:
    async def approve(_ask: ApprovalQuestion) -> ApprovalDecision:
        await trio.lowlevel.checkpoint()
        return review

    return approve


async def reviewed(
    bench: Bench, review: ApprovalDecision, tool: str = "write_file", arguments: str = WRITE
) -> tuple[CallStarted, CallEnded]:
    """Let one call be asked about and answered so; return it as it was recorded last, and its outcome."""
    call, ended, _ = await decided(bench, review, tool, arguments)
    return call, ended


async def decided(
    bench: Bench, review: ApprovalDecision, tool: str = "write_file", arguments: str = WRITE
) -> tuple[CallStarted, CallEnded, list[CallDecided]]:
    """The same, with what was decided about its effects."""
    router = Router(vault(bench.root, (tool,)), bench.pools, says(review))
    context = RecordingContext()
    with trio.fail_after(HANG_GUARD):
        call = router.judge(1, "c", tool, arguments)
        call = await router.request_approval(call) if call.decision == "ask" else call
        await context.record(call)
        ended = await router.run(call, context)
    return [fact for fact in context.facts if isinstance(fact, CallStarted)][-1], ended, context.decided


def files(bench: Bench) -> dict[str, str]:
    return {file.name: file.read_text() for file in bench.root.iterdir()}


async def test_arguments_that_a_person_edited_run_and_are_recorded_and_told(bench: Bench) -> None:
    call, ended, [first, second] = await decided(
        bench, ApprovalDecision(approved=True, edited=EDITED, remark=" safer ", by="console")
    )
    assert ended.ok
    assert files(bench) == {"a.txt": "hello\n", "other.txt": "the person's"}
    assert (call.arguments, call.edited, effective(call)) == (WRITE, EDITED, EDITED)
    assert (first.edited, first.approved, first.remark, first.decided_by) == (EDITED, True, "safer", "console")
    assert (first.committed, second.committed) == (False, True)
    assert result_text(ended).endswith(f"\n\n[{CHANGED}{EDITED}\nThe person said: safer]")


async def test_a_note_of_the_tool_stays_with_the_persons(bench: Bench) -> None:
    (bench.root / "a.txt").write_text("1\n2\n3\n")
    edited = '{"path": "a.txt", "limit": 1}'
    (_, plain) = await reviewed(bench, ApprovalDecision(approved=True), "read_file", edited)
    _, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=edited), "read_file", '{"path": "a.txt"}')
    assert plain.note
    assert ended.note == f"{plain.note}\n{CHANGED}{edited}"


async def test_a_call_that_fails_after_an_edit_says_so_in_its_message(bench: Bench) -> None:
    edited = '{"path": "missing"}'
    _, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=edited), "read_file", '{"path": "a.txt"}')
    assert (ended.kind, ended.note) == ("not_found", "")
    assert ended.content.endswith(f"\n{CHANGED}{edited}")
    assert CHANGED in json.loads(result_text(ended))["error"]["message"]


async def test_a_long_edit_is_told_in_part_and_runs_whole(bench: Bench) -> None:
    edited = json.dumps({"path": "long.txt", "content": "x" * 1000})
    _, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=edited))
    assert ended.note == f"{CHANGED}{edited[:500]} (cut at 500 characters)"
    assert files(bench)["long.txt"] == "x" * 1000


async def test_an_edit_that_is_no_json_is_the_tools_to_refuse(bench: Bench) -> None:
    _, ended = await reviewed(bench, ApprovalDecision(approved=True, edited='{"path": '))
    assert ended.kind == "invalid_arguments"
    assert ended.content.endswith(CHANGED + '{"path": ')


UNCHANGED: Final = [
    ("the same text", WRITE, WRITE),
    ("another layout", WRITE, json.dumps(json.loads(WRITE), indent=2)),
    ("nothing for an empty object", "", "{}"),
]


@pytest.mark.parametrize(("asked", "edited"), [each[1:] for each in UNCHANGED], ids=[each[0] for each in UNCHANGED])
async def test_the_model_is_told_of_no_change_that_is_none(bench: Bench, asked: str, edited: str) -> None:
    _, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=edited), arguments=asked)
    assert CHANGED not in result_text(ended)


async def test_a_yes_alone_records_no_second_text_and_carries_its_remark(bench: Bench) -> None:
    call, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=WRITE, remark="only this once"))
    assert (call.edited, ended.ok, ended.note) == (None, True, "The person said: only this once")


# no ----------------------------------------------------------------------------------------------------------


async def test_a_no_with_a_remark_carries_the_words_to_the_model(bench: Bench) -> None:
    _, ended, [no] = await decided(bench, ApprovalDecision(approved=False, remark="use notes/ instead\n", by="console"))
    assert (no.approved, no.remark, no.decided_by, no.committed) == (False, "use notes/ instead", "console", False)
    assert ended.kind == "denied"
    assert ended.content == (
        "write_file was only rehearsed, and nothing was changed: profile vault asks before each write_file, and the "
        "person declined and said: "
        "use notes/ instead"
    )
    assert files(bench) == {"a.txt": "hello\n"}


async def test_an_edit_without_a_yes_counts_for_nothing(bench: Bench) -> None:
    call, ended = await reviewed(bench, ApprovalDecision(approved=False, edited=EDITED))
    assert (call.edited, ended.kind) == (None, "denied")
    assert CHANGED not in ended.content
    assert files(bench) == {"a.txt": "hello\n"}


async def test_with_nobody_to_ask_nobody_decided(bench: Bench) -> None:
    router = Router(vault(bench.root, ("read_file",)), bench.pools, None)
    call = await router.request_approval(router.judge(1, "c", "read_file", "{}"))
    assert (call.approved, call.decided_by, call.remark) == (False, "", "")


# the edited text is judged anew ------------------------------------------------------------------------------


class Anew(NamedTuple):
    decision: Any
    kind: str | None
    runs: bool


ANEW: Final = [Anew("deny", "denied", runs=False), Anew("ask", None, runs=True), Anew("allow", None, runs=True)]


@pytest.mark.parametrize("anew", ANEW, ids=[each.decision for each in ANEW])
async def test_policy_judges_the_edited_text_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch, anew: Anew) -> None:
    def judge(_profile: Profile, _tool: str, arguments: str, _seen: SeenText) -> Verdict:
        return Verdict(anew.decision if arguments == EDITED else "ask", f"about {len(arguments)} characters")

    monkeypatch.setattr(call_policy, "judge", judge)
    call, ended = await reviewed(bench, ApprovalDecision(approved=True, edited=EDITED, by="console"))
    assert call.edited == EDITED
    assert ended.kind == anew.kind
    assert ("other.txt" in files(bench)) == anew.runs
    assert CHANGED in result_text(ended)
    if not anew.runs:
        assert f"write_file was not run: about {len(EDITED)} characters. " in ended.content


# cut off -----------------------------------------------------------------------------------------------------


CUT: Final = [
    ("something was being committed", True, True, "outcome_unknown"),
    ("it was only rehearsed", True, False, "cancelled"),
    ("it has no effect", False, False, "timeout"),
]


@pytest.mark.parametrize(("effect", "committed", "kind"), [each[1:] for each in CUT], ids=[each[0] for each in CUT])
async def test_a_call_that_was_cut_off_after_an_edit_says_so(
    bench: Bench, effect: bool, committed: bool, kind: str
) -> None:
    call, _, facts = await decided(bench, ApprovalDecision(approved=True, edited=EDITED))
    ended = abandoned(
        msgspec.structs.replace(call, effect=effect), "It was cut off.", "timeout", facts[-1] if committed else None
    )
    assert ended.kind == kind
    assert ended.content.endswith(f"\n{CHANGED}{EDITED}")
