"""Lists on a terminal of which one row is taken, and questions that come meanwhile."""

from pathlib import Path

from supervisor.acp import extensions, schema
from tests.supervisor.clients.console.fake_daemon import OPTIONS, SESSION, FakeDaemon, holding
from tests.supervisor.clients.console.terminals import ENTER, ESCAPE, INTERRUPT, Terminal


def test_a_model_is_taken_from_a_list_that_letters_narrow(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.hold_option = True
    ready.type("/model" + ENTER, lambda screen: "model:" in screen and "> offline" in screen)
    ready.type("hai", lambda screen: "> claude-haiku-5-5" in screen and "  offline" not in screen)
    ready.type(ENTER)
    asked = daemon.next("session/set_config_option")
    assert (asked.params["configId"], asked.params["value"]) == ("model", "claude-haiku-5-5")
    daemon.answer(asked, schema.OptionsResult(config_options=OPTIONS))
    ready.until("The model is claude-haiku-5-5 now.")
    for leaves in (ESCAPE, INTERRUPT, ENTER):
        ready.type("/profile" + ENTER, "profile:")
        ready.type(leaves, lambda screen: "profile:" not in screen and "Ready" in screen)
    ready.type("/profile" + ENTER, "profile:")
    ready.type("\x1b[B", "> project")
    ready.type("\x1b[B", "> vault")
    ready.type(ESCAPE, lambda screen: "profile:" not in screen)
    assert daemon.seen.count("session/set_config_option") == 1


def test_what_a_directory_is_for_is_asked_once(home: Path, root: Path, daemon: FakeDaemon) -> None:
    def opened() -> str:
        return str(daemon.next("session/new").params["_meta"][extensions.OPTIONS]["profile"])

    daemon.hold = True
    with Terminal(home, root.parent, HOME=str(home)) as console:
        console.until("what is this directory:")
        console.type("c" + ENTER)
        assert opened() == "code"
    meta = {extensions.OPTIONS: {"profile": "operator"}}
    daemon.sessions = [schema.SessionInfo(session_id=SESSION, cwd=str(root.parent), meta=meta)]
    with Terminal(home, root.parent, HOME=str(home)):
        assert opened() == "operator"


def test_another_session_is_taken_from_a_list(ready: Terminal, daemon: FakeDaemon) -> None:
    daemon.sessions = [
        schema.SessionInfo(session_id=SESSION, cwd="/x", title="This one"),
        schema.SessionInfo(session_id="20250101-000000-aaaaaa", cwd="/x", title="The greenhouse"),
        schema.SessionInfo(session_id="20250101-000000-bbbbbb", cwd="/x", title="\x1b[31mOther"),
    ]
    ready.type("/resume" + ENTER, lambda screen: "> The greenhouse" in screen and "This one" not in screen)
    assert "\\x1b[31mOther" in ready.text
    ready.type("oth" + ENTER)
    daemon.continued()
    assert daemon.loaded == "20250101-000000-bbbbbb"


def test_a_session_that_has_some_words_is_taken_from_a_list(ready: Terminal, daemon: FakeDaemon) -> None:
    ready.type('/find seeds "of basil"' + ENTER)
    asked = daemon.next("_strongroom/search")
    assert asked.params["words"] == 'seeds "of basil"'
    other = "20250101-000000-aaaaaa"
    found = [holding(SESSION, "seeds here"), holding(other, "\x1b[31mseeds there")]
    daemon.answer(asked, extensions.SearchResult(found=found))
    ready.until(lambda screen: "find:" in screen and "> seeds here" in screen and "\\x1b[31mseeds there" in screen)
    ready.type("there" + ENTER)
    daemon.continued()
    assert daemon.loaded == other


def test_a_question_waits_for_the_end_of_a_list(console: Terminal, daemon: FakeDaemon) -> None:
    daemon.end()
    console.until("Ready")
    console.type("/model" + ENTER, "model:")
    daemon.ask("run_cmd", '{"command": "ls"}')
    console.until("run_cmd")
    console.type("y" + ENTER, lambda screen: "nothing fits" in screen)
    console.hammer("y", 5)
    assert not daemon.is_answered()
    console.type(ESCAPE, lambda screen: "model:" not in screen and "Enter run" in screen)
    console.type(ENTER)
    assert daemon.answered()["option"] == "allow_once"
