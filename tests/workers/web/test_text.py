"""From bytes to text for a reader: compression, charsets, Markdown and what stands in for it. Pure."""

import gc
import gzip
import zlib
from collections.abc import Iterator
from functools import partial

import pytest
from bs4 import BeautifulSoup

from workers.url import parse
from workers.web.charset import CODECS, text_of
from workers.web.content import harmless
from workers.web.html_to_flat_text import flat_text
from workers.web.html_to_markdown import DEEPEST, LONGEST_PAGE, LONGEST_TAG, MOST_INDENTED, MOST_TAGS, markdown
from workers.web.inflate import BadBody, decoded

URL = parse("https://hexdocs.pm/elixir/Enum.html?v=1")
DATA = b"hello " * 1000
LIMIT = 2**20


def raw_deflate(data: bytes) -> bytes:
    compress = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compress.compress(data) + compress.flush()


zipped = partial(gzip.compress, mtime=0)
"""The same bytes at any time: they are in the names of tests, which all processes must agree on."""


CODED = [
    ("", DATA),
    ("identity", DATA),
    ("gzip", zipped(DATA)),
    ("x-gzip", zipped(DATA)),
    ("GZIP", zipped(DATA)),
    ("deflate", zlib.compress(DATA)),
    ("deflate", raw_deflate(DATA)),
    ("gzip, gzip", zipped(zipped(DATA))),
    ("deflate, gzip", zipped(zlib.compress(DATA))),
    ("identity, gzip", zipped(DATA)),
    ("gzip", zipped(DATA[:999]) + zipped(DATA[999:])),
    ("gzip", zipped(DATA) + bytes(100)),
]


@pytest.mark.parametrize("size", [1, 7, 10**6])
@pytest.mark.parametrize(("codings", "data"), CODED)
def test_a_body_comes_out_as_it_was(codings: str, data: bytes, size: int) -> None:
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    assert b"".join(decoded(pieces, codings, LIMIT)) == DATA


