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
def configure(strongroom: Strongroom, server: WebServer) -> Callable[[str], None]:
    """Write config.toml, beside the certificate of the server's authority."""

    def write(web: str) -> None:
        strongroom.home.mkdir(exist_ok=True)
        (strongroom.home / "config.toml").write_text(CONFIG + web)
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


def test_a_page_of_an_own_site_is_read(server: WebServer, configure: Callable[[str], None], fetch: Fetch) -> None:
    server.play({"docs.example.org/a?b=c": {"body": {"text": "hello"}}})
    configure(ours(server) + 'ca_file = "ca.pem"')
    done = fetch("https://docs.example.org/a?b=c")
    assert (done.code, done.json["content"]) == (0, "hello")
    (visit,) = server.seen()
    assert (visit.server_name, visit.target, visit.lines[0][:4]) == ("docs.example.org", "/a?b=c", "GET ")


def test_a_certificate_that_nobody_signed_for_us_is_refused(
    server: WebServer, configure: Callable[[str], None], fetch: Fetch
) -> None:
    configure(ours(server))
    done = fetch("https://docs.example.org/")
    assert (done.code, done.json["error"]["kind"]) == (1, "fetch_failed")
    assert [visit.request for visit in server.seen()] == [b""]


def test_another_site_is_refused_by_name(server: WebServer, configure: Callable[[str], None], fetch: Fetch) -> None:
    configure(ours(server) + 'ca_file = "ca.pem"')
    done = fetch("https://github.com/")
    assert (done.code, done.json["error"]["kind"]) == (1, "domain_not_allowed")
    assert "Domain not allowed: github.com. Allowed: docs.example.org." in done.json["error"]["message"]
    assert server.seen() == []


def test_a_name_that_leads_to_this_machine_is_refused(
    server: WebServer, configure: Callable[[str], None], fetch: Fetch
) -> None:
    configure(f'allow = ["localhost"]\nports = [{server.port}]\nca_file = "ca.pem"')
    done = fetch(f"https://localhost:{server.port}/")
    assert (done.code, done.json["error"]["kind"]) == (1, "address_not_allowed")
    assert "loopback" in done.json["error"]["message"]
    assert server.seen() == []


def test_an_own_site_without_tls_is_read_where_that_is_configured(
    server: WebServer, configure: Callable[[str], None], fetch: Fetch
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
    server: WebServer, configure: Callable[[str], None], fetch: Fetch, strongroom: Strongroom
) -> None:
    with WebServer(server.authority) as proxy:
        names = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
        strongroom.environment.update(dict.fromkeys(names, f"http://{proxy.address}"))
        configure(ours(server) + 'ca_file = "ca.pem"')
        assert fetch("https://docs.example.org/").code == 0
        assert (len(server.seen()), proxy.seen()) == (1, [])


def test_a_mistake_is_told_before_anything_starts(configure: Callable[[str], None], fetch: Fetch) -> None:
    configure('allow = ["https://github.com"]')
    done = fetch("https://github.com/")
    assert done.code == 2
    assert "'https://github.com': a host's name stands alone" in done.err
    assert "Traceback" not in done.err
