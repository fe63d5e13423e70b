"""The identity of the server: its certificate proves it for the requested name, or there is no page."""

import pytest

from tests.workers.web.conftest import OpenWeb, Web

FAULTS = [
    ("wrong_name", "its certificate is for another name"),
    ("name_is_ip", "its certificate is for another name"),
    ("expired", "its certificate has expired"),
    ("self_signed", "its certificate is signed by itself"),
    ("untrusted_ca", "its certificate is signed by an authority that is not trusted"),
    ("tls10_only", "TLS failed"),
]


@pytest.mark.parametrize(("fault", "words"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_a_server_that_cannot_prove_its_name_is_not_asked_and_the_next_one_is(fault: str, words: str, web: Web) -> None:
    web.server.play({}, fault=fault)
    failed = web.failed("https://github.com/secret-path")
    assert failed.kind == "fetch_failed"
    assert f"No secure connection to github.com: {words}" in failed.message
    assert [visit.request for visit in web.server.seen()] == [b""]
    web.server.play({})
    assert web.text("https://github.com/") == "OK"


def test_a_server_that_speaks_no_tls_is_told_nothing(open_web: OpenWeb) -> None:
    web = open_web(plain=True)
    web.late("https://github.com/secret-path")
    (visit,) = web.server.seen()
    assert b"secret-path" not in visit.plaintext + visit.request


@pytest.mark.parametrize("host", ["xn--bcher-kva.example", "a.b.c.d.example", "github.com."])
def test_the_name_in_tls_is_the_host(host: str, web: Web) -> None:
    assert web.text(f"https://{host}/") == "OK"
    assert [visit.server_name for visit in web.server.seen()] == [host.rstrip(".")]


def test_a_redirect_is_proven_for_its_own_name(web: Web) -> None:
    web.server.play({"github.com/a": {"status": 302, "headers": {"location": "https://hexdocs.pm/b"}}})
    assert web.text("https://github.com/a") == "OK"
    assert [visit.server_name for visit in web.server.seen()] == ["github.com", "hexdocs.pm"]
