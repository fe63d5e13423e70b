"""The content that a fetch returns, and the request that it sends."""

from typing import Any, NamedTuple

import pytest

from tests.workers.web.conftest import OpenWeb, Web
from workers.wire import messages


def page(text: str, kind: str = "text/plain", **more: Any) -> dict[str, Any]:
    return {"headers": {"content-type": kind}, "body": {"text": text}, **more}


def to(location: str, status: int = 302) -> dict[str, Any]:
    return {"status": status, "headers": {"location": location}, "body": {"text": ""}}


AS_IT_IS = [
    ("text/plain", "a <b>bold</b> claim"),
    ("text/markdown; charset=utf-8", "# Title"),
    ("text/x-elixir", "def x, do: 1"),
    ("application/json", '{"a": [1, 2]}'),
    ("application/vnd.api+json", '{"a": 1}'),
    ("application/xml", "<a>b</a>"),
    ("image/svg+xml", "<svg/>"),
    ("application/yaml", "a: 1"),
    ("application/toml", "a = 1"),
    ("Application/JavaScript", "let a = 1"),
    ("text/css", "a { }"),
]


@pytest.mark.parametrize(("kind", "text"), AS_IT_IS, ids=[kind for kind, _ in AS_IT_IS])
def test_text_stays_as_it_is(kind: str, text: str, web: Web) -> None:
    web.server.play({"github.com/x": page(text, kind)})
    answer = web.done("https://github.com/x")
    assert (answer.content, answer.form, answer.note) == (text, "text", "")


@pytest.mark.parametrize(
    "kind", ["application/octet-stream", "image/png", "application/pdf", "application/zip", "video/mp4", "font/woff2"]
)
def test_anything_else_is_refused_with_its_type(kind: str, web: Web) -> None:
    web.server.play({"github.com/x": page("bytes", kind)})
    web.declined("https://github.com/x", "not_text", kind)


def test_a_binary_that_claims_to_be_text_is_refused(web: Web) -> None:
    web.server.play({"github.com/x": {"body": {"b64": "AAECAwQF/w=="}}})
    web.declined("https://github.com/x", "not_text")


HTML = "text/html; charset=utf-8"
SEEN = [
    (
        page("<title>Enum</title><h1>Enum</h1><p>Lazy <a href='/s?q#at'>streams</a>.<script>x()</script>", HTML),
        "# Enum\n\nLazy [streams](https://github.com/s?q#at).",
    ),
    ({"headers": {"content-type": "text/html; charset=bogus-8"}, "body": {"b64": "Y2Fm6Q=="}}, "caf\ufffd"),
    (page("a\x1b[31mred\x07\r\nb\rc\td\x7f\u009b"), "a\ufffd[31mred\ufffd\nb\nc\td\ufffd\ufffd"),
    (page("<p>a&#27;[31m&#x80;&#xD800;b", "text/html"), "a\ufffd[31m\u20ac\ufffdb"),
]
IDS = ["HTML becomes Markdown", "an unknown charset counts as UTF-8", "control characters", "those in HTML"]


@pytest.mark.parametrize(("given", "seen"), SEEN, ids=IDS)
def test_a_page_becomes_harmless_text(given: dict[str, Any], seen: str, web: Web) -> None:
    web.server.play({"github.com/x": given})
    assert web.text("https://github.com/x") == seen


@pytest.mark.parametrize(("text", "seen"), [("<!DOCTYPE html><p>x", "x"), ("<p>x", "<p>x")])
def test_without_a_type_a_page_that_begins_as_html_is_html(text: str, seen: str, web: Web) -> None:
    raw = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    web.server.play({"github.com/x": {"body": {"raw": raw}}})
    assert web.text("https://github.com/x") == seen


def test_a_long_text_comes_in_parts_that_make_it_whole(web: Web) -> None:
    text = "".join(f"line {number}\n" for number in range(12000))
    web.server.play({"github.com/long": page(text)})
    parts, notes, offset = [], [], 0
    while offset < len(text):
        answer = web.done("https://github.com/long", offset)
        parts.append(answer.content)
        notes.append(answer.note)
        offset += len(answer.content)
    assert "".join(parts) == text
    assert notes[0] == f"characters 1 to 50000 of {len(text)}; call again with offset=50000"
    assert notes[-1] == f"characters 100001 to {len(text)} of {len(text)}, the end"


