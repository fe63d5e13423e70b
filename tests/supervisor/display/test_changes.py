"""Effects in words: nothing is hidden, and what a person must not miss comes first."""

from typing import Any, Final

import pytest

from supervisor.acp import extensions
from supervisor.display import changes
from supervisor.display.differences import differences
from supervisor.display.proposed_effects import presented
from tests.each_row import each_row
from tests.supervisor.changes import change, effects
from workers.changes.effects import Attempt, Change, Effects, NodeState

FILE: Final = NodeState("file", 0o644, 1200)

RUN: Final = NodeState("file", 0o755, 20)
TAGGED: Final = NodeState("file", 0o644, 1200, attributes={"user.x": b"1"})


def link(target: str) -> NodeState:
    return NodeState("link", 0o777, target=target)


ROWS: Final = {
    "  A  a  empty": Change("a", "added", None, NodeState("file", 0o644)),
    "  A  run  20 B, mode 0755": Change("run", "added", None, RUN),
    "  A  d/  directory": Change("d", "added", None, NodeState("dir", 0o755)),
    "  A  t/  directory, mode 1777": Change("t", "added", None, NodeState("dir", 0o1777)),
    "  M  a  1.2 kB -> 1.2 kB; unseen: binary, 9 bytes, cannot be shown": Change(
        "a", "modified", FILE, FILE, diff_left_out="binary, 9 bytes, cannot be shown"
    ),
    "  D  b  1.2 kB ": Change("b", "deleted", FILE, None, diff_left_out="binary, 9 bytes, cannot be shown"),
    '  M  x  1.2 kB -> 1.2 kB, attributes user.x "1" -> gone': Change("x", "modified", TAGGED, FILE),
    "  X  a  attributes system.posix_acl_access no text; unseen: the values of system.posix_acl_access": Change(
        "a", "attributes", FILE, NodeState("file", 0o644, 1200, attributes={"system.posix_acl_access": b"\2\0"})
    ),
    "  A  l  link to /etc/passwd": Change("l", "added", None, link("/etc/passwd")),
    "  A  b  1.2 kB, moved from a": Change("b", "added", None, FILE, moved_from="a"),
    "  A  b  1.2 kB, the same file as a": Change("b", "added", None, FILE, same_as="a"),
    "  M  a  1.2 kB -> 20 B, mode 0644 -> 0755": Change("a", "modified", FILE, RUN),
    "  M  l  link to a -> link to b": Change("l", "modified", link("a"), link("b")),
    "  D  a  1.2 kB": Change("a", "deleted", FILE, None),
    "  R  a  1.2 kB -> named pipe; unseen: what is behind a named pipe": Change(
        "a", "replaced", FILE, NodeState("fifo", 0o644)
    ),
    "  P  a  mode 0644 -> 0600": Change("a", "mode", FILE, NodeState("file", 0o600, 1200)),
    '  X  a  attributes user.x "1"': Change("a", "attributes", FILE, TAGGED),
    "  T  a  time stamps only": Change("a", "times", FILE, FILE),
    "  A  s  1.2 kB, without the bits 4000, which no commit sets": Change("s", "added", None, FILE, withheld=0o4000),
    "  M  a  1.2 kB -> 1.2 kB, somebody else has changed it meanwhile, so it cannot be applied": Change(
        "a", "modified", FILE, FILE, meanwhile=True
    ),
    "  D  \\u202ea\\x1b[2J\\nb  1.2 kB": Change("\u202ea\x1b[2J\nb", "deleted", FILE, None),
    "  D  a [200 blanks] ; rm  1.2 kB": Change(f"a{' ' * 200}; rm", "deleted", FILE, None),
}


def lines(found: Effects, *, short: bool = False) -> list[str]:
    return [text for _, text in changes.listed(presented(found), short)]


@each_row("line", ROWS, ids=str.strip)
def test_a_change_is_one_line(line: str) -> None:
    assert next(found for found in lines(effects(ROWS[line]))[1:] if found[0] != "!") == line.rstrip()


def test_protected_paths_come_first_by_name_and_say_why() -> None:
    hook = change("+ .git/hooks/pre-commit", protected="git runs it")
    found = lines(effects("+ .a", "~ b", hook))
    assert found[0] == "Would change 3 files: 2 added, 1 modified"
    assert found[1] == "! A  .git/hooks/pre-commit  empty: protected, because git runs it"
    assert [line[:6] for line in found[2:]] == ["  A  .", "  M  b"]


def test_changes_left_out_and_attempts_refused_are_counted() -> None:
    refused = (Attempt("network", "tcp 192.0.2.1:443", 3), *(Attempt("path", f"/etc/{at}") for at in range(12)),
               Attempt("path", "/root/.ssh/id_\x1b"))  # fmt: skip
    found = lines(effects("+ a", left_out={"added": 1000, "mode": 2}, refused=refused, refused_left_out=7))
    assert found[1] == "! 1003 changes, 1002 unseen; no line below shows them"
    assert found[3:] == [
        "  ... and 1000 added, 2 permissions only, too many to be listed",
        "  blocked: network (tcp 192.0.2.1:443), 3 times",
        "  blocked: path (/root/.ssh/id_\\x1b)",
        "  12 blocked attempts at other paths; `strongroom why` lists them",
        "  ... and 7 more such attempts",
    ]


