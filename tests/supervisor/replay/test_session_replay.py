"""Replays: recorded sessions run again by real workers, in a copy of their root, and what is said where they differ."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.config.settings import load
from supervisor.journal.facts import CallDecided
from tests.daemon_process import scripted
from tests.forked import ForkedStrongroom
from tests.supervisor.command import Family, Strongroom, children, wait_until
from tests.supervisor.histories import call

RECORDINGS: Final = Path(__file__).parent / "recordings"
TURNS: Final = (
    {"text": "I look.", "calls": [call("read_file", path="a.txt"), call("recall", query="go")]},
    {"calls": [call("edit_file", path="a.txt", old="hello", new="bye"), call("write_file", path="b.txt", content="b")]},
    {"calls": [call("run_cmd", command="cat a.txt; rm b.txt; mkdir d; echo > d/e"), call("read_file", path="../x")]},
    {"calls": [call("fetch_url", url="https://127.0.0.1:1/"), call("run_cmd", command="echo > .git/config")]},
    {"text": "Done."},
)


@pytest.mark.parametrize("name", sorted(each.name for each in RECORDINGS.iterdir()))
def test_a_recorded_session_comes_to_the_same(strongroom: Strongroom, name: str) -> None:
    case = RECORDINGS / name
    done = strongroom.run("replay", str(case / "session.json"), "--root", str(case / "root"))
    assert (done.code, done.out.splitlines()[1:]) == (0, []), done.out


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Strongroom:
    """A session that has changed its root, in a home of its own."""
    folder = tmp_path_factory.mktemp("recorded")
    found = ForkedStrongroom.beside_a_root(folder, TMPDIR=str(folder / "tmp"))
    (folder / "tmp").mkdir()
    model = scripted(folder / "script.jsonl", *TURNS)
    assert found.run("-p", "go", "--model", model, "--profile", "code", "--root", "root").code == 0
    return found


def replayed(strongroom: Strongroom, code: int, *options: str) -> dict[str, Any]:
    (session,) = strongroom.sessions
    done = strongroom.run("replay", session, "--json", *options)
    assert done.code == code, done.err
    found: dict[str, Any] = done.json
    return found


def files(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in root.rglob("*") if each.is_file()}


def test_a_session_is_replayed_where_it_began_and_leaves_everything_as_it_is(recorded: Strongroom) -> None:
    before, rows = files(recorded.folder), recorded.entries
    for _ in range(2):
        found = replayed(recorded, 0)
        assert (found["divergence"], found["not_as_it_was"], found["turns"], found["calls"]) == (None, [], 1, 8)
        assert len(found["given"]) == 2, "what came from the network, and from the journal"
    assert {name: data for name, data in files(recorded.folder).items() if "journal" not in name} == {
        name: data for name, data in before.items() if "journal" not in name
    }
    assert recorded.entries == rows
    assert left_by(recorded) == []


def left_by(strongroom: Strongroom) -> list[str]:
    """Return what replays have left of their copies."""
    place = strongroom.folder / "tmp" / f"strongroom-replays-{os.geteuid()}"
    return os.listdir(place) if place.exists() else []


def test_what_a_killed_replay_has_left_goes_with_the_next_one(recorded: Strongroom) -> None:
    (session,) = recorded.sessions
    killed = recorded.start("replay", session)
    wait_until(lambda: left_by(recorded))
    family = Family(children(killed.pid))
    killed.kill()
    killed.communicate()
    assert family.is_gone()
    assert len(left_by(recorded)) == 1
    replayed(recorded, 0)
    assert left_by(recorded) == []


@pytest.fixture
def own(recorded: Strongroom, tmp_path: Path) -> Iterator[Strongroom]:
    """The same session, for a test that changes something; its root is where it was."""
    kept = tmp_path / "kept"
    shutil.copytree(recorded.folder, kept, symlinks=True)
    yield recorded
    for each in ("root", "home"):
        shutil.rmtree(recorded.folder / each)
        shutil.copytree(kept / each, recorded.folder / each, symlinks=True)


def test_what_others_have_changed_since_is_named(own: Strongroom) -> None:
    (own.folder / "root/a.txt").write_text("what a person wrote\n")
    found = replayed(own, 0)
    assert "a.txt" in found["not_as_it_was"][0]
    assert "changed" in found["not_as_it_was"][0]


def test_what_no_pack_holds_any_more_is_said_and_the_first_divergence_told(own: Strongroom) -> None:
    kept = {
        fact.effects.changes[0].path: fact.kept
        for fact in own.facts
        if isinstance(fact, CallDecided) and fact.effects and fact.effects.changes
    }
    (load({"STRONGROOM_HOME": str(own.home)}).packs / kept["a.txt"]).unlink()
    found = replayed(own, 1)
    assert found["not_as_it_was"] == ["a.txt: nothing that was kept of it is there any more"]
    told = found["divergence"]
    assert (told["tool"], told["what"], told["then"], told["now"]) == (
        "read_file",
        "outcome",
        "ok: hello\n",
        "ok: bye\n",
    )
    (session,) = own.sessions
    text = own.run("replay", session).out.splitlines()
    assert text[0] == "diverged after 1 turns, 8 calls"
    assert text[-4:] == ["  outcome, then:", "    ok: hello", "  now:", "    ok: bye"]


def test_another_policy_is_tried_without_running_anything(recorded: Strongroom) -> None:
    (session,) = recorded.sessions
    (recorded.folder / "policy.toml").write_text('[[rules]]\ndecision = "deny"\ndeletes = ["b.txt"]\n')
    done = recorded.run("replay", session, "--policy", "policy.toml")
    assert done.code == 0
    assert "run_cmd  cat a.txt; rm b.txt" in done.out
    assert "then: allowed; now: deny, a rule denies it" in done.out
    found = recorded.run("replay", session, "--policy", "policy.toml", "--profile", "vault", "--json").json
    now = {(each["tool"], each["now"], each["reason"]) for each in found["calls"]}
    assert ("run_cmd", "deny", "profile vault has no such tool") in now
    assert ("edit_file", "allow", "profile vault allows edit_file") in now


BAD: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "no session": (("nope",), "No session 'nope'"),
    "no file": (("./nope",), "The record nope cannot be read: No such file or directory"),
    "no record": (("./in.json", "--root", "."), "The record in.json cannot be read"),
    "a part of one": (("./part.json", "--root", "."), "not hold one session from its beginning"),
    "a record without its root": (("./one.json",), "--root DIR"),
    "a policy that is missing": (("./one.json", "--policy", "nope"), "The policy nope cannot be read"),
    "a policy with a mistake": (("./one.json", "--policy", "in.json"), "in.json"),
    "a profile alone": (("./one.json", "--profile", "vault"), "--profile goes with --policy"),
    "the whole machine": (("./one.json", "--root", "/"), "a copy of the whole machine"),
}


@pytest.mark.parametrize(("words", "said"), BAD.values(), ids=BAD)
def test_what_cannot_be_replayed_is_said(recorded: Strongroom, words: tuple[str, ...], said: str) -> None:
    rows = json.loads((RECORDINGS / "notes/session.json").read_text())
    (recorded.folder / "one.json").write_text(json.dumps(rows))
    (recorded.folder / "part.json").write_text(json.dumps(rows[1:]))
    (recorded.folder / "in.json").write_text('{"a": 1}')
    recorded.run("replay", *words).assert_refused(said)
