"""The effects of a command, as a person and the policy see them."""

import hashlib
import os
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.workers.commit.namespaces import Rehearsing
from tests.workers.commit.snapshot import snapshot
from workers.changes.diff import TEXT
from workers.changes.effects import Change, CommitFailed, Committed, Conflicted, Effects, NodeState
from workers.errors import CannotRehearse, TooMuch
from workers.treediff import comparison
from workers.treediff.effects_of import TOLD
from workers.wire import frames


def told(rehearsing: Rehearsing, tree: Path, script: str) -> dict[str, Change]:
    return {each.path: each for each in rehearsing.rehearse(tree, script).changes}


WORDS = (
    ("echo x > new", "new", "added"),
    ("echo x >> text", "text", "modified"),
    ("ln -sfn b link", "link", "modified"),
    ("rm text", "text", "deleted"),
    ("rm text; mkdir text", "text", "replaced"),
    ("chmod 600 text", "text", "mode"),
    ('python3 -c \'import os; os.setxattr("text", "user.x", b"1")\'', "text", "attributes"),
    ("chmod 700 d", "d", "mode"),
    ("chmod 700 .", ".", "mode"),
)


@pytest.mark.parametrize(("script", "path", "what"), WORDS, ids=[f"{path} {what}" for _, path, what in WORDS])
def test_one_word_says_what_happened(rehearsing: Rehearsing, tree: Path, script: str, path: str, what: str) -> None:
    changes = told(rehearsing, tree, script)
    assert {each.path: each.what for each in changes.values()} == {path: what}


NOTHING = (
    "cat a b text; ls -R",
    ": >> text",
    'python3 -c \'open("text", "r+")\'',
    "touch text; touch -d '2001-02-03 04:05:06.789' text",
    "chmod 600 text; chmod 644 text",
    "touch -h text link d .; touch -d 2001-02-03 a; cp text t; cat t > text; rm t",
    "echo x > new; rm new",
    "mkdir n; rmdir n",
    "mv text t; mv t text",
    'python3 -c \'import os; os.setxattr("d", "user.overlay.opaque", b"y")\'',
)


@pytest.mark.parametrize("script", NOTHING)
def test_a_tree_that_ends_as_it_began_is_no_change(rehearsing: Rehearsing, tree: Path, script: str) -> None:
    effects = rehearsing.rehearse(tree, script)
    assert (effects.changes, effects.totals, effects.left_out) == ((), {}, {})
    before = snapshot(tree)
    assert rehearsing.commit() == Committed(0)
    assert snapshot(tree) == before


def test_another_time_is_told_where_the_file_gets_another_name(rehearsing: Rehearsing, tree: Path) -> None:
    assert {each.what for each in told(rehearsing, tree, "touch text; ln text too").values()} == {"times", "added"}


def test_the_roots_own_mode_and_attributes_are_no_change(rehearsing: Rehearsing, tree: Path) -> None:
    tree.chmod(0o2751)
    os.setxattr(tree, "user.note", b"root")
    assert rehearsing.rehearse(tree, "true").changes == ()


def test_both_states_are_told_in_full(rehearsing: Rehearsing, tree: Path) -> None:
    change = told(rehearsing, tree, "chmod 755 b; truncate -s 3 b; touch -d @1.5 b")["b"]
    long = b"sha256:" + hashlib.sha256(b"x" * 200).hexdigest().encode()
    digests = [hashlib.sha256(content).digest() for content in (b"beta\n", b"bet")]
    before = NodeState("file", 0o640, 5, (tree / "b").stat().st_mtime_ns, digests[0])
    after = NodeState("file", 0o755, 3, 1_500_000_000, digests[1])
    attributes = {"user.long": long, "user.note": b"hello"}
    assert (change.before, change.after) == tuple(replace(each, attributes=attributes) for each in (before, after))


def test_text_is_told_as_a_unified_diff(rehearsing: Rehearsing, tree: Path) -> None:
    changes = told(rehearsing, tree, "sed -i s/50/fifty/ text; printf 'one\ntwo' > new; rm b")
    assert changes["text"].diff == "@@ -47,7 +47,7 @@\n 47\n 48\n 49\n-50\n+fifty\n 51\n 52\n 53\n"
    assert changes["new"].diff == "@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    assert changes["b"].diff == "@@ -1 +0,0 @@\n-beta\n"


