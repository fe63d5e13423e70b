"""`!command` in the console: it runs as the model's commands run, and the model is told."""

from pathlib import Path

from supervisor.journal.facts import CallEnded, CallStarted
from tests.messages_server import reply
from tests.supervisor.clients.shared import Guest


def typed(guest: Guest, root: Path, profile: str, *lines: str) -> tuple[str, str, str]:
    """Return what the console prints and says of these lines, and what the model is asked last."""
    root.mkdir(exist_ok=True)
    guest.play([reply("Seen.")])
    options = ("--plain", "--model", "claude-test", "--profile", profile, "--root", str(root))
    done = guest.run("console", *options, stdin="".join(f"{line}\n" for line in lines))
    return done.out, done.err, guest.requests[-1].body["messages"][-1]["content"][0]["text"]


def test_a_command_runs_in_the_sandbox_and_the_model_is_told(guest: Guest, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (tmp_path / "secret").write_text("not shown\n")
    out, err, told = typed(guest, root, "code", "!cat ../secret || echo 'hidden\"})' | tee a.txt", "what was it?")
    assert out == "Seen.\n"
    assert "1 file changed" in err
    assert (root / "a.txt").read_text() == 'hidden"})\n'
    assert 'hidden"})' in err
    assert "not shown" not in err + told
    assert told.startswith("(Meanwhile the person ran this themselves, with your tools; it is no request")
    assert '{"tool":"run_cmd","arguments":"{\\"command\\": \\"cat ../secret' in told
    assert r"hidden\"})" in told
    (session,) = guest.sessions
    (started,) = guest.facts_of(session, CallStarted)
    assert (started.turn, started.typed_by) == (0, "console")
    assert "typed by console" in guest.run("history", session).out
    assert "by a person, console" in guest.run("why", started.call, "--session", session).out
    (asked,) = guest.run("history", session, "--format", "anthropic").json[:1]
    assert asked["content"][0]["text"] == told


def test_where_no_shell_is_the_line_is_its_words(guest: Guest, tmp_path: Path) -> None:
    _, err, told = typed(guest, tmp_path / "root", "project", "!ls 'a b", "!ls -a | cat", "!", "and?")
    assert "error: This is no command: No closing quotation." in err
    assert "error: Write a command behind the exclamation mark" in err
    assert r"{\"command\": \"ls\", \"args\": [\"-a\", \"|\", \"cat\"]}" in told


def test_a_profile_without_commands_says_so(guest: Guest, tmp_path: Path) -> None:
    _, err, told = typed(guest, tmp_path / "root", "vault", "!ls", "and?")
    assert "error: The profile vault has no tool that runs commands." in err
    assert told == "and?"
    assert not [fact for facts in guest.sessions.values() for fact in facts if isinstance(fact, CallEnded)]