def test_reading_on_in_a_page_that_has_changed_reads_what_it_is_now(web: Web) -> None:
    web.server.play({"github.com/x": page(f"<p>{'a' * 60_000}", HTML)})
    web.done("https://github.com/x")
    web.server.play({"github.com/x": page(f"<p>{'b' * 50_002}", HTML)})
    answer = web.done("https://github.com/x", 50_000)
    assert (answer.content, answer.note) == ("bb", "characters 50001 to 50002 of 50002, the end")


def test_an_offset_behind_the_end_is_refused(web: Web) -> None:
    failed = web.failed("https://github.com/x", 2)
    assert failed.kind == "invalid_arguments"
    assert "2 characters" in failed.message


@pytest.mark.parametrize(
    "arguments", [{}, {"url": None}, {"url": ["https://github.com/"]}, {"offset": -1}, {"offset": 2**64}], ids=repr
)
def test_arguments_are_decoded_strictly(arguments: Any, web: Web) -> None:
    url = {"url": "https://github.com/"} if "offset" in arguments else {}
    assert web.worker.failed("fetch_url", url | arguments).kind == "invalid_arguments"


def test_text_that_is_no_url_and_plain_http_are_never_asked_for(web: Web) -> None:
    for url in ("", "github.com", "https://127.0.0.1/", "https://a@github.com/", "https://github.com/ x"):
        web.declined(url, "invalid_arguments")
    web.declined("http://github.com/", "domain_not_allowed", "Domain not allowed")
    assert web.broker.asked == []


def test_plain_http_works_where_it_is_configured(open_web: OpenWeb) -> None:
    web = open_web(http=True, plain=True)
    assert web.text("http://github.com/") == "OK"
    assert web.broker.asked == [("github.com", 80)]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("domain_not_allowed", "Domain not allowed: github.com. There is: example.org."),
        ("address_not_allowed", "private"),
        ("fetch_failed", "no such name"),
        ("timeout", "slow"),
    ],
)
def test_the_model_reads_why_the_broker_declines(kind: messages.ErrorKind, message: str, web: Web) -> None:
    web.broker.refuse["github.com"] = messages.Declined(kind, message)
    failed = web.failed("https://github.com/")
    assert (failed.kind, failed.message) == (kind, message)


def test_a_request_says_nothing_but_what_is_asked_for(web: Web) -> None:
    web.fetch("https://GitHub.com:443/a/../%2e%2e/b;c?d=[1]&e='f'#g")
    (visit,) = web.server.seen()
    assert visit.server_name == "github.com"
    assert visit.lines[0] == "GET /a/../%2e%2e/b;c?d=[1]&e='f' HTTP/1.1"
    assert visit.headers == {
        "host": "github.com",
        "user-agent": "strongroom",
        "accept": "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
        "connection": "close",
    }


def test_another_port_stands_in_the_request(web: Web) -> None:
    web.fetch("https://github.com:8443/x")
    assert web.broker.asked == [("github.com", 8443)]
    assert web.server.seen()[0].headers["host"] == "github.com:8443"


def test_every_fetch_has_a_connection_of_its_own(web: Web) -> None:
    assert [web.text("https://github.com/x") for _ in range(3)] == ["OK"] * 3
    assert len(web.server.seen()) == 3


class Status(NamedTuple):
    status: int
    body: str
    words: tuple[str, ...]


STATUSES = [
    Status(404, "nope", ("404", "nope")),
    Status(403, "", ("403",)),
    Status(500, "<h1>Oops</h1><script>x()</script>", ("500", "Oops")),
    Status(429, "x" * 5000, ("429", "x" * 300 + "...")),
    Status(304, "", ("304",)),
    Status(300, "choose", ("300", "choose")),
    Status(302, "nowhere", ("302", "nowhere")),
]


@pytest.mark.parametrize("row", STATUSES, ids=[str(row.status) for row in STATUSES])
def test_a_status_that_is_no_success_reaches_the_model(row: Status, web: Web) -> None:
    web.server.play(
        {"github.com/x": page(row.body, "text/html" if "<" in row.body else "text/plain", status=row.status)}
    )
    failed = web.failed("https://github.com/x")
    assert failed.kind == "fetch_failed"
    assert failed.details == {"status": row.status}
    assert all(word in failed.message for word in row.words)
    assert "x()" not in failed.message
    assert len(failed.message) < 500


