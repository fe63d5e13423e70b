"""Skills over a real socket: named to the model, read as it asks, and their scripts run; a person's and a project's."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supervisor.journal.facts import CallEnded, InstructionsRead
from supervisor.tools.skills import shown_to_commands
from tests.daemon_process import DaemonProcess, Lines, scripted
from tests.supervisor.command import Home
from tests.supervisor.histories import call

HEAD = "---\nname: {0}\ndescription: How to {0}.\n---\n"


def write(directory: Path, name: str, text: str = "Do it.\n") -> Path:
    (directory / name / "scripts").mkdir(parents=True)
    (directory / name / "SKILL.md").write_text(HEAD.format(name) + text)
    return directory / name


@pytest.fixture
def client(home: Path, root: Path) -> Iterator[Lines]:
    home.mkdir(mode=0o700)
    greet = write(home / "skills", "greet", "Mine.\n")
    (greet / "scripts/hi.sh").write_text("#!/bin/sh\necho hi from $0\n")
    (greet / "scripts/hi.sh").chmod(0o755)
    (greet / "out.md").symlink_to(home / "journal.db")
    write(root / ".agents/skills", "report")
    write(root / ".claude/skills", "greet", "The project's.\n")
    with DaemonProcess(home, root.parent) as daemon, daemon.client() as lines:
        yield lines


def told(home: Path, session: str) -> list[InstructionsRead]:
    return Home(home, home).facts_of(session, InstructionsRead)


def read(client: Lines, session: str, name: str, **more: str) -> Any:
    return client.call(session, "read_skill", name=name, **more)


def test_skills_are_named_and_told_anew_where_they_have_changed(client: Lines, home: Path, root: Path) -> None:
    model = scripted(home / "s.jsonl", {"text": "1"}, {"text": "2"}, {"text": "3"})
    session = client.new_session(root, profile="project", model=model)
    for _ in range(2):
        client.prompt(session, "go")
    (fact,) = told(home, session)
    assert [each.path for each in fact.files] == [str(home / "skills"), ".agents/skills"]
    assert [each.text.splitlines()[-1] for each in fact.files] == ["- greet: How to greet.", "- report: How to report."]

    shutil.rmtree(root / ".agents")
    write(home / "skills", "sing")
    client.prompt(session, "go")
    changed = told(home, session)[-1]
    assert changed.gone == (".agents/skills",)
    assert changed.files[0].text.endswith("- greet: How to greet.\n- sing: How to sing.\n")


def test_a_skill_is_read_and_its_scripts_run_where_nothing_else_of_the_person_is_seen(
    client: Lines, home: Path, root: Path
) -> None:
    script = home / "skills/greet/scripts/hi.sh"
    run = call("run_cmd", command=f"{script}; cat {home}/config.toml; echo x >> {script}; echo $?")
    model = scripted(home / "s.jsonl", {"calls": [run]}, {"text": "done"})
    session = client.new_session(root, profile="code", model=model)
    mine = read(client, session, "greet")
    assert mine["content"] == f"{HEAD.format('greet')}Mine.\n"
    assert mine["note"] == f"The skill's folder is {home}/skills/greet"
    assert read(client, session, "report")["note"] == "The skill's folder is .agents/skills/report"
    for name, file, kind, said in (
        ("nothing", "SKILL.md", "not_found", "There are: greet, report."),
        ("../skills", "SKILL.md", "not_found", "There is no skill"),
        ("greet", "nothing.md", "not_found", "it is not there"),
        ("greet", "out.md", "not_found", "a link that leads out of the skill's folder"),
        ("greet", "../../journal.db", "path_escape", "name one within it"),
    ):
        error = read(client, session, name, file=file)["error"]
        assert (error["kind"], said in error["message"]) == (kind, True), error

    client.prompt(session, "go")
    (ended,) = (each for each in Home(home, home).facts_of(session, CallEnded) if each.tool == "run_cmd")
    printed = json.loads(ended.content)
    assert printed["stdout"].splitlines() == [f"hi from {script}", "1"]
    assert "No such file" in printed["stderr"]
    assert "Read-only file system" in printed["stderr"]


def test_a_root_of_strangers_has_no_skills_and_who_wants_no_instructions_none_at_all(
    client: Lines, home: Path, root: Path
) -> None:
    (home / "config.toml").write_text("[profiles.project]\ntrusted = false\n[profiles.vault]\ninstructions = false\n")
    for profile, known in (("project", "There are: greet."), ("vault", "There are none here.")):
        session = client.new_session(root, profile=profile, model="offline")
        assert known in read(client, session, "report")["error"]["message"]


def test_commands_are_shown_no_skills_that_are_a_link_or_that_no_tool_reads(tmp_path: Path) -> None:
    assert shown_to_commands(tmp_path, ["read_skill"]) == ()
    (tmp_path / "skills").mkdir()
    assert shown_to_commands(tmp_path, ["read_skill"]) == (str(tmp_path / "skills"),)
    assert shown_to_commands(tmp_path, ["run_cmd"]) == ()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/skills").symlink_to("/")
    assert shown_to_commands(tmp_path / "linked", ["read_skill"]) == ()
