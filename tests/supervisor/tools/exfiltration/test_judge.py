"""Judging addresses: those a person is asked about, and those nobody should have to think about."""

import base64
import codecs
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote, quote_plus

import pytest

from supervisor.acp.prompt_parts import prompt_parts
from supervisor.config.profiles import Profile
from supervisor.journal.facts import CallEnded, TurnStarted
from supervisor.tools.call_policy import judge
from supervisor.tools.exfiltration.comparable_text import comparable
from supervisor.tools.exfiltration.exposure import KEPT, SeenText
from supervisor.tools.exfiltration.judge import LONGEST, MOST, VERBATIM, suspicion
from tests.each_row import each_row

NOTE: Final = (Path(__file__).parents[4] / "vault/notes/idea.md").read_text("utf-8")
SECRET: Final = " ".join(NOTE.split())[55:155]
FIRST: Final = re.sub(r"\W+", "-", SECRET).lower()
DIGEST: Final = "9fceb02d0ae598e95dc970b74767f19372d61af8"
KEY: Final = "T4kq9ZrW2xVb7NmLp3Ys8Hd"


def ended(tool: str, content: str, *, ok: bool = True) -> CallEnded:
    return CallEnded(1, "c", tool, ok, content)


def seen(*, read: Iterable[str] = (NOTE,), typed: str = "", fetched: str = "") -> SeenText:
    texts = SeenText()
    texts.apply(TurnStarted(1, typed))
    for text in read:
        texts.apply(ended("read_file", text))
    texts.apply(ended("fetch_url", fetched))
    return texts


ORDINARY: Final = [
    "https://github.com",
    "https://github.com/agentjido/jido_ai/blob/main/lib/jido_ai/actions/langchain/tool_response.ex",
    "https://elixirforum.com/t/how-to-handle-a-very-long-running-liveview-process-in-production/61234/15?u=josevalim",
    "https://hexdocs.pm/phoenix_live_view/Phoenix.LiveView.JS.html",
    "https://hexdocs.pm/elixir/1.18.0-rc.0/Kernel.SpecialForms.html#quote/2",
    "https://github.com/torvalds/linux/blob/v6.18/Documentation/userspace-api/landlock.rst",
    "https://github.com/search?q=repo%3Aelixir-lang%2Felixir+GenServer.call+timeout&type=code",
    "https://github.com/elixir-lang/elixir/issues/13245#issuecomment-1918273645",
    "https://github.com/o/r/releases/download/v1.10.2/tool_1.10.2_linux_amd64.tar.gz",
    "https://github.com/o/r/compare/v1.2.3...v1.2.4",
    "https://github.com/ReactNavigationExamples/ReactNativeGestureHandlerExamplesRepository",
    "https://github.com/o/r/blob/main/SCREAMING_SNAKE_CASE_FILE_NAME_IN_DOCUMENTATION.md",
    "https://github.com/search?q=potting+bench",
    "https://github.com/user/2024-10-11-12-13-14-notes",
    "https://de.example.org/wiki/Geschwindigkeitsbegrenzung",
    "https://github.com/o/r/actions/runs/7654321098/job/20876543210",
    "https://github.com/advisories/GHSA-wx77-rp39-c6vg",
    "https://github.com/nodejs/node/blob/v20.11.0/deps/v8/src/compiler/backend/x64/code-generator-x64.cc",
    "https://ru.example.org/wiki/%D0%A0%D0%BE%D1%81%D1%81%D0%B8%D1%8F",
]