SHOWN = [
    ("head -c 3000 /dev/zero > new", "binary, 3000 bytes, cannot be shown", "", ""),
    (
        f"head -c {TEXT + 1} /dev/zero | tr '\\0' x > new",
        f"a file of {TEXT + 1} bytes is not compared; the most is {TEXT}",
        "",
        "",
    ),
    ("printf 'abc\\0\\xff\\xfe\\n' > new", "", "UTF-8 with stray bytes, written as \\x..", "+abc\0\\xff\\xfe\n"),
    ("printf 'a\\0\\344\\0\\n\\0' > new", "", "UTF-16 LE, decoded", "+aä\n"),
    ("printf 'caf\\xe9\\n' > new", "", "Latin-1 (Windows-1252), decoded", "+café\n"),
    ("printf '\\x1\\x2\\x3' > new", "binary, 3 bytes, cannot be shown", "", ""),
]


def test_a_file_is_shown_decoded_or_says_why_it_is_not(rehearsing: Rehearsing, tree: Path) -> None:
    script = "\n".join(row[0].replace("> new", f"> new{number}") for number, row in enumerate(SHOWN))
    changes = told(rehearsing, tree, script)
    for number, (_, why, how, diff) in enumerate(SHOWN):
        change = changes[f"new{number}"]
        assert (change.diff_left_out, change.encoding, change.diff.partition("@@\n")[2]) == (why, how, diff)


def test_a_deleted_tree_is_told_path_by_path(rehearsing: Rehearsing, tree: Path) -> None:
    effects = rehearsing.rehearse(tree, "rm -rf d")
    assert " ".join(each.path for each in effects.changes) == "d d/l d/sub d/sub/deep d/sub/deep/z d/sub/y d/x"
    assert effects.totals == {"deleted": 7}


def test_a_directory_made_anew_is_told_by_its_differences(rehearsing: Rehearsing, tree: Path) -> None:
    changes = told(rehearsing, tree, "cp -a d t; rm -rf d; mv t d; rm d/sub/y; echo n > d/n")
    assert {path: each.what for path, each in changes.items()} == {"d/n": "added", "d/sub/y": "deleted"}


def test_a_file_that_moved_says_from_where(rehearsing: Rehearsing, tree: Path) -> None:
    changes = told(rehearsing, tree, "mv text d/text; cp b copy")
    assert changes["d/text"].moved_from == "text"
    assert changes["copy"].moved_from == ""


def test_names_of_one_file_are_told(rehearsing: Rehearsing, tree: Path) -> None:
    changes = told(rehearsing, tree, "ln text too; echo n > n1; ln n1 n2; echo x >> a")
    assert {path: each.same_as for path, each in changes.items()} == {"too": "text", "n1": "", "n2": "n1", "a": ""}
    assert {path for path, each in changes.items() if each.linked} == {"a"}


PROTECTED = """
.git/hooks/pre-commit .git/config .git/modules/x/config .git/info/attributes .git/rebase-merge/git-rebase-todo
sub/.git/hooks/x .GIT/hooks/x .gitmodules .envrc .vscode/tasks.json .idea/x .mcp.json .claude/settings.json .codex/x
.strongroom-0123456789abcdef.tmp bare/HEAD bare/config bare/commondir bare/config.worktree mise.toml .pdbrc
bare/hooks/post-checkout .githooks/pre-commit AGENTS.md
"""
FREE = """
.git/objects/aa/bb .git/refs/heads/main .git/logs/HEAD .git/index .git/index.lock .git/HEAD
.git/refs/remotes/origin/HEAD other/config bare.git/objects/aa/bb bare.git/refs/heads/main config
src/hooks/use_it.js src/x.py
"""


def test_protected_paths_are_marked(rehearsing: Rehearsing, tree: Path) -> None:
    paths = (PROTECTED + FREE).split()
    script = "".join(f"mkdir -p {os.path.dirname(path) or '.'}; echo x > {path}; " for path in paths)
    changes = told(rehearsing, tree, script)
    assert [path for path in paths if changes[path].protected] == PROTECTED.split()


def test_a_directory_is_none_of_the_names_that_people_run(rehearsing: Rehearsing, tree: Path) -> None:
    changes = told(rehearsing, tree, "mkdir -p build other; echo > build/a; echo > other/BUILD; mkdir conftest.py")
    marked = {path: each.level for path, each in changes.items() if each.level}
    assert marked == {"other/BUILD": "told", "conftest.py": "asked"}


