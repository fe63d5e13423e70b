"""Bodies and headers that are too large, too slow, or broken: each ends with a kind, and the next fetch works.

The worker has 128 MiB for everything, so what grew with a bomb would end as `resource_limit`.
"""

from typing import Any, NamedTuple

import pytest

from tests.supervisor.command import wait_until
from tests.workers.web.conftest import Web, fresh

GIGABYTE = 2**30


class Bad(NamedTuple):
    name: str
    body: dict[str, Any]
    kind: str
    words: str
    headers: dict[str, str] = {}  # noqa: RUF012 - a tuple's default


def raw(status: str, *headers: str, body: str = "") -> dict[str, str]:
    """Return an answer as it goes over the wire."""
    return {"raw": "\r\n".join((f"HTTP/1.1 {status}", *headers, "", body))}


BODIES = [
    Bad("2 GiB of zeros in gzip", {"gzip_zeros": 2 * GIGABYTE}, "too_large", "4194304"),
    Bad("zeros in deflate", {"deflate_zeros": GIGABYTE // 8}, "too_large", "4194304"),
    Bad("gzip in gzip", {"gzip_nested": [2, GIGABYTE // 8]}, "too_large", "4194304"),
    Bad("gzip ten times", {"gzip_nested": [10, GIGABYTE // 8]}, "fetch_failed", "compressed 10 times"),
    Bad("100 MiB", {"repeat": ["A", 100 * 2**20]}, "too_large", "4194304"),
    Bad("a byte too much", {"repeat": ["A", 4 * 2**20 + 1]}, "too_large", "4194304"),
    Bad("endless chunks", {"chunked_forever": True}, "too_large", "4194304"),
    Bad("10 MiB of headers", {"header_bomb": 10 * 2**20}, "fetch_failed", "did not answer in HTTP"),
    Bad("10 MiB of a chunk's extension", {"chunk_ext_bomb": 10 * 2**20}, "fetch_failed", "did not answer in HTTP"),
    Bad("10 MiB of trailers", {"trailer_bomb": 10 * 2**20}, "fetch_failed", "did not answer in HTTP"),
    Bad("endless answers in between", {"status_1xx_forever": True}, "fetch_failed", "of headers"),
    Bad("a length too short", {"short": {"declared": 1000, "sent": 10}}, "fetch_failed", "received 10 bytes"),
    Bad("no HTTP", {"garbage": True}, "fetch_failed", "did not answer in HTTP"),
    Bad("a chunk of a negative size", {"chunk_size": "-5"}, "fetch_failed", "did not answer in HTTP"),
    Bad("a chunk of a great size", {"chunk_size": "ffffffffffffffff"}, "fetch_failed", "did not answer in HTTP"),
    Bad("a chunk of a huge size", {"chunk_size": "f" * 40}, "fetch_failed", "did not answer in HTTP"),
    Bad("a reset", {"reset_after": 100}, "fetch_failed", "closed the connection too early"),
    Bad("nothing at all", {"raw": ""}, "fetch_failed", "did not answer in HTTP"),
    Bad("HTTP/2", {"raw": "HTTP/2 200\r\n\r\n"}, "fetch_failed", "did not answer in HTTP"),
    Bad("two lengths", raw("200 OK", "Content-Length: 1", "Content-Length: 2", body="ab"), "fetch_failed", ""),
    Bad("another protocol", raw("101 Switching", "Upgrade: x"), "fetch_failed", "in HTTP"),
    Bad("300 headers", raw("200 OK", *(f"X-{number}: 1" for number in range(300))), "fetch_failed", "headers"),
    Bad("a coding that nobody asked for", {"text": "x"}, "fetch_failed", "'br'", {"content-encoding": "br"}),
    Bad("no gzip", {"text": "plain"}, "fetch_failed", "broken", {"content-encoding": "gzip"}),
    Bad("half a gzip", {"b64": "H4sIAAAAAAAC"}, "fetch_failed", "is incomplete", {"content-encoding": "gzip"}),
    Bad("gzip that does not say so", {"b64": "H4sIAAAAAAAC/8tIzcnJBwCGphA2BQAAAA=="}, "fetch_failed", "compressed"),
]


@pytest.mark.parametrize("row", BODIES, ids=[row.name for row in BODIES])
def test_a_bad_answer_ends_with_its_kind(row: Bad, web: Web) -> None:
    web.server.play({"github.com/x": {"headers": {"content-type": "text/plain", **row.headers}, "body": row.body}})
    failed = web.failed("https://github.com/x")
    assert (failed.kind, row.words in failed.message) == (row.kind, True), failed.message
    assert failed.message.isprintable()
    assert len(failed.message) < 500
    assert web.text("https://github.com/next") == "OK"


SLOW = {
    "never": {"never": True},
    "headers that do not end": {"headers_hang": True},
    "headers byte by byte": {"dribble_headers": {"bytes_per_s": 100, "total": 1000}},
    "a body byte by byte": {"dribble": {"bytes_per_s": 100, "total": 1000}},
    "a body that stalls": {"stall_after": 100},
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_a_slow_answer_is_a_timeout(body: dict[str, Any], web: Web) -> None:
    web.server.play({"github.com/x": {"body": body}})
    web.late("https://github.com/x")
    assert web.text("https://github.com/next") == "OK"


def test_a_slow_handshake_and_a_broker_that_says_nothing_are_a_timeout(web: Web) -> None:
    web.server.play({}, fault="hang_in_handshake")
    web.late("https://github.com/x")
    fresh(web).broker.silent.add("github.com")
    web.late("https://github.com/x")


def test_slow_redirects_share_one_limit(web: Web) -> None:
    slow = {"dribble_headers": {"bytes_per_s": 1000, "total": 100}}
    pages = {
        f"github.com/{hop}": {"status": 302, "headers": {"location": f"/{hop + 1}"}, "body": slow} for hop in range(5)
    }
    web.server.play(pages)
    web.late("https://github.com/0")
    assert len(web.broker.asked) < 5
    assert web.text("https://hexdocs.pm/next") == "OK"  # and a connection that came too late is closed


def test_a_late_connection_is_not_used_for_the_next_page(web: Web) -> None:
    web.broker.silent.add("github.com")
    web.late("https://github.com/x")
    wait_until(lambda: web.broker.asked)
    web.broker.answer_late()
    assert web.text("https://hexdocs.pm/y") == "OK"
    late, used = web.server.seen()
    assert (late.request, late.server_name, used.server_name) == (b"", None, "hexdocs.pm")


def test_an_error_that_dribbles_is_told_with_its_status(web: Web) -> None:
    web.server.play({"github.com/x": {"status": 404, "body": {"stall_after": 10}}})
    assert web.failed("https://github.com/x", left_s=2.0).details == {"status": 404}


PAGES = [
    ("nested 100,000 deep", "<div>" * 100_000 + "hello" + "</div>" * 100_000),
    ("nested 300 deep", "<b>" * 300 + "hello"),
    ("comments that do not end", "hello" + "<!--" * 500_000),
    ("tags that do not end", "hello" + "<a" * 1_000_000),
    ("sections that do not end", "hello" + "<![CDATA[" * 39_000),
    ("instructions that do not end", "hello" + "<?x" * 39_000),
    ("declarations that do not end", "hello" + "<!x" * 39_000),
    ("nothing but brackets", "hello" + "<" * 2_000_000),
    ("attributes", "<a " + "a=b " * 700_000 + ">hello</a>"),
    ("many tags with many attributes", ("<a " + "b " * 30_000 + ">hello</a>") * 20),
    ("end tags", "<div>" * 150 + "hello" + "</x>" * 39_000),
    ("a wide table", "<table>hello" + ("<tr>" + "<td colspan=1000 rowspan=1000>x" * 10) * 2000),
    ("lists in lists", "<ul><li>hello" * 2000),
    ("quotes around much", "<blockquote>" * 100 + "hello<br>" * 10_000),
    ("character references", "hello" + "&amp" * 500_000),
    ("spaces", "<p>hello" + " " * 2_000_000 + "x"),
    ("a list that starts far away", "<ol start=99999999999999999999999><li>hello"),
    ("a list that starts nowhere", "<ol start=²><li>hello"),
    ("a million short lines", "hello" + "<p>x" * 1_000_000),
    ("a tag that the library takes for its own", "<_document_><soup>hello</soup>"),
]


@pytest.mark.parametrize(("name", "html"), PAGES, ids=[name for name, _ in PAGES])
def test_a_hostile_page_becomes_text(name: str, html: str, web: Web) -> None:
    web.server.play({"github.com/x": {"headers": {"content-type": "text/html"}, "body": {"text": html}}})
    assert "hello" in web.done("https://github.com/x", left_s=4.0).content
