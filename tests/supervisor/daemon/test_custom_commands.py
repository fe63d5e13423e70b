"""Custom commands over a real socket: one's own and a project's, listed, and sent with what follows their names."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.journal.facts import TurnStarted
from supervisor.tools.custom_commands import CustomCommand
from tests.daemon_process import DaemonProcess, Lines
from tests.supervisor.command import Home

HEAD = "---\ndescription: 'Look \x1b[31mclosely'\nargument-hint: PATH\nallowed-tools: Bash(*)\n---\n"


@pytest.mark.parametrize(
    ("text", "arguments", "filled"),
    [
        ("Read $1, then $2.", "a.md b.md", "Read a.md, then b.md."),
        ("Read $1, then $2.", "a.md", "Read a.md, then ."),
        ("All: $ARGUMENTS!", "one  two", "All: one  two!"),
        ("It costs $10 or $ARGUMENTSX.", "", "It costs $10 or $ARGUMENTSX."),
        ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
        ("No place.\n", "said", "No place.\n\nARGUMENTS: said\n"),
        ("No place.\n", "", "No place.\n"),
    ],
)
def test_what_follows_a_name_is_put_in_once_and_where_the_text_says(text: str, arguments: str, filled: str) -> None:
    assert CustomCommand("", "", "file:///c.md", text).filled_in(arguments) == filled


@pytest.fixture
def client(home: Path, root: Path) -> Iterator[Lines]:
    own, project = home / "commands", root / ".claude/commands"
    home.mkdir(mode=0o700)
    for directory in (own, project):
        directory.mkdir(parents=True)
    (own / "both.md").write_text("mine: $ARGUMENTS")
    (own / "status.md").write_text("takes a name of Strongroom's")
    (own / "large.md").write_text("x" * 2**17)
    (project / "both.md").write_text("the project's: $ARGUMENTS")
    (project / "review.md").write_text(f"{HEAD}\nread $1\n")
    (project / "a-gap.md").write_text(f"---\nname: a{' ' * 60_000}b\ndescription: gap\n---\n")  # a look ends in time
    (project / "binary.md").write_bytes(b"\xff\0")
    (project / "Not a name.md").touch()
    (project / "outside.md").symlink_to("/etc/hostname")
    with DaemonProcess(home, root.parent) as daemon, daemon.client() as lines:
        yield lines


def sent(home: Path, session: str) -> list[str]:
    """Return the lines that the model was asked."""
    return [fact.text for fact in Home(home, home).facts_of(session, TurnStarted)]


def listed(client: Lines) -> dict[str, tuple[str, str]]:
    """Return description and hint of the commands that are told next, without Strongroom's own."""
    while (told := client.until("session/update")["params"]["update"])["sessionUpdate"] != "available_commands_update":
        pass
    every = told["availableCommands"]
    ours = ("tools", "status", "rules", "budget", "compact", "go", "undo")
    assert [each["name"] for each in every[: len(ours)]] == list(ours)
    return {each["name"]: (each["description"], each.get("input", {}).get("hint", "")) for each in every[len(ours) :]}


def test_commands_that_people_wrote_are_listed_and_sent_with_their_arguments(
    client: Lines, root: Path, home: Path
) -> None:
    session = client.new_session(root, profile="vault", model="offline")
    assert listed(client) == {
        "a-gap": ("gap", ""),
        "both": ("mine: $ARGUMENTS", ""),
        "review": (r"Look \x1b[31mclosely", "PATH"),
    }
    client.prompt(session, "/review a.txt")
    client.prompt(session, "/both one two")
    client.prompt(session, "/nothing of this name")
    review, both, nothing = sent(home, session)
    assert review.startswith("/review a.txt\n\n")
    assert "read a.txt\n" in review
    assert (root / ".claude/commands/review.md").as_uri() in review
    assert "allowed-tools" not in review
    assert "mine: one two" in both
    assert nothing == "/nothing of this name"
    for name, why in (("large", "more"), ("binary", "not text")):
        prompt = [{"type": "text", "text": f"/{name}"}]
        assert why in client.refused("session/prompt", {"sessionId": session, "prompt": prompt})["message"]

    (root / ".claude/commands/review.md").write_text("changed meanwhile")
    client.prompt(session, "/review")
    assert "changed meanwhile" in sent(home, session)[-1]


@pytest.mark.parametrize("key", ["trusted = false", 'tools = ["list_files"]'])
def test_a_root_of_strangers_has_no_commands_nor_one_whose_files_are_not_read(
    client: Lines, root: Path, home: Path, key: str
) -> None:
    shutil.rmtree(home / "commands")
    (home / "config.toml").write_text(f"[profiles.vault]\n{key}\n")
    session = client.new_session(root, profile="vault", model="offline")
    assert listed(client) == {}
    client.prompt(session, "/review a.txt")
    assert sent(home, session)[-1] == "/review a.txt"