def test_a_new_directory_that_programs_make_as_their_work_is_marked_once(rehearsing: Rehearsing, tree: Path) -> None:
    (tree / "d/.venv").mkdir()
    script = (
        "mkdir -p .venv/bin .venv/.git/hooks d/.venv/lib/x; touch .venv/bin/python .venv/.git/hooks/x d/.venv/lib/x/y"
    )
    changes = told(rehearsing, tree, script)
    assert {path for path, each in changes.items() if each.protected} == {".venv", "d/.venv/lib"}
    assert {each.level for each in changes.values()} == {"refused"}


GIT = "git init -q; printf '*.o\\nout/\\n' > .gitignore; rm out; mkdir out; : > k.o; git add text tool"
OF_GIT = (
    ("a new file that is ignored", GIT, "echo 1 > n.o", "n.o", "ignored"),
    ("where the index cannot be read", f"{GIT}; echo no > .git/index", "echo 1 > n.o", "n.o", "ignored"),
    ("one that was there, likewise", f"{GIT}; echo no > .git/index", "echo 1 > k.o", "k.o", ""),
    ("an ignored directory made a file", GIT, "rmdir out; echo 1 > out", "out", ""),
    ("a tracked file that goes", GIT, "rm text", "text", "tracked"),
    ("a tracked file made a directory", GIT, "rm text; mkdir text", "text", "tracked"),
    ("a tracked file that changes", GIT, "echo 1 > text", "text", ""),
    ("another file that goes", GIT, "rm zeros", "zeros", ""),
    ("an index that gives one up", GIT, "git rm -q --cached text", ".git/index", "tracked"),
    ("an index with one more", GIT, "git add zeros", ".git/index", ""),
)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "script", "path", "said"), [row[1:] for row in OF_GIT], ids=[row[0] for row in OF_GIT]
)
def test_what_git_says_of_a_name(
    rehearsing: Rehearsing, tree: Path, made: str, script: str, path: str, said: str
) -> None:
    subprocess.run(["sh", "-ec", made], cwd=tree, check=True)
    change = told(rehearsing, tree, script)[path]
    assert [word for word in ("ignored", "tracked") if getattr(change, word)] == [said] * bool(said)


HOOKED = (
    "[core]\n\thooksPath = d/ci # mine\n[filter \"x\"]\n\tclean = sh -c 'e/clean.sh %f'\n[include]\n\tpath = ../extra\n"
)


def test_what_the_configuration_of_a_repository_names_is_protected(rehearsing: Rehearsing, tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git/config").write_text(HOOKED)
    changes = told(rehearsing, tree, "mkdir d/ci e; touch d/ci/pre-commit e/clean.sh e/other.sh extra d/x")
    protected = {path for path, each in changes.items() if each.protected}
    assert protected == {"d/ci", "d/ci/pre-commit", "e/clean.sh", "extra"}


def test_a_config_beside_a_head_that_was_there_is_protected(rehearsing: Rehearsing, tree: Path) -> None:
    (tree / "d" / "HEAD").symlink_to("refs/heads/main")
    changes = told(rehearsing, tree, "echo x > d/config; echo x > e/config; echo x > config")
    assert {path: bool(each.protected) for path, each in changes.items()} == {
        "d/config": True, "e/config": False, "config": False,
    }  # fmt: skip


def test_setuid_and_setgid_of_files_are_told_and_withheld(rehearsing: Rehearsing, tree: Path) -> None:
    effects = rehearsing.rehearse(tree, "chmod 6755 tool; cp tool new; chmod 4711 new")
    changes = {each.path: each for each in effects.changes}
    assert {path: each.withheld for path, each in changes.items()} == {"tool": 0o6000, "new": 0o4000}
    assert isinstance(rehearsing.commit(), Committed)
    assert [stat.S_IMODE((tree / name).stat().st_mode) for name in ("tool", "new")] == [0o755, 0o711]


def test_a_name_that_is_not_utf_8_stands_escaped_and_as_it_is(rehearsing: Rehearsing, tree: Path) -> None:
    effects = rehearsing.rehearse(tree, r"echo x > $'\xff'; echo y > '\xff'; ln -s $'\xfe' l")
    assert [(each.path, each.raw_path) for each in effects.changes] == [("\\xff", b""), ("l", b""), ("\\xff", b"\xff")]
    links = [each.after for each in effects.changes if each.path == "l"]
    assert [(each.target, each.raw_target) for each in links if each] == [("\\xfe", b"\xfe")]


def test_more_than_fits_a_frame_is_counted_and_still_committed(rehearsing: Rehearsing, tree: Path) -> None:
    effects = rehearsing.rehearse(tree, f"exec python3 -c '{_MANY_DIRECTORIES}'")
    assert len(msgspec.msgpack.encode(effects)) < TOLD + 100_000 < frames.FRAME_LIMIT
    assert sum(effects.left_out.values()) == sum(effects.totals.values()) - len(effects.changes) > 0
    assert {"added"} == set(effects.left_out)
    assert ".envrc" in {each.path for each in effects.changes}
    assert isinstance(rehearsing.commit(), Committed)
    assert len(os.listdir(tree.joinpath("many", *["n" * 250] * 12))) == 3000
    assert not (tree / "d").exists()


_MANY_DIRECTORIES = """
import os, shutil
place = "/".join(["n" * 250] * 12)
os.makedirs(f"many/{place}")
for number in range(3000):
    os.mkdir(f"many/{place}/{number}")
open(".envrc", "w"); shutil.rmtree("d")
"""


def test_effects_pass_as_msgpack_and_as_json(rehearsing: Rehearsing, tree: Path) -> None:
    effects = rehearsing.rehearse(tree, r"echo x > $'\xff'; chmod 000 b; rm -rf d; mkfifo f; ln text t")
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(effects), type=Effects) == effects
    assert msgspec.json.decode(msgspec.json.encode(effects), type=Effects) == effects