BLANKS: Final = {
    "+a": "+a",
    "+a \t": "+a·→   ",
    "-a  \r": "-a··\\r",
    " \ta\u2028b": " →   a\\u2028b",
    "+x = 1;" + " " * 200 + "evil()": "+x = 1; [200 blanks] evil()",
    "+\u3164\u00a0": "+\\u3164\\xa0",
    "\\ No newline at end of file": "\\ No newline at end of file",
}


@each_row("line", BLANKS, ids=ascii)
def test_a_line_of_a_difference_shows_its_blanks(line: str) -> None:
    told = presented(effects(change("~ a", diff=f"{line}\n")))
    assert [text for _, text in differences(told)][1:] == [BLANKS[line]]


def test_what_git_tracks_and_would_be_gone_is_told_to_clients() -> None:
    told = presented(effects(change("- a", tracked=True), change("- b"))).changes
    assert [each.path for each in told if each.tracked] == ["a"]


def test_what_a_difference_was_decoded_from_is_said() -> None:
    told = presented(effects(change("~ a", diff="+x\n", encoding="UTF-16 LE, decoded")))
    assert next(iter(differences(told))) == ("bold", "M a  (UTF-16 LE, decoded)")


def test_differences_follow_and_are_toned() -> None:
    told = presented(effects(change("~ a", diff="@@ -1 +1 @@\n-x\n+\x1by\n", diff_left_out="cut")))
    assert list(differences(told)) == [
        ("bold", "M a"),
        ("cyan", "@@ -1 +1 @@"),
        ("red", "-x"),
        ("green", "+\\x1by"),
        ("dim", "cut"),
    ]


def test_in_short_many_changes_of_a_directory_are_one_line_unless_they_are_protected() -> None:
    many = [change(f"+ build/{number}", diff="@@ -0,0 +1 @@\n+x\n") for number in range(100)]
    hooks = [change(f"+ .git/hooks/{number}", protected="git runs it") for number in range(10)]
    found = lines(effects(*many, *hooks, change("~ a", diff="-x\n")), short=True)
    assert len([line for line in found if line.startswith("! ")]) == 10
    assert "  A  build/...  100 names" in found
    assert found.index("M a") < found.index("A build/0")


COUNTED: Final = [
    (["+ a"], "1 file"),
    (["+ a", "- b"], "2 files"),
    (["+ d/"], "1 directory"),
    (["- d/", "- e/"], "2 directories"),
    (["- d/", "- d/b"], "2 files and directories"),
    (["~ .git/index", "+ .git/COMMIT_EDITMSG"], "2 files that git keeps for itself"),
    (["~ .git/index", "+ a"], "2 files"),
]


@each_row(("found", "words"), COUNTED)
def test_changes_are_counted(found: list[str], words: str) -> None:
    assert changes.counted(presented(effects(*found))) == words


NOT_KNOWN: Final = "what it changed is not known, and cannot be undone"
OUTCOMES: Final[list[tuple[dict[str, Any], str]]] = [
    ({"kept": True}, "3 files changed, /undo takes it back"),
    ({}, "3 files changed, and it cannot be undone"),
    ({"kept": True, "not_kept": 1}, "3 files changed, /undo takes it back, but for 1 that were too large to keep"),
    ({"kept": True, "cannot_undo": "it cannot be undone: so"}, "3 files changed, and it cannot be undone: so"),
    ({"changed": ""}, f"it ran without a rehearsal; {NOT_KNOWN}"),
    ({"unconfined": True}, f"it ran outside of the sandbox; {NOT_KNOWN}"),
    ({"undoes": "call_1"}, "3 files restored"),
]


@each_row(("decided", "words"), OUTCOMES)
def test_an_outcome_says_whether_it_can_be_taken_back(decided: dict[str, Any], words: str) -> None:
    assert changes.outcome(extensions.Decided(committed=True, **{"changed": "3 files", **decided})) == words


def test_blanks_that_push_a_part_of_the_command_off_the_screen_are_counted() -> None:
    review = extensions.ApprovalRequest(
        tool="run_cmd", arguments='{"command": "ls' + "\\n" * 300 + 'rm -rf /"}', reason=""
    )
    assert changes.explained(review)[0][1].endswith("it is: ls [300 blanks] rm -rf /")


def test_what_was_refused_is_told_where_there_is_a_way() -> None:
    found = effects("+ a", lacked=("a mount", "the network"))
    told = [[text for _, text in changes.overview(presented(found, lacks=lacks))] for lacks in (True, False)]
    assert [[each for each in lines if "refused" in each] for lines in told] == [
        ["  refused, by the look of it: a mount, the network"],
        [],
    ]


STAGES: Final[list[tuple[extensions.Stage, str]]] = [
    ("direct", "at once"),
    ("network", "cannot be taken back"),
    ("refused", "all your rights"),
]


@pytest.mark.parametrize(("stage", "words"), STAGES)
def test_a_stage_that_is_no_ordinary_one_says_in_words_what_is_different(stage: extensions.Stage, words: str) -> None:
    found = presented(effects("+ a", refused=(Attempt("network", "tcp 192.0.2.1:443"),)))
    review = extensions.ApprovalRequest(tool="exec_shell", arguments="{}", reason="why\n", stage=stage, effects=found)
    lines = [text for _, text in changes.explained(review)]
    assert lines[0] == "why\\n"
    assert words in lines[1]
    assert ("  A  a  " in "\n".join(lines)) == (stage != "network")
    assert "  blocked: network (tcp 192.0.2.1:443)" in lines
