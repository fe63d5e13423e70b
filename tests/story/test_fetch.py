"""An operator lets the agent read a site of their own: config.toml, the command line, TLS on loopback."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.authority import Authority
from tests.supervisor.command import Done, Strongroom
from tests.web_server import WebServer

CONFIG: Final = """
[profiles.reader]
root = "."
tools = ["fetch_url"]
[web]
"""
CA: Final = 'ca_file = "ca.pem"'

Configure = Callable[[str], None]
Fetch = Callable[[str], Done]


@pytest.fixture(scope="module")
def running() -> Iterator[WebServer]:
    with WebServer(Authority()) as server:
        yield server


@pytest.fixture
def server(running: WebServer) -> WebServer:
    running.play({})
    return running


@pytest.fixture
def configure(strongroom: Strongroom, server: WebServer) -> Configure:
    """Write config.toml, beside the certificate of the server's authority."""

    def write(web: str) -> None:
        strongroom.configure(CONFIG + web)
        server.authority.write(strongroom.home / "ca.pem")

    return write


@pytest.fixture
def fetch(strongroom: Strongroom) -> Fetch:
    (strongroom.folder / "empty").mkdir()

    def call(url: str) -> Done:
        return strongroom.run("call", "fetch_url", f'{{"url": "{url}"}}', "--profile", "reader", "--root", "empty")

    return call


def ours(server: WebServer) -> str:
    return f'allow = ["docs.example.org"]\nresolve = {{ "docs.example.org:443" = "{server.address}" }}\n'


def test_a_page_of_an_own_site_is_read(server: WebServer, configure: Configure, fetch: Fetch) -> None:
    server.play({"docs.example.org/a?b=c": {"body": {"text": "hello"}}})
    configure(ours(server) + CA)
    done = fetch("https://docs.example.org/a?b=c")
    assert (done.code, done.json["content"]) == (0, "hello")
    (visit,) = server.seen()
    assert (visit.server_name, visit.target, visit.lines[0][:4]) == ("docs.example.org", "/a?b=c", "GET ")


REFUSED: Final = {
    "a certificate that nobody signed for us": ("{ours}", "https://docs.example.org/", "fetch_failed", "", [b""]),
    "another site": (
        *("{ours}{ca}", "https://github.com/", "domain_not_allowed"),
        *("Domain not allowed: github.com. Allowed: docs.example.org.", []),
    ),
    "a name that leads to this machine": (
        *('allow = ["localhost"]\nports = [{port}]\n{ca}', "https://localhost:{port}/", "address_not_allowed"),
        *("loopback", []),
    ),
}


@pytest.mark.parametrize(("web", "url", "kind", "words", "seen"), REFUSED.values(), ids=REFUSED)
def test_a_fetch_is_refused_with_its_kind(
    web: str, url: str, kind: str, words: str, seen: list[bytes], server: WebServer, configure: Configure, fetch: Fetch
) -> None:
    configure(web.format(ours=ours(server), ca=CA, port=server.port))
    done = fetch(url.format(port=server.port))
    assert (done.code, done.json["error"]["kind"]) == (1, kind)
    assert words in done.json["error"]["message"]
    assert [visit.request for visit in server.seen()] == seen


def test_an_own_site_without_tls_is_read_where_that_is_configured(
    server: WebServer, configure: Configure, fetch: Fetch
) -> None:
    with WebServer(server.authority, {"docs.example.org/": {"body": {"text": "plain"}}}, plain=True) as plain:
        configure(
            f'allow = ["docs.example.org"]\nports = [80]\nhttp = true\n'
            f'resolve = {{ "docs.example.org:80" = "{plain.address}" }}'
        )
        done = fetch("http://docs.example.org/")
        assert (done.code, done.json["content"]) == (0, "plain")
        assert len(plain.seen()) == 1


def test_a_proxy_of_the_environment_is_not_used(
    server: WebServer, configure: Configure, fetch: Fetch, strongroom: Strongroom
) -> None:
    with WebServer(server.authority) as proxy:
        names = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
        strongroom.environment.update(dict.fromkeys(names, f"http://{proxy.address}"))
        configure(ours(server) + CA)
        assert fetch("https://docs.example.org/").code == 0
        assert (len(server.seen()), proxy.seen()) == (1, [])


def test_a_mistake_is_told_before_anything_starts(configure: Configure, fetch: Fetch) -> None:
    configure('allow = ["https://github.com"]')
    done = fetch("https://github.com/")
    assert done.code == 2
    assert "'https://github.com': a host's name stands alone" in done.err
    assert "Traceback" not in done.err
