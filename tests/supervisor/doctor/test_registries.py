"""What doctor says of registries: each mirror has an answer, in time, whatever it does."""

import socket
from pathlib import Path
from typing import Final

import pytest

from supervisor.config.settings import load
from supervisor.doctor import registries
from supervisor.doctor.registries import RegistryChecks
from supervisor.doctor.table import CheckResult
from tests.authority import Authority
from tests.registry_server import Fault, RegistryServer

CONFIG: Final = """
[web]
resolve = {{ "registry.test:443" = "127.0.0.1:{port}" }}
ca_file = "{authority}"
[registries]
{key} = "{url}"
"""
ROWS: Final[dict[str, tuple[str, Fault, str, str]]] = {
    "with TLS": ("https://registry.test/simple", "", "ok", "https://registry.test/simple answers (404, over TLS"),
    "without TLS": ("http://127.0.0.1:{port}", "", "ok", "answers (404, without TLS) in"),
    "a login": ("http://127.0.0.1:{port}", "403", "degraded", "wants a name and a password (status 403)"),
    "an error": ("http://127.0.0.1:{port}", "500", "degraded", "answers 500"),
    "another name": ("https://registry.test", "wrong_name", "degraded", "is not accepted: Hostname mismatch"),
    "another authority": ("https://registry.test", "self_signed", "degraded", "is not accepted: self-signed"),
    "no TLS there": ("https://127.0.0.1:{port}", "mute", "degraded", "did not answer within 0.5 s"),
    "silence": ("http://127.0.0.1:{port}", "silent", "degraded", "did not answer within 0.5 s"),
    "nobody there": ("http://127.0.0.1:{closed}", "", "degraded", "cannot be reached: Connection refused"),
}


@pytest.mark.parametrize("row", ROWS)
def test_each_mirror_has_a_row_that_says_how_it_is(row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, fault, verdict, detail = ROWS[row]
    if fault in ("silent", "mute"):
        monkeypatch.setattr(registries, "_TIME_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = listener.getsockname()[1]
    authority = Authority()
    with RegistryServer(authority) as server:
        server.fault = fault
        found = check(tmp_path, authority, "pip", url.format(port=server.port, closed=closed), server.port)
    mirror, others = found
    assert (mirror.subject, mirror.verdict) == ("registry pypi", verdict)
    assert detail in mirror.detail
    assert f"([registries] of {tmp_path}/config.toml)" in mirror.detail
    assert bool(mirror.advice) == (verdict != "ok")
    assert (others.subject, others.verdict) == ("registries", "ok")
    assert others.detail.startswith("npm, crates, go, rubygems, packagist, deb: ")


def check(home: Path, authority: Authority, key: str, url: str, port: int) -> list[CheckResult]:
    file = authority.write(home / "authority.pem")
    (home / "config.toml").write_text(CONFIG.format(key=key, url=url, port=port, authority=file))
    return list(RegistryChecks(load({"STRONGROOM_HOME": str(home)})).results())
