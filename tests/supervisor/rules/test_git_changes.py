"""What lies in git's own directories, by any name of theirs, and what only adds to its objects."""

from typing import Final

from supervisor.rules.git_changes import in_git, moved_by_commit, only_adds
from tests.each_row import each_row
from workers.changes.effects import What

IN_GIT: Final = (".git", "a/.git/config", ".GIT/x", "git~1/x", "GIT~1", ".git./x", ".git /x", "bare.git/refs/x")
ELSEWHERE: Final = (".gitignore", ".github/x", "git/x", "digit", "a.git2/x", "git~10/x")


def test_git_s_directory_is_known_by_every_name_of_it() -> None:
    assert [*filter(in_git, (*IN_GIT, *ELSEWHERE))] == [*IN_GIT]


OBJECT: Final = f".git/objects/ab/{'c' * 38}"
ADDS: Final[list[tuple[str, What, bool]]] = [
    (OBJECT, "added", True),
    (f"sub/{OBJECT}", "added", True),
    (OBJECT, "times", True),
    (OBJECT, "modified", False),
    (OBJECT, "replaced", False),
    (OBJECT, "deleted", False),
    (".git/objects/x", "added", False),
    (".git/objects/info/alternates", "added", False),
    (f"{OBJECT}/x", "added", False),
    (".git/index", "modified", True),
    (".git/index", "deleted", False),
    (".git/index", "mode", False),
    ("a.py", "deleted", True),
]


@each_row(("path", "what", "adds"), ADDS)
def test_objects_are_only_added(path: str, what: What, adds: bool) -> None:
    assert only_adds(path, what) is adds


@each_row(
    ("path", "moves"),
    [(".git/refs/heads/a/b", True), (".git/logs/refs/heads/a", True), (".git/logs/HEAD", True), (".git/index", True)]
    + [
        (f".git/{each}", False)
        for each in ("HEAD", "config", "refs/tags/a", "refs/remotes/o/a", "hooks/x", "index.lock")
    ],
)
def test_a_commit_moves_branches_alone(path: str, moves: bool) -> None:
    assert moved_by_commit(path) is moves
