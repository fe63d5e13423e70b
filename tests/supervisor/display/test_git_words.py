"""Changes in git's directories in git's words, the rest in one line, but for what is protected."""

from supervisor.display.changes import counted, overview
from supervisor.display.git_words import git_words
from supervisor.display.proposed_effects import presented
from supervisor.rules.judge_effects import summary
from tests.supervisor.changes import change, effects
from workers.changes.effects import GitChange, Traffic

COMMIT = GitChange("commit", "refs/heads/main", "1" * 40, "996c2da" + "0" * 33, 2)
OWN = ("+ .git/objects/27/" + "f" * 38, "+ .git/objects/28/" + "f" * 38, "+ .git/objects/27/", "~ .git/logs/HEAD",
       "~ .git/logs/refs/heads/main", "~ .git/refs/heads/main", "~ .git/index", "~ .git/COMMIT_EDITMSG")  # fmt: skip


def test_a_commit_is_told_in_gits_words() -> None:
    found = effects(*OWN, git=(COMMIT,))
    lines = [text for _tone, text in overview(presented(found))]
    kept = "COMMIT_EDITMSG modified, index modified, 2 logs modified, 3 objects added, 1 reference modified"
    assert lines[1:] == ["  git: commit 996c2da on main, 2 files", f"  git keeps for itself: {kept}"]
    assert counted(presented(found)) == summary(found) == "git: commit 996c2da on main, 2 files"


def test_what_is_protected_or_none_of_gits_stays_named() -> None:
    hook = change("+ .git/hooks/post-commit", protected="git runs it")
    found = effects(*OWN, hook, "+ .git/objects/info/alternates", "~ a", git=(COMMIT,))
    lines = [text for _tone, text in overview(presented(found), short=True)]
    assert lines[1].startswith("! A  .git/hooks/post-commit")
    assert lines[2] == "  git: commit 996c2da on main, 2 files"
    assert [line[:8] for line in lines[3:5]] == ["  A  .gi", "  M  a  "]
    assert summary(found).startswith(
        "git: commit 996c2da on main, 2 files; 3 files would change (.git/hooks/post-commit"
    )
    assert counted(presented(found)) == "git: commit 996c2da on main, 2 files; 3 files"


def test_what_git_deletes_of_its_own_is_counted() -> None:
    found = effects("- .git/objects/27/" + "f" * 38, git=(COMMIT,))
    assert "  git keeps for itself: 1 object deleted" in [text for _tone, text in overview(presented(found))]


def test_a_name_cannot_be_taken_for_another_part() -> None:
    forged = GitChange("commit", "refs/heads/x, 1 file; tag v1 at 1234567\n\u202e", "", "a" * 40, 9)
    assert git_words([forged]) == 'commit aaaaaaa on "x, 1 file; tag v1 at 1234567\\n\\u202e", 9 files'


def test_what_git_ignores_is_a_number_beside_what_is_asked_about() -> None:
    quiet = [change(f"+ target/{at}", ignored=True, diff_left_out="binary") for at in range(30)]
    found = effects("~ Cargo.lock", change("+ .env", ignored=True, protected="a program takes it"), *quiet)
    told = presented(found)
    lines = [text for _tone, text in overview(told)]
    assert lines[1].startswith("! A  .env")
    assert (lines[2][:16], lines[3:]) == ("  M  Cargo.lock ", ["  30 names that git ignores"])
    assert summary(found) == "2 files would change (.env added, Cargo.lock modified); 30 that git ignores"
    assert told.unseen == 0
    brought = effects("~ a", quiet[0], traffic=(Traffic("x:443", 1, 1),))
    assert any("target/0" in text for _tone, text in overview(presented(brought)))
