"""Deny by default; what a profile names decides, and nothing that a call says."""

from typing import Final

from supervisor.config.profiles import Profile
from supervisor.tools.call_policy import judge
from supervisor.tools.exfiltration.exposure import SeenText
from tests.each_row import each_row
from tests.supervisor.bench import TOOLS

PROFILE: Final = Profile("vault", "/x", (*TOOLS, "run_cmd", "exec_shell"), ("write_file", "run_cmd"))

DECISIONS: Final = [
    ("read_file", "allow"),
    ("write_file", "allow"),
    ("run_cmd", "ask"),
    ("exec_shell", "allow"),
    ("fetch_url", "deny"),
    ("READ_FILE", "deny"),
    ("read_file ", "deny"),
    ("", "deny"),
]


@each_row(("tool", "decision"), DECISIONS, ids=[repr(tool) for tool, _ in DECISIONS])
def test_a_call_is_decided_by_its_tool(tool: str, decision: str) -> None:
    decided = judge(PROFILE, tool, "{}", SeenText())
    assert decided.decision == decision
    assert "profile vault" in decided.reason
