"""The preparation of the web worker: complete before lock-down, with nothing left for later."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.authority import Authority
from tests.hostile_worker import hostile_command
from tests.raw_worker import open_worker
from tests.workers.web.conftest import FETCH_S, LEFT_S, OpenWeb
from workers.web.charset import CODECS
from workers.web.prepare import tls_context
from workers.web.web_inputs import WebInputs
from workers.wire import messages


def started(root: Path, ca_file: Path | None = None) -> messages.Up | None:
    """Return what a worker says that is given a broker, and a file of authorities."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    given = WebInputs(ca_file=str(ca_file or ""))
    with ours, theirs, open_worker(root, category="web", inputs=given, broker_fd=theirs.fileno()) as worker:
        return worker.ready


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "holds no certificate"),
        ("not a certificate", "holds no certificate"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "holds no certificate"),
    ],
)
def test_a_ca_file_that_cannot_be_used_is_refused_by_name(content: str | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "authorities.pem").write_text(content)
    ready = started(tmp_path, tmp_path / "authorities.pem")
    assert isinstance(ready, messages.Refused)
    assert "authorities.pem" in ready.message
    assert says in ready.message


def test_without_a_broker_the_worker_refuses(tmp_path: Path) -> None:
    with open_worker(tmp_path, category="web") as worker:
        assert "no broker" in worker.refusal.message


def test_without_a_ca_file_the_well_known_authorities_are_trusted(tmp_path: Path) -> None:
    assert isinstance(started(tmp_path), messages.Ready)


def test_a_ca_file_is_trusted_besides_the_well_known_authorities(ca_file: Path) -> None:
    known, more = tls_context("").get_ca_certs(), tls_context(str(ca_file)).get_ca_certs()
    assert len(known) > 100
    assert len(more) == len(known) + 1


def test_a_certificate_that_is_no_authoritys_can_be_trusted_too(tmp_path: Path, authority: Authority) -> None:
    """As with curl's --cacert."""
    issued = authority._ca.issue_cert("github.com")
    (tmp_path / "one.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    assert tls_context(str(tmp_path / "one.pem")).cert_store_stats()["x509"] > 100


def test_the_context_asks_for_everything() -> None:
    context = tls_context("")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert not context.hostname_checks_common_name


def html(text: str, **more: Any) -> dict[str, Any]:
    return {"headers": {"content-type": "text/html"}, "body": {"text": text}, **more}


def work(open_web: OpenWeb, *removed: str) -> tuple[str, str]:
    """Return the modules of a worker before and after it has fetched all sorts of pages."""
    web = open_web(command=hostile_command(*removed, category="web"), http=True)
    server, broker = web.server, web.broker
    rich = "<html><title>T</title><a href='/x'>x</a><pre><code class='language-c'>y</code></pre><ol start=2><li>z</ol>"
    pages: dict[str, Any] = {
        "html": html(rich),
        "table": html("<table><tr><td>a</table><img alt=b>"),
        "deep": html("<div>" * 5000),
        "odd": html("<soup>&amp;&#x41;<![CDATA[x]]><?y?>"),
        "gzip": {"body": {"gzip_text": "hello"}},
        "bomb": {"body": {"gzip_zeros": 2**26}},
        "broken": {"headers": {"content-encoding": "deflate"}, "body": {"text": "x"}},
        "garbage": {"body": {"garbage": True}},
        "reset": {"body": {"reset_after": 10}},
        "stall": {"body": {"stall_after": 10}},
        "short": {"body": {"short": {"declared": 9, "sent": 1}}},
        "binary": {"headers": {"content-type": "image/png"}, "body": {"text": "x"}},
        "latin": {"headers": {"x-caf\u00e9": "caf\u00e9"}, "body": {"text": "x"}},
        "error": html("<p>x", status=500),
        "cookie": {"headers": {"set-cookie": "a=b; expires=Wed, 21 Oct 2037 07:28:00 GMT"}},
        "redirect": {"status": 302, "headers": {"location": "/html"}},
        "away": {"status": 302, "headers": {"location": "https://user@caf\u00e9/"}},
        **{
            f"charset-{name}": {
                "headers": {"content-type": f"text/html; charset={name}"},
                "body": {"b64": "YRskQjAh4oLs"},
            }
            for name in (*sorted(set(CODECS.values())), "bogus-8", "unicode_escape", "zlib", "rot13", "punycode")
        },
    }
    server.play({f"github.com/{name}": page for name, page in pages.items()})
    broker.refuse["refused.example"] = messages.Declined("domain_not_allowed", "no")

    def modules() -> str:
        return web.worker.attack("result = sorted(sys.modules)")

    before = modules()
    for name in pages:
        web.fetch(f"https://github.com/{name}", left_s=LEFT_S if name in ("stall", "deep") else FETCH_S)
    for url in ("https://refused.example/", "http://github.com/", "nonsense", "https://\u0131/", "https://xn--p1ai/"):
        web.fetch(url)
    for fault in ("wrong_name", "expired", "tls10_only", "hang_in_handshake"):
        server.play({}, fault=fault)
        web.fetch("https://github.com/", left_s=LEFT_S)
    server.play({})
    web.worker.call("fetch_url", b"[")
    web.worker.probe()
    assert web.text("https://github.com/x") == "OK"
    return before, modules()


@pytest.mark.parametrize("removed", [(), ("landlock", "seccomp")], ids=["confined", "free to import"])
def test_nothing_is_imported_in_a_days_work(removed: tuple[str, ...], open_web: OpenWeb) -> None:
    before, after = work(open_web, *removed)
    assert after == before