UNFIT = [
    ("br", DATA, BadBody),
    ("gzip, br", DATA, BadBody),
    ("gzip", DATA, BadBody),
    ("deflate", b"\x78\x9c" + DATA, BadBody),
    ("gzip", zipped(DATA)[:-1], BadBody),
    ("deflate", zlib.compress(DATA)[:-1], BadBody),
    ("gzip", zipped(DATA) + b"more", BadBody),
    ("gzip, gzip, gzip", zipped(zipped(zipped(DATA))), BadBody),
    ("gzip", zipped(bytes(LIMIT + 1)), OverflowError),
    ("deflate", zlib.compress(bytes(LIMIT + 1)), OverflowError),
    ("gzip, gzip", zipped(zipped(b"") * (LIMIT // 20 + 1)), OverflowError),
]


@pytest.mark.parametrize(("codings", "data", "error"), UNFIT)
def test_a_body_that_is_not_what_it_says_or_makes_more_than_the_limit_at_a_step_is_refused(
    codings: str, data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        b"".join(decoded([data], codings, LIMIT))


def test_the_rest_of_a_bomb_is_not_read() -> None:
    data = zipped(bytes(64 * LIMIT))
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for at in range(0, len(data), 100):
            read += 100
            yield data[at : at + 100]

    with pytest.raises(OverflowError):
        b"".join(decoded(pieces(), "gzip", LIMIT))
    assert read < len(data) / 32


CHARSETS = [
    ("utf-8", "caf\u00e9 \u20ac".encode(), "caf\u00e9 \u20ac"),
    ("UTF8", "\u00e9".encode(), "\u00e9"),
    ("iso-8859-1", b"caf\xe9 \x80", "caf\u00e9 \u20ac"),
    ("windows-1251", "\u043f\u0440".encode("cp1251"), "\u043f\u0440"),
    ("koi8-r", "\u043f\u0440".encode("koi8-r"), "\u043f\u0440"),
    ("shift_jis", "\u65e5\u672c".encode("cp932"), "\u65e5\u672c"),
    ("euc-jp", "\u65e5\u672c".encode("euc_jp"), "\u65e5\u672c"),
    ("iso-2022-jp", "\u65e5\u672c".encode("iso2022_jp"), "\u65e5\u672c"),
    ("gbk", "\u4e2d".encode("gbk"), "\u4e2d"),
    ("big5", "\u4e2d".encode("big5"), "\u4e2d"),
    ("euc-kr", "\ud55c".encode("euc_kr"), "\ud55c"),
    ("utf-16", "h\u00e9".encode("utf-16-le"), "h\u00e9"),
    ("", b"\xef\xbb\xbfhi", "hi"),
    ("iso-8859-1", "\ufeffh\u00e9".encode(), "h\u00e9"),
    ("", "\ufeffh\u00e9".encode("utf-16-be"), "h\u00e9"),
    ("", b"caf\xe9", "caf\ufffd"),
    ("bogus-8", b"caf\xe9", "caf\ufffd"),
    ("unicode_escape", b"\\x41", "\\x41"),
    ("raw_unicode_escape", b"\\u0041", "\\u0041"),
    ("rot13", b"uryyb", "uryyb"),
    ("zlib", b"x", "x"),
    ("idna", b"xn--x", "xn--x"),
    ("punycode", b"x-", "x-"),
    ("utf-7", b"+AGE-", "+AGE-"),
    ("undefined", b"x", "x"),
    ("mbcs", b"x", "x"),
]


@pytest.mark.parametrize(("name", "data", "text"), CHARSETS)
def test_a_charset_of_the_table_is_used_and_no_other(name: str, data: bytes, text: str) -> None:
    assert text_of(data, name, markup=False) == text


MARKUP = [
    (b"<meta charset=koi8-r><p>\xd0", "\u043f"),
    (b"<META http-equiv=content-type content='text/html; CHARSET=\"koi8-r\"'>\xd0", "\u043f"),
    (b"<?xml version='1.0' encoding='koi8-r'?>\xd0", "\u043f"),
    (b"<meta charset=utf-16><p>h\xc3\xa9", "h\u00e9"),
    (b"<meta charset=zlib><p>h\xc3\xa9", "h\u00e9"),
    (b" " * 2000 + b"<meta charset=koi8-r>\xd0", "\ufffd"),
]


@pytest.mark.parametrize(("data", "end"), MARKUP)
def test_markup_may_name_its_charset_at_its_start(data: bytes, end: str) -> None:
    assert text_of(data, "", markup=True).endswith(end)


def test_a_declared_charset_comes_first_and_plain_text_names_none() -> None:
    assert text_of(b"<meta charset=koi8-r>\xe9", "latin1", markup=True).endswith("\u00e9")
    assert text_of(b"<meta charset=koi8-r>\xd0", "", markup=False).endswith("\ufffd")


@pytest.mark.parametrize("codec", sorted(set(CODECS.values())))
def test_every_charset_reads_any_bytes(codec: str) -> None:
    assert text_of(bytes(range(256)) * 3, codec, markup=False)


def test_half_of_a_pair_and_controls_are_made_harmless() -> None:
    assert harmless("a\ud800b\x00\x1b\u0085\x7f\tc\r\nd\re") == "a\ufffdb\ufffd\ufffd\ufffd\ufffd\tc\nd\ne"


MARKDOWN = [
    ("a heading", "<h2>Two</h2><p>text", "## Two\n\ntext"),
    ("the title on top", "<title> A  b </title><p>text", "# A b\n\ntext"),
    ("one title", "<title>A - site</title><h1>A</h1><p>text", "# A\n\ntext"),
    ("emphasis", "<p>a <b>b</b> <em>c</em> <code>d_e*f</code> x_y*z", "a **b** *c* `d_e*f` x_y*z"),
    ("links", "<a href='../a'>a</a> <a href='#x'>b</a>", "[a](https://hexdocs.pm/a) b"),
    ("links that lead nowhere", "<a href='javascript:x()'>a</a> <a href='mailto:b@c'>b</a>", "a b"),
    ("a base", "<base href='https://github.com/x/'><a href='y'>a</a>", "[a](https://github.com/x/y)"),
    ("two bases", "<base href='https://github.com/'><base href='/x/'><a href='y'>a</a>", "[a](https://github.com/y)"),
    ("lists", "<ul><li>a<li>b<ul><li>c</ul></ul><ol start=3><li>d</li></ol>", "- a\n- b\n  - c\n\n3. d"),
    ("terms", "<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n:   b\n\nc\n:   d"),
    ("a table", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ("code", "<pre><code class='language-elixir'>a\n  b</code></pre>", "```elixir\na\n  b\n```"),
    ("lines of code in elements", "<pre><code><b>a\n</b>\n<i>b</i></code></pre>", "```\na\n\nb\n```"),
    ("lines of text in elements", "<p><span>a\n</span>\nb", "a\nb"),
    ("images", "<img src='/a.png' alt='A'><img src='/pixel.gif'>", "![A](https://hexdocs.pm/a.png)"),
    ("noise", "<nav>n</nav><script>s</script><style>t</style><p>text<footer>f</footer>", "text"),
    ("noise in noise", "<nav><nav>a</nav><a href='x'>b</a><script>c</script></nav><p>d", "d"),
    ("hidden text", "<p hidden>a</p><p aria-hidden=true>b</p><p>c", "c"),
    ("comments", "<p>a<!-- b --><?c?><!d>e", "ae"),
    ("the main part", "<div>menu</div><main><p>text</main><div>more</div>", "text"),
    ("a main part that is hidden", "<div hidden><main>a</main></div><main>b</main>c", "b"),
    ("several main parts", "<main>a</main><main>b</main>", "ab"),
    ("an empty main part", "<div>a</div><main></main>", "a"),
    ("paragraphs without ends", "<p>a<p>b<p>c", "a\n\nb\n\nc"),
    ("entities", "<p>&lt;b&gt; &amp; &#x41;", "<b> & A"),
    ("a list that starts nowhere", "<ol start=\u00b2><li>a</ol>", "1. a"),
    ("a cell that spans", "<table><tr><th colspan=3>a<tr><td>1</table>", "| a |\n| --- |\n| 1 |"),
    ("nothing", "", ""),
]


@pytest.mark.parametrize(("name", "html", "text"), MARKDOWN, ids=[name for name, _, _ in MARKDOWN])
def test_html_becomes_markdown(name: str, html: str, text: str) -> None:
    assert markdown(html, URL, 5.0)[0] == text


FLAT = [
    ("blocks", "<h1>One</h1><p>a <b>b</b>\n c<br>d", "One\n\na b\nc\nd"),
    ("silent elements", "a<script>if (a<b) x()</script>b<STYLE>c</style >d", "a\nb\nd"),
    ("a script that does not end", "a<script>b", "a"),
    ("comments", "a<!-- <p>b -->c<!-->d", "ac"),
    ("brackets", "a < b <3 <", "a < b <3 <"),
    ("a tag that does not end", "a<p b", "a"),
    ("entities", "&lt;b&gt; &amp;amp;", "<b> &amp;"),
    ("declarations", "<!DOCTYPE html><?xml?>a", "a"),
]


@pytest.mark.parametrize(("name", "html", "text"), FLAT, ids=[name for name, _, _ in FLAT])
def test_flat_text_has_the_words(name: str, html: str, text: str) -> None:
    assert flat_text(html)[0] == text


BIG = [
    ("tags", "<b>x</b>" * (MOST_TAGS // 2 + 1)),
    ("characters", "<b>x</b>" + "y" * LONGEST_PAGE),
    ("one tag", "<b " + "y" * LONGEST_TAG + ">x</b>"),
    ("depth", "<b>x</b>" + "<div>" * (DEEPEST + 1)),
    ("lists in lists", "<b>x</b>" + "<ul><li>" * (MOST_INDENTED + 1)),
    ("quotes in quotes", "<b>x</b>" + "<blockquote>" * (MOST_INDENTED + 1)),
]


@pytest.mark.parametrize(("name", "html"), BIG, ids=[name for name, _ in BIG])
def test_a_page_that_is_too_big_for_a_tree_is_flat(name: str, html: str) -> None:
    assert "**" in markdown(html[:8] if name != "one tag" else "<b>x</b>", URL, 5.0)[0]
    assert "**" not in markdown(html, URL, 5.0)[0]


def test_a_page_that_takes_too_long_is_flat() -> None:
    assert markdown("<blockquote>" * 20 + "<b>x</b><br>" * 9000, URL, 0.05)[0].split() == ["x"] * 9000


def test_the_tree_of_a_page_that_is_too_deep_is_freed_before_its_text_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    trees: list[int] = []

    def counting(_page: str) -> tuple[str, str]:
        trees.append(sum(isinstance(each, BeautifulSoup) for each in gc.get_objects()))
        return "the text", ""

    monkeypatch.setattr("workers.web.html_to_markdown.flat_text", counting)
    assert markdown("<div>" * (DEEPEST + 1), URL, 5.0) == ("the text", "")
    assert trees == [0]
