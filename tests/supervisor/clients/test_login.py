"""`strongroom login` and `logout`: a key is shown to its server alone, and kept unless that refuses it."""

import os
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.key_store import KeptKey, KeyStore
from tests.forked import Forked, ForkedStrongroom
from tests.supervisor.agent.models.test_server_listing import KEY, listing_server
from tests.supervisor.command import CODE, HANG_GUARD

LIST: Final = '{"data": []}'
ANSWERS: Final = {
    "taken": (200, KEY, 0, "answers and takes the key."),
    "refused": (200, "another", 1, "refuses the key (401). Nothing was kept."),
    "refused as Google does": (400, "", 1, "refuses the key (400). Nothing was kept."),
    "asked in vain": (200, "", 0, "It was not checked: {url} answers, and does not say whether the key is right."),
    "busy": (500, "", 0, "It was not checked: {url} answers with 500."),
}


@pytest.mark.parametrize(("status", "only", "code", "told"), ANSWERS.values(), ids=ANSWERS)
def test_a_key_is_kept_unless_its_server_refuses_it(
    status: int, only: str, code: int, told: str, home: Path, tmp_path: Path
) -> None:
    body = '{"error": {"details": [{"reason": "API_KEY_INVALID"}]}}' if status == 400 else LIST
    with listing_server(status, body, only) as (url, _):
        done = ForkedStrongroom(home, tmp_path, ANTHROPIC_BASE_URL=url).run("login", "anthropic", stdin=f"  {KEY}\n")
    assert done.code == code
    assert told.format(url=url) in done.out + done.err
    assert KEY not in done.out + done.err
    assert KeyStore(home / "keys.json").kept() == ({} if code else {"anthropic": KeptKey(KEY, url)})


def test_the_providers_of_the_configuration_have_keys_that_win_over_nothing_and_are_forgotten(
    home: Path, tmp_path: Path
) -> None:
    strongroom = ForkedStrongroom(home, tmp_path)
    strongroom.configure("[providers.own]\nbase_url = 'http://127.0.0.1:1'\nkey_env = 'OWN_KEY'\n")
    assert "cannot be reached" in strongroom.run("login", "own", stdin=KEY).out
    here = ForkedStrongroom(home, tmp_path, OWN_KEY="k").run("login", "--list").out
    assert "own        OWN_KEY is set here, and goes before the key that is kept for http://127.0.0.1:1" in here
    assert "own at http://127.0.0.1:1 with the key that was kept" in strongroom.run("models").out
    strongroom.configure("")
    assert "no such provider is configured any more" in strongroom.run("login", "--list").out
    assert strongroom.run("logout").out == "The key of own is forgotten.\n"
    assert strongroom.run("logout").out == "No key is kept.\n"


WRONG: Final[dict[str, tuple[tuple[str, ...], str, str]]] = {
    "no name for a piped key": (("login",), KEY, "Name the PROVIDER whose key this is: anthropic, openai, gemini"),
    "a name that is none": (("login", "anthropc"), KEY, "Unknown provider 'anthropc'; did you mean 'anthropic'?"),
    "a provider without keys": (("login", "offline"), KEY, "The provider 'offline' takes no key."),
    "two lines": (("login", "openai"), "sk-CANARY\nb", "it has more than one line. Nothing was kept."),
    "controls": (("login", "openai"), "sk-CANARY\x1b[2J", "it has characters that no key has"),
    "nothing": (("login", "openai"), "", "it is empty"),
    "a list of one": (("login", "--list", "openai"), "", "Use --list without a PROVIDER."),
    "to forget what is none": (("logout", "anthropc"), "", "Unknown provider 'anthropc'"),
}


@pytest.mark.parametrize(("arguments", "key", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_kept_is_refused_with_a_sentence(
    arguments: tuple[str, ...], key: str, words: str, home: Path, tmp_path: Path
) -> None:
    done = ForkedStrongroom(home, tmp_path).run(*arguments, stdin=key)
    done.assert_refused(words)
    assert "CANARY" not in done.err
    assert not home.exists()


def test_on_a_terminal_the_providers_are_named_and_the_key_is_not_shown(home: Path, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    with listing_server(200, LIST, KEY) as (url, _):
        environment = {**ForkedStrongroom(home, tmp_path, ANTHROPIC_BASE_URL=url).environment, "PYTHONPATH": str(CODE)}
        ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        process = Forked("supervisor", ["login"], module=True, **ends, env=environment, cwd=tmp_path)
        os.close(theirs)
        said = _until(ours, "Provider [anthropic]: ")
        os.write(ours, b"\n")
        said += _until(ours, "(not shown): ")
        os.write(ours, f"{KEY}\n".encode())
        said += _until(ours, "from now on use it.")
        assert process.wait(HANG_GUARD) == 0
    os.close(ours)
    assert "gemini     no key; GEMINI_API_KEY can hold one, too" in said
    assert KEY not in said
    assert KeyStore(home / "keys.json").kept()["anthropic"].key == KEY


def _until(terminal: int, words: str) -> str:
    """Return what a terminal shows, up to these words."""
    said = ""
    while words not in said:
        said += os.read(terminal, 4096).decode()
    return said