def test_the_status_of_an_error_whose_body_is_broken_reaches_the_model(web: Web) -> None:
    web.server.play({"github.com/x": {"status": 503, "body": {"short": {"declared": 1000, "sent": 10}}}})
    assert web.failed("https://github.com/x").details == {"status": 503}


def test_no_content_is_an_empty_text(web: Web) -> None:
    web.server.play({"github.com/x": page("", status=204)})
    answer = web.done("https://github.com/x")
    assert (answer.content, answer.note) == ("", "the page is empty (status 204)")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed(status: int, web: Web) -> None:
    web.server.play({"github.com/a": to("/b?c", status)})
    answer = web.done("https://github.com/a")
    assert (answer.content, answer.note) == ("OK", "redirected to https://github.com/b?c")


def test_each_redirect_asks_the_broker(web: Web) -> None:
    web.server.play({"github.com/a": to("//raw.githubusercontent.com:8443/b")})
    web.broker.refuse["raw.githubusercontent.com"] = messages.Declined("address_not_allowed", "private")
    web.declined("https://github.com/a", "address_not_allowed")
    assert web.broker.asked == [("github.com", 443), ("raw.githubusercontent.com", 8443)]


def test_an_error_says_that_a_redirect_led_to_it(web: Web) -> None:
    web.server.play({"github.com/a": to("https://evil.example/b")})
    web.broker.refuse["evil.example"] = messages.Declined("domain_not_allowed", "Domain not allowed: evil.example.")
    failed = web.failed("https://github.com/a")
    assert failed.message.startswith("Domain not allowed: evil.example. ")
    assert "(https://github.com/a redirected to https://evil.example/b.)" in failed.message


def test_a_long_address_that_a_server_chose_is_cut(web: Web) -> None:
    web.server.play({"github.com/a": to("/" + "b" * 5000)})
    answer = web.done("https://github.com/a")
    assert answer.note.startswith("redirected to https://github.com/bbb")
    assert len(answer.note) < 300


def test_nothing_is_carried_from_one_redirect_to_the_next(web: Web) -> None:
    headers = {"location": "/b", "set-cookie": "sid=CANARY; Domain=github.com"}
    web.server.play({"github.com/a": {"status": 302, "headers": headers}})
    assert web.text("https://github.com/a") == "OK"
    first, second = web.server.seen()
    assert second.request == first.request.replace(b"/a ", b"/b ")
    web.fetch("https://github.com/c")
    assert b"CANARY" not in web.server.seen()[-1].request


NOT_FOLLOWED = [
    "http://github.com/",
    "http://169.254.169.254/latest/meta-data/",
    "https://127.0.0.1/",
    "https://github.com@evil.com/",
    "file:///etc/passwd",
    "https://github.com:0/",
    "https:///evil.com",
    "/\\evil.com",
    "/a b",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("location", NOT_FOLLOWED)
def test_a_redirect_to_what_is_no_url_is_not_followed(location: str, web: Web) -> None:
    web.server.play({"github.com/a": to(location)})
    web.declined("https://github.com/a", "domain_not_allowed", "Domain not allowed")
    assert web.broker.asked == [("github.com", 443)]


def test_two_locations_are_none(web: Web) -> None:
    headers = [["location", "/b"], ["location", "https://evil.com/"]]
    web.server.play({"github.com/a": {"status": 302, "headers": headers}})
    web.declined("https://github.com/a", "domain_not_allowed")


@pytest.mark.parametrize(("hops", "arrives"), [(5, True), (6, False)])
def test_at_most_five_redirects_are_followed(hops: int, arrives: bool, web: Web) -> None:
    web.server.play({f"github.com/{hop}": to(f"/{hop + 1}") for hop in range(hops)})
    answer = web.fetch("https://github.com/0")
    assert isinstance(answer, messages.Done) == arrives
    assert arrives or (isinstance(answer, messages.Failed) and answer.kind == "fetch_failed")


@pytest.mark.parametrize("way", [{"a": "/a"}, {"a": "/b", "b": "/a"}, {"a": "#again"}, {"a": "/c/../a"}])
def test_a_redirect_in_a_circle_ends(way: dict[str, str], web: Web) -> None:
    web.server.play({f"github.com/{name}": to(location) for name, location in way.items()})
    web.declined("https://github.com/a", "fetch_failed", "circle")
    assert len(web.broker.asked) == len(way)