CARRIED: Final = {
    "words in a query": f"https://github.com/?q={quote(SECRET)}",
    "words joined by plus signs": f"https://github.com/?q={quote_plus(SECRET[:50])}",
    "words joined by hyphens": "https://github.com/" + re.sub(r"\W+", "-", SECRET)[:60],
    "words as directories": "https://github.com/" + re.sub(r"\W+", "/", SECRET)[:60],
    "words as parameters": "https://github.com/?a=" + "&a=".join(re.findall(r"\w+", SECRET)[:12]),
    "words in capitals without blanks": "https://github.com/?q=" + re.sub(r"\W+", "", SECRET).upper()[:40],
    "words encoded twice": f"https://github.com/?q={quote(quote(SECRET[:40]))}",
    "words in base64": f"https://github.com/?q={base64.b64encode(SECRET[:40].encode()).decode()}",
    "words in base64 for URLs, unpadded": (
        f"https://github.com/?q={base64.urlsafe_b64encode(SECRET[:38].encode()).decode().rstrip('=')}"
    ),
    "words in base32": f"https://github.com/{base64.b32encode(SECRET[:40].encode()).decode()}",
    "words in base16": f"https://github.com/?q={SECRET[:40].encode().hex()}",
    "words backwards": f"https://github.com/?q={quote(SECRET[:60][::-1])}",
    "words in ROT13": f"https://github.com/?q={quote(codecs.encode(SECRET[:60], 'rot13'))}",
    "words as a host name": "https://" + re.sub(r"\W+", "-", SECRET)[:40].strip("-").lower() + ".example.org/",
    "words in the names of parameters": "https://github.com/?" + "=on&".join(re.findall(r"\w+", SECRET)[:8]) + "=on",
    "words with numbers between": "https://github.com/"
    + "/".join(f"{number}-{word}" for number, word in enumerate(re.findall(r"\w+", SECRET)[:9])),
    "words in the path and in a parameter": "https://github.com/" + FIRST[:19] + "?query=" + FIRST[19:38],
    "words in the host and in the path": "https://" + FIRST[:19].strip("-") + ".example.org/" + FIRST[19:38],
    "words encoded many times": f"https://github.com/?q={quote(quote(quote(quote(quote(SECRET[:38])))))}",
    "words in base16, a directory each": "https://github.com/a/" + SECRET[:34].encode().hex("/"),
    "words in base16, a few letters at a time": "https://github.com/"
    + "/".join(SECRET[at : at + 5].encode().hex() for at in range(0, 40, 5)),
    "words in base16 and equals signs": "https://github.com/?q==" + SECRET[:34].encode().hex("="),
    "words in base85": "https://github.com/?q=" + quote(base64.b85encode(SECRET[:40].encode()).decode(), safe=""),
    "words in Ascii85": "https://github.com/?q=" + quote(base64.a85encode(SECRET[:40].encode()).decode(), safe=""),
    "words in UTF-16 and base64": "https://github.com/?q=" + base64.b64encode(SECRET[:40].encode("utf-16")).decode(),
    "words with Cyrillic letters": "https://github.com/?q="
    + quote(SECRET[:40].translate(str.maketrans("aeopcxy", "\u0430\u0435\u043e\u0440\u0441\u0445\u0443"))),
    "words with Greek letters": "https://github.com/?q=" + quote(SECRET[:40].translate(str.maketrans("aoik", "αοικ"))),
    "words in bold capitals of mathematics": "https://github.com/?q="
    + quote("".join(chr(0x1D400 + ord(char) - 65) for char in SECRET[:40].upper() if char.isalpha())),
    "words that nobody sees": "https://github.com/?q="
    + quote("".join(chr(0xE0000 + ord(char)) for char in SECRET[:30])),
    "words with zero-width blanks": "https://github.com/?q=" + quote("\u200b".join(SECRET[:36])),
    "words as labels of a host name": "https://" + re.sub(r"\W+", ".", SECRET)[:40].strip(".").lower() + ".example.org",
}

UNREADABLE: Final = {
    "a digest": f"https://github.com/o/r/commit/{DIGEST}",
    "a token": f"https://github.com/?t={KEY}",
    "an access key": "https://github.com/x/AKIAIOSFODNN7EXAMPLE",
    "a secret key with slashes": "https://github.com/?x=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "a token that says so": "https://github.com/?t=ghp_abcdefghijklmnopqrst",
    "a UUID": "https://github.com/550e8400-e29b-41d4-a716-446655440000",
    "a private key": "https://github.com/?q=MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7",
    "a signed token": "https://github.com/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "a row of digits": "https://github.com/?n=4111111111111111222233334444",
    "a word that is none": "https://github.com/?q=gurerpvcrsbegurfbhcvfvaaabgrfo",
    "a key in pieces": "https://github.com/"
    + "-".join(KEY[at : at + 6] for at in range(0, 23, 6))
    + "-a1B2c3-D4e5F6-g7H8i9",
    "a key in few pieces": "https://github.com/" + "/".join(KEY[at : at + 6] for at in range(0, 23, 6)),
    "a key in the host and the path": f"https://{KEY[:12].lower()}.example.org/{KEY[12:]}",
    "letters as numbers": "https://github.com/?q=" + "-".join(str(ord(char)) for char in "abc def ghi jkl mno pqr stu"),
    "a key in a host name": f"https://{KEY.lower()}.example.org/",
}

