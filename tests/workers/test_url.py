"""The grammar of URLs, over the shared corpus and beyond it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus_rows import value
from tests.each_row import each_row
from workers.url import LENGTH, Url, UrlError, host_name, join, parse

CORPUS = json.loads((Path(__file__).parent.parent / "corpus/urls.json").read_text())
CASES = [case for case in CORPUS["cases"] if case["class"] != "type"]
NEVER_A_URL = {"userinfo", "scheme", "malformed", "control"}
"""Classes whose rows no grammar lets through, whatever is on the list."""


def judged(text: str) -> Url | None:
    try:
        return parse(text)
    except UrlError:
        return None


@each_row("case", CASES, ids=[case["id"] for case in CASES])
def test_a_url_of_the_corpus_that_is_denied_is_none_or_leads_elsewhere(case: dict[str, Any]) -> None:
    url = judged(str(value(case["url"])))
    if case["expect"] == "allow" or "setup" in case:
        assert url is not None
    elif case["expect"] == "deny" and case["class"] in NEVER_A_URL:
        assert url is None or url.host not in CORPUS["allowlist"]
    elif case["expect"] == "deny":
        assert url is None or url.host not in CORPUS["allowlist"] or url.port != 443


ADDRESSES = [case for case in CASES if case["class"] == "ip_literal" and not case["url"].rstrip("/")[-1].isalpha()]


@each_row("case", ADDRESSES, ids=[case["id"] for case in ADDRESSES])
def test_no_form_of_an_address_is_a_url(case: dict[str, Any]) -> None:
    assert judged(case["url"]) is None


NORMAL = [
    ("https://GitHub.com/Org/Repo", "https://github.com/Org/Repo"),
    ("HTTPS://github.com/x", "https://github.com/x"),
    ("https://github.com", "https://github.com/"),
    ("https://github.com?a=b", "https://github.com/?a=b"),
    ("https://github.com:443/x", "https://github.com/x"),
    ("http://github.com:80/x", "http://github.com/x"),
    ("http://github.com:443/x", "http://github.com:443/x"),
    ("https://github.com:8443/x", "https://github.com:8443/x"),
    ("https://github.com./x", "https://github.com/x"),
    ("https://github.com/a/../b", "https://github.com/a/../b"),
    ("https://github.com/%2e%2e/%2F", "https://github.com/%2e%2e/%2F"),
    ("https://github.com/a?b=c&d=%20e#frag", "https://github.com/a?b=c&d=%20e"),
    (
        "https://github.com/@name/a:b?u=https://evil.com/&v=a@b",
        "https://github.com/@name/a:b?u=https://evil.com/&v=a@b",
    ),
    ("https://github.com/x?a[]=1&b='", "https://github.com/x?a[]=1&b='"),
    ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
    ("https://1password.com/", "https://1password.com/"),
    ("https://localhost/", "https://localhost/"),
    ("https://a.b--c.d/", "https://a.b--c.d/"),
]


@each_row(("text", "normal"), NORMAL)
def test_a_url_has_one_normal_form(text: str, normal: str) -> None:
    assert str(parse(text)) == normal
    assert str(parse(normal)) == normal


REFUSED = [
    ("https://github.com/caf\u00e9", "percent-encode"),
    ("https://github.com/a b", "percent-encode"),
    ("https://github.com/a\x00b", "percent-encode"),
    ("https://github.com/a\\b", "percent-encode"),
    ("https://github.com/{id}", "percent-encode"),
    ("https://github.com/\ud800", "percent-encode"),
    ("https://github.com/100%", "%25"),
    ("https://github.com/%zz", "%25"),
    ("https://github.com/?q=%2", "%25"),
    ("https://git\u212aub.com/", "plain ASCII"),
    ("https://u:p@github.com/", "user name"),
    ("https://@github.com/", "user name"),
    ("https://[::1]/", "use the host's name"),
    ("https://[::ffff:127.0.0.1%25lo]/", "use the host's name"),
    ("https://127.0.0.1./", "use the host's name"),
    ("https://1.2.3.0x10/", "use the host's name"),
    ("https://0x/", "use the host's name"),
    ("https://a.0/", "use the host's name"),
    ("https://github.com:/", "leave it out"),
    ("https://github.com:+443/", "leave it out"),
    ("https://github.com:0443/", "leave it out"),
    ("https://github.com:443:443/", "leave it out"),
    ("https://-github.com/", "is not a name"),
    ("https://github-.com/", "is not a name"),
    ("https://git_hub.com/", "is not a name"),
    ("https://" + "a" * 64 + ".com/", "is not a name"),
    ("https://./", "is not a name"),
    ("https://github.com../", "is not a name"),
    ("https://*.github.com/", "is not a name"),
    ("https://github.com%2eevil.com/", "is not a name"),
    ("ftp://github.com/", "only https"),
    ("github.com/x", "only https"),
    ("https:/github.com/", "names no host"),
    ("https:///github.com/", "names no host"),
    ("https://?x", "names no host"),
    ("", "is empty"),
    ("https://github.com/" + "a" * LENGTH, "at most 8192"),
]


@each_row(("text", "advice"), REFUSED, ids=[ascii(text[:40]) for text, _ in REFUSED])
def test_a_refusal_says_what_to_do(text: str, advice: str) -> None:
    with pytest.raises(UrlError, match=advice) as caught:
        parse(text)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_the_longest_url_and_the_longest_name_are_accepted() -> None:
    start = "https://github.com/"
    assert judged(start + "a" * (LENGTH - len(start))) is not None
    assert judged(start + "a" * (LENGTH - len(start) + 1)) is None
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert host_name(longest) == longest
    with pytest.raises(UrlError):
        host_name(longest + "b")


@each_row("text", ["", ".", "a..b", "a b", "a\n", "1.2.3.4", "::1", "[a]", "a:80", "a/b", "\uff41.com"])
def test_a_host_that_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UrlError):
        host_name(text)


def test_a_host_has_one_normal_form() -> None:
    assert [host_name(text) for text in ("GitHub.COM", "github.com.")] == ["github.com"] * 2
    assert host_name("localhost") == "localhost"


# RFC 3986, section 5.4, and what browsers and attackers write.
BASE = "http://a.example/b/c/d;p?q"
REFERENCES = [
    ("g", "http://a.example/b/c/g"),
    ("./g", "http://a.example/b/c/g"),
    ("g/", "http://a.example/b/c/g/"),
    ("/g", "http://a.example/g"),
    ("//g", "http://g/"),
    ("?y", "http://a.example/b/c/d;p?y"),
    ("g?y", "http://a.example/b/c/g?y"),
    ("#s", "http://a.example/b/c/d;p?q"),
    ("g#s", "http://a.example/b/c/g"),
    (";x", "http://a.example/b/c/;x"),
    ("g;x?y#s", "http://a.example/b/c/g;x?y"),
    ("", "http://a.example/b/c/d;p?q"),
    (".", "http://a.example/b/c/"),
    ("./", "http://a.example/b/c/"),
    ("..", "http://a.example/b/"),
    ("../g", "http://a.example/b/g"),
    ("../..", "http://a.example/"),
    ("../../../g", "http://a.example/g"),
    ("/./g", "http://a.example/g"),
    ("/../g", "http://a.example/g"),
    ("g.", "http://a.example/b/c/g."),
    ("..g", "http://a.example/b/c/..g"),
    ("./../g", "http://a.example/b/g"),
    ("./g/.", "http://a.example/b/c/g/"),
    ("g/./h", "http://a.example/b/c/g/h"),
    ("g/../h", "http://a.example/b/c/h"),
    ("g;x=1/../y", "http://a.example/b/c/y"),
    ("g?y/../x", "http://a.example/b/c/g?y/../x"),
    ("https://B.example/", "https://b.example/"),
    ("/.//evil.com", "http://a.example//evil.com"),
    ("/a//../b", "http://a.example/a/b"),
]


@each_row(("reference", "target"), REFERENCES)
def test_a_reference_leads_where_the_standard_says(reference: str, target: str) -> None:
    assert str(join(parse(BASE), reference)) == target


def test_a_reference_keeps_another_port() -> None:
    assert str(join(parse("https://a.example:8443/x"), "/y")) == "https://a.example:8443/y"


@each_row(
    "reference",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http:g",
        "https:/evil.com",
        "///evil.com/",
        "/\\evil.com",
        "\\\\evil.com",
        "//evil.com\\@a.example/",
        "//user@evil.com/",
        "//127.0.0.1/",
        "//[::1]/",
        "/a\r\nX: y",
        " /a",
        "/caf\u00e9",
        "/%zz",
        "g:h",
    ],
)
def test_a_reference_that_leads_to_no_url_is_refused(reference: str) -> None:
    with pytest.raises(UrlError):
        join(parse(BASE), reference)


def test_a_long_reference_makes_no_long_url() -> None:
    with pytest.raises(UrlError, match="at most"):
        join(parse("https://a.example/" + "a" * 4000 + "/"), "b" * 4200)
