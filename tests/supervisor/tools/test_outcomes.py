"""Results as models are told them."""

import json
from typing import Final

import pytest

from supervisor.journal.facts import CallStarted
from supervisor.tools.outcomes import worker_answered
from workers.wire.messages import Done, Failed

CALL: Final = CallStarted(1, "c", "read_file", "{}", False, "allow", "")
NOTE: Final = "not seen by people (tags, selectors), written out as \\U and eight digits: 2 characters"


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_people_do_not_see_in_a_result_is_written_out_and_counted(form: str) -> None:
    said = "a\U000e0041😀\ufe0f b\ufe03"
    content = json.dumps([said], ensure_ascii=False) if form == "json" else said
    ended = worker_answered(CALL, Done(1, content, form, "from here"))  # type: ignore[arg-type]
    shown = json.loads(ended.content)[0] if form == "json" else ended.content
    assert (shown, ended.note) == ("a\\U000E0041😀\ufe0f b\\U0000FE03", f"from here\n{NOTE}")


def test_so_is_what_people_do_not_see_in_a_failure() -> None:
    ended = worker_answered(CALL, Failed(1, "fetch_failed", "no\U000e0041", {"url": "u\U000e0042"}))
    assert (ended.content, ended.details) == ("no\\U000E0041", {"url": "u\\U000E0042"})