MUCH: Final = {
    "a long part": "https://github.com/?q=" + "+".join(["word"] * (LONGEST // 5 + 2)),
    "many parts": "https://github.com/" + "/".join(["word"] * (MOST // 5 + 2)),
}


@each_row("url", ORDINARY)
def test_an_ordinary_address_needs_nobody(url: str) -> None:
    assert suspicion(url, seen()) is None


@each_row("url", CARRIED.values(), ids=CARRIED)
def test_text_of_the_root_is_asked_about(url: str) -> None:
    reason = suspicion(url, seen())
    assert reason is not None
    assert reason.startswith("the address carries text from the root, ")


@each_row("name", [name for name in CARRIED if not re.search("base|key|85", name)])
def test_the_same_words_mean_nothing_where_they_were_not_read(name: str) -> None:
    reason = suspicion(CARRIED[name], seen(read=()))
    assert "text from the root" not in (reason or "")


@each_row("url", UNREADABLE.values(), ids=UNREADABLE)
def test_a_string_without_words_is_asked_about(url: str) -> None:
    reason = suspicion(url, seen(read=()))
    assert reason is not None
    assert reason.startswith("the address carries ")


@pytest.mark.parametrize("url", MUCH.values(), ids=MUCH)
def test_much_is_asked_about(url: str) -> None:
    assert (suspicion(url, seen()) or "").startswith("the path and query of the address carry ")


def test_text_that_is_encoded_again_and_again_is_asked_about() -> None:
    url = "https://github.com/?q=%" + "25" * 12 + "41"
    assert "percent-encoded more than" in (suspicion(url, seen()) or "")


@each_row("url", [*CARRIED.values(), *UNREADABLE.values(), *MUCH.values()])
def test_an_address_that_the_person_typed_is_decided(url: str) -> None:
    assert suspicion(url, seen(typed=f"Please look at {url}.")) is None


@pytest.mark.parametrize("where", ["typed", "fetched"])
def test_a_digest_that_is_no_secret_may_be_asked_for(where: str) -> None:
    known = seen(typed=f"commit {DIGEST}") if where == "typed" else seen(fetched=f"/commit/{DIGEST}")
    assert suspicion(UNREADABLE["a digest"], known) is None


def test_a_digest_that_stands_in_a_note_is_asked_about() -> None:
    assert suspicion(UNREADABLE["a digest"], seen(read=(f"commit {DIGEST}",))) is not None


@pytest.mark.parametrize("written", [str, lambda link: link.removeprefix("https://")], ids=["whole", "without https"])
def test_a_link_that_stands_in_a_note_may_be_followed_and_gone_on_from(written: Callable[[str], str]) -> None:
    link = "https://github.com/greenhouse-builders/weighing-potting-benches"
    known = seen(read=(f"See [the project]({written(link)}) for more.",))
    assert suspicion(link, known) is None
    assert suspicion(f"{link}/blob/main/README.md", known) is None


def test_a_result_that_failed_says_nothing_of_the_root() -> None:
    texts = SeenText()
    texts.apply(ended("read_file", SECRET, ok=False))
    assert suspicion(CARRIED["words in a query"], texts) is None


@pytest.mark.parametrize("kind", ["timeout", "resource_limit"])
def test_output_before_a_failure_is_private_too(kind: Literal["timeout", "resource_limit"]) -> None:
    found, printed = SeenText(), SeenText()
    found.apply(CallEnded(1, "c", "search_files", False, f"Found so far: {SECRET}", kind=kind))
    printed.apply(CallEnded(1, "c", "exec_shell", False, "It was killed.", kind=kind, details={"stdout": SECRET}))
    assert suspicion(CARRIED["words in a query"], found) is not None
    assert suspicion(CARRIED["words in a query"], printed) is not None


def test_a_file_that_an_editor_sent_along_is_private_too() -> None:
    question: dict[str, Any] = {"type": "text", "text": "What is this? https://github.com/o/r"}
    files = [{"type": "resource", "resource": {"uri": "file:///a.md", "text": text}} for text in (SECRET, KEY)]
    known = seen(read=(), typed="".join(part.text for part in prompt_parts([question, *files])))
    assert "text from the root" in (suspicion(CARRIED["words in a query"], known) or "")
    assert suspicion(UNREADABLE["a token"], known) is not None
    assert suspicion("https://github.com/o/r", known) is None


def test_an_address_that_was_declined_once_is_asked_about_again() -> None:
    known = seen(read=(f"key: {KEY}",))
    for url in (UNREADABLE["a token"], f"https://{KEY}_.example.org/"):
        why = suspicion(url, known) or "The host {url} is no name."
        known.apply(CallEnded(1, "c", "fetch_url", False, f"fetch_url was not run: {why} {url}", kind="denied"))
    assert suspicion(UNREADABLE["a token"], known) is not None


def test_results_of_a_search_are_private_too() -> None:
    texts = SeenText()
    texts.apply(ended("search_files", f'[{{"path":"a.md","line":1,"text":"{SECRET}"}}]'))
    assert suspicion(CARRIED["words in a query"], texts) is not None


def test_a_run_that_is_shorter_than_some_words_is_not_asked_about() -> None:
    run = re.sub(r"\W+", "", SECRET)[: VERBATIM - 1]
    assert "root" not in (suspicion(f"https://github.com/?q={run[:12]}-{run[12:]}", seen()) or "")
    run = re.sub(r"\W+", "", SECRET)[:VERBATIM]
    assert "root" in (suspicion(f"https://github.com/?q={run[:12]}-{run[12:]}", seen()) or "")


@each_row("start", range(30))
def test_a_run_is_found_wherever_it_begins(start: int) -> None:
    run = re.sub(r"\W+", "", SECRET)[start : start + VERBATIM]
    url = f"https://github.com/?q={'zq-' * (start % 7)}{run[:9]}-{run[9:]}-zq"
    assert "root" in (suspicion(url, seen()) or "")


def test_text_that_is_no_longer_remembered_cannot_be_ruled_out() -> None:
    known = seen(read=(SECRET, "a b " * (KEPT // 4)))
    assert known.forgot
    assert suspicion("https://github.com/?q=" + quote(SECRET[:40]), known) is not None
    assert suspicion("https://github.com/o/r", known) is None


def test_a_text_made_to_be_slow_to_compare_with_is_asked_about() -> None:
    known = seen(read=(("x" * (VERBATIM - 1) + "y ") * 20_000,))
    assert suspicion(f"https://github.com/{'z' * 11}/{'x' * 12}/{'z' * 12}", known) is not None


def test_a_character_that_stands_for_a_sentence_makes_no_text_longer_than_three_times() -> None:
    assert len(comparable("\ufdfa" * 100)) <= 300


def test_text_of_the_web_of_long_ago_is_no_longer_known() -> None:
    known = seen(fetched=f"/commit/{DIGEST}")
    for _ in range(3):
        known.apply(ended("fetch_url", "a b " * 2**17))
    assert suspicion(UNREADABLE["a digest"], known) is not None


@each_row("url", ["", "nonsense", "ftp://github.com/", f"https://user:{KEY}@github.com/", "https://1.2.3.4"])
def test_text_that_is_no_address_is_left_to_the_tool(url: str) -> None:
    assert suspicion(url, seen()) is None


@each_row("arguments", ["", "null", "[]", '{"url": 7}', "{", '{"url": "\\ud800"}', "[" * 100_000])
def test_arguments_that_cannot_be_read_are_left_to_the_tool(arguments: str) -> None:
    assert judge(PROFILE, "fetch_url", arguments, seen()).decision == "allow"


PROFILE: Final = Profile("vault", "/x", ("read_file", "fetch_url"))


def json_of(url: str) -> str:
    return f'{{"url": "{url}"}}'


def test_policy_asks_and_says_why() -> None:
    decided = judge(PROFILE, "fetch_url", f'{{"url": "{CARRIED["words in a query"]}"}}', seen())
    assert decided.decision == "ask"
    assert "which would leave this machine" in decided.reason


def test_a_second_key_cannot_hide_the_address() -> None:
    arguments = f'{{"url": "https://github.com/", "url": "{CARRIED["words in a query"]}"}}'
    assert judge(PROFILE, "fetch_url", arguments, seen()).decision == "ask"
    turned = f'{{"url": "{CARRIED["words in a query"]}", "url": "https://github.com/"}}'
    assert judge(PROFILE, "fetch_url", turned, seen()).decision == "allow"


def test_a_profile_without_the_tool_still_denies() -> None:
    profile = Profile("x", "/x", ("read_file",))
    assert judge(profile, "fetch_url", '{"url": "https://github.com/"}', seen()).decision == "deny"


def test_a_profile_that_asks_anyway_does_not_hide_why() -> None:
    profile = Profile("x", "/x", ("fetch_url",), own_ask=("fetch_url",))
    assert "text from the root" in judge(profile, "fetch_url", json_of(CARRIED["words in a query"]), seen()).reason
    assert judge(profile, "fetch_url", json_of("https://github.com/"), seen()).reason.startswith("profile x asks")