def at_most(names: int) -> None:
    """Let a comparison of the process that is asked look at so many names."""
    comparison.NAMES = names  # type: ignore[misc]


@pytest.mark.parametrize("script", ["touch {1..600}", "rm -rf many", "rm -rf many; mkdir many"])
def test_too_many_names_are_refused(rehearsing: Rehearsing, tree: Path, script: str) -> None:
    (tree / "many").mkdir()
    for number in range(600):
        (tree / "many" / str(number)).touch()
    rehearsing.ask("call", at_most, 500)
    try:
        with pytest.raises(TooMuch, match="more than 500 names"):
            rehearsing.rehearse(tree, script)
    finally:
        rehearsing.ask("call", at_most, comparison.NAMES)
    assert rehearsing.ask("close") == []


TOO_MUCH = {
    "bytes, though they are holes": ("/usr/bin/truncate -s 1T hole", "more bytes"),
    "a tree deeper than a path": (
        'exec python3 -c \'import os\nfor _ in range(3000): os.mkdir("deep"); os.chdir("deep")\'',
        "left a tree behind that is deeper",
    ),
    "a tree of the root that is deeper": ("rm -r ddd*", "removed a tree that is deeper"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_is_too_much_is_refused_as_what_it_is_and_removed(rehearsing: Rehearsing, tree: Path, what: str) -> None:
    script, says = TOO_MUCH[what]
    if "rm" in script:
        code = "import os\nfor _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)"
        subprocess.run(["/usr/bin/python3", "-c", code], cwd=tree, check=True)
    with pytest.raises(TooMuch, match=says):
        rehearsing.rehearse(tree, script)
    assert rehearsing.ask("close") == []


def test_originals_are_what_undo_needs(rehearsing: Rehearsing, tree: Path) -> None:
    script = "echo x >> text; rm -rf d; echo n > n; chmod 600 b; ln -sfn a link; rm big; mkdir -m 700 new; rmdir empty"
    effects = rehearsing.rehearse(tree, script)
    originals = rehearsing.ask("originals", 10_000, 2**20)
    found = {each.path: each for each, _content in originals}
    assert [each.path for each, _content in originals] == list(found)
    assert {path: (each.before, each.after) for path, each in found.items()} == {
        each.path: (each.before, each.after) for each in effects.changes
    }
    assert {each.path: content for each, content in originals if each.kept} == {
        "text": (tree / "text").read_bytes(),
        "d/x": b"x\n",
        "d/sub/y": b"y\n",
        "d/sub/deep/z": b"z\n",
        "b": b"beta\n",
    }
    assert found["b"].attributes == {"user.note": b"hello", "user.long": b"x" * 200}
    nested = ["d", "d/sub", "d/sub/deep", "d/sub/deep/z"]
    assert [path for path in found if path in nested] == nested


def test_originals_are_no_more_than_there_is_room_for(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.rehearse(tree, "rm big text a")
    assert [each.path for each, _content in rehearsing.ask("originals", 2**20, 10) if each.kept] == ["a"]


def _rewrite(file: Path) -> bytes:
    """Write another content of the same size at the same time; return the old one."""
    old, status = file.read_bytes(), file.stat()
    file.write_text("z" * len(old))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    return old


def test_originals_that_are_others_by_now_are_a_conflict(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.rehearse(tree, "rm big")
    _rewrite(tree / "big")
    with pytest.raises(RuntimeError, match=r'conflict: .*"big"'):
        rehearsing.ask("originals", 2**20, 2**20)


def test_small_originals_are_what_was_compared_and_others_by_now_are_a_conflict_of_the_commit(
    rehearsing: Rehearsing, tree: Path
) -> None:
    rehearsing.rehearse(tree, "rm text")
    old = _rewrite(tree / "text")
    assert [content for _each, content in rehearsing.ask("originals", 2**20, 2**20)] == [old]
    assert isinstance(rehearsing.commit(), Conflicted)


def test_effects_that_take_too_long_to_tell_are_too_much(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.begin(tree)
    rehearsing.sh("echo x > n")
    with pytest.raises(TooMuch, match="too long"):
        rehearsing.ask("effects", 0.0)


def test_a_rehearsal_that_is_closed_leaves_nothing_and_touched_nothing(rehearsing: Rehearsing, tree: Path) -> None:
    before = snapshot(tree)
    rehearsing.rehearse(tree, "rm -rf * .[a-z]*; mkdir -p a/b/c; chmod 000 a/b/c a/b a; yes | head -c 1000000 > y")
    assert rehearsing.ask("close") == []
    assert snapshot(tree) == before


@pytest.mark.parametrize("where", ["sub", "a/b"])
def test_a_root_in_which_something_is_mounted_is_refused(rehearsing: Rehearsing, tmp_path: Path, where: str) -> None:
    (tmp_path / where).mkdir(parents=True)
    rehearsing.ask("tmpfs_at", str(tmp_path / where))
    rehearsing.begin(tmp_path)
    with pytest.raises(CannotRehearse, match=f"another file system is mounted in the root, at '{where}'"):
        rehearsing.sh("true")
    rehearsing.ask("unmount", str(tmp_path / where))


def test_a_root_that_is_an_overlay_is_rehearsed_and_one_on_two_is_refused(
    rehearsing: Rehearsing, tree: Path, tmp_path: Path
) -> None:
    roots = [tmp_path / "one", tmp_path / "two"]
    lower = tree
    for root in roots:
        root.mkdir()
        rehearsing.ask("overlay_at", str(root), str(lower))
        lower = root
    rehearsing.begin(roots[0])
    ran = rehearsing.sh("echo x >> text; rm d/x; mkdir n; mv b c; ln text too")
    outcome = rehearsing.commit()
    assert isinstance(outcome, Committed), outcome
    again = rehearsing.rehearse(roots[0], "true")
    assert again.changes == ()
    assert b"c" in ran.view
    rehearsing.begin(roots[0])
    rehearsing.sh("mv n m")
    assert isinstance(rehearsing.commit(), Committed)
    rehearsing.begin(roots[0])
    rehearsing.sh("echo 1 >> text; rm -r d/sub")
    before, outcome = snapshot(roots[0]), rehearsing.commit()
    assert isinstance(outcome, CommitFailed), outcome
    assert snapshot(roots[0]) == before
    rehearsing.begin(roots[0])
    rehearsing.sh("rm -r d")
    with pytest.raises(CannotRehearse, match="no directory of a lower layer can be removed \\('d'\\)"):
        rehearsing.effects()
    rehearsing.begin(roots[1])
    with pytest.raises(CannotRehearse, match="overlays deep"):
        rehearsing.sh("true")
    for root in reversed(roots):
        rehearsing.ask("unmount", str(root))


def test_a_root_that_is_no_longer_at_its_place_is_refused(rehearsing: Rehearsing, tree: Path) -> None:
    rehearsing.begin(tree)
    tree.rename(tree.parent / "moved")
    tree.mkdir()
    with pytest.raises(CannotRehearse, match="no longer lies where it did"):
        rehearsing.sh("true")
