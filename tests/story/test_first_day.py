"""The first page of the README, done by its own commands on a copy of the sample vault."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from supervisor.journal.facts import CallEnded
from tests.supervisor.command import CODE, Strongroom
from tests.supervisor.histories import fault_in_facts

VAULT: Final = CODE / "vault"


@pytest.fixture
def strongroom(home: Path, tmp_path: Path) -> Strongroom:
    """As a person has it: every process is a new Python."""
    return Strongroom(home, tmp_path)


@pytest.fixture
def notes(strongroom: Strongroom) -> Path:
    """A copy of the sample vault, beside a secret."""
    shutil.copytree(VAULT, strongroom.folder / "notes", ignore=shutil.ignore_patterns("demo"))
    (strongroom.folder / "secret.txt").write_text("CANARY")
    return strongroom.folder / "notes"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def batch(strongroom: Strongroom, *lines: str) -> list[dict[str, Any]]:
    assert strongroom.batch("\n".join(lines), root="notes").code == 0
    return strongroom.results


def test_a_digest_of_the_vault(strongroom: Strongroom, notes: Path) -> None:
    before = contents(notes)
    (result,) = batch(strongroom, "digest **/*.md into summary.md")
    after = contents(notes)
    assert result["answer"].startswith("The digest is in summary.md.")
    assert after.pop("summary.md").startswith(b"# Digest\n")
    assert after == before
    read = [each["arguments"]["path"] for each in result["tool_calls"] if each["tool"] == "read_file"]
    assert sorted(read) == sorted(name for name in before if name.endswith(".md"))
    assert fault_in_facts(strongroom.sessions[result["session"]]) is None


def test_every_note_is_in_the_digest(strongroom: Strongroom, notes: Path) -> None:
    batch(strongroom, "digest **/*.md into summary.md")
    digest = (notes / "summary.md").read_text()
    assert [name for name in contents(notes) if name.endswith(".md") and f"([{name}])" not in digest] == ["summary.md"]


WAYS_OUT: Final = [
    "read ../secret.txt",
    "read notes/../../secret.txt",
    "write ../new.txt: x",
    "list ../*",
    "digest ../* into summary.md",
]


def test_every_way_out_of_the_vault_is_refused(strongroom: Strongroom, notes: Path) -> None:
    before = contents(strongroom.folder)
    ways = [*WAYS_OUT, f"read {strongroom.folder}/secret.txt", "read /etc/passwd"]
    for result in batch(strongroom, *ways):
        assert [each["error_kind"] for each in result["tool_calls"]] == ["path_escape"]
        assert "CANARY" not in result["answer"]
        assert "(path_escape)" in result["answer"]
    after = contents(strongroom.folder)
    assert {name for name in after if not name.startswith("home/")} - set(before) == {"in", "out.jsonl"}


def test_a_link_out_of_the_vault_is_refused(strongroom: Strongroom, notes: Path) -> None:
    (notes / "innocent.md").symlink_to("../secret.txt")
    done = strongroom.run("call", "read_file", '{"path": "innocent.md"}', "--root", "notes")
    assert (done.code, done.json["error"]["kind"]) == (1, "path_escape")
    assert "CANARY" not in done.out


def test_past_calls_can_be_looked_up(strongroom: Strongroom, notes: Path) -> None:
    batch(strongroom, "read README.md", "read ../secret.txt")
    assert strongroom.run("verify").code == 0
    sessions = strongroom.run("sessions", "--json").json
    assert [each["title"] for each in sessions] == ["read README.md", "read ../secret.txt"]
    assert "path_escape" in strongroom.run("history", sessions[1]["session"]).out
    assert [fact.kind for fact in strongroom.facts if isinstance(fact, CallEnded)] == [None, "path_escape"]
