"""A registry of packages on loopback: of pip, npm, cargo, Go, Bundler and Composer.

Rule: what it serves is made here, byte by byte, and `fault` says how it answers instead.
"""

import base64
import gzip
import hashlib
import io
import json
import socket
import tarfile
import zipfile
from typing import Any, Final, Literal

from tests.authority import TLS_FAULTS, Authority
from tests.loopback import Loopback

Fault = Literal[
    "", "500", "403", "404", "cut", "silent", "mute", "html", "digest", "redirect", "endless",
    "wrong_name", "self_signed", "expired",
]  # fmt: skip
"""How it answers: the last ones are rows of `TLS_FAULTS`; "mute" says nothing before TLS."""

HOST: Final = "registry.test"
"""What its certificate is for."""
NAMES: Final = ("tiny", "small", "little", "early", "late")
"""Of the packages that it has."""
_TEXT: Final = "print('tiny')\n"
_JSON: Final = "application/json"


def wheel(name: str = "tiny", version: str = "1.0", text: str = _TEXT) -> bytes:
    """Return a wheel (PEP 427) of one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": text,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
    return made.getvalue()


def tarball(manifest: dict[str, Any], text: str = "module.exports = 'tiny';\n") -> bytes:
    """Return a package of npm's."""
    files = {"package.json": json.dumps(manifest).encode(), "index.js": text.encode()}
    return gzip.compress(_tar({f"package/{path}": content for path, content in files.items()}), mtime=0)


def crate(name: str) -> bytes:
    """Return a package of cargo's."""
    manifest = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2018"\n'
    files = {"Cargo.toml": manifest, "src/lib.rs": "pub fn one() -> u8 {\n    1\n}\n"}
    return gzip.compress(_tar({f"{name}-1.0.0/{path}": text.encode() for path, text in files.items()}), mtime=0)


def gem(name: str) -> bytes:
    """Return a package of RubyGems."""
    said: dict[str, Any] = {
        "name": name,
        "platform": "ruby",
        "authors": ["a"],
        "files": [f"lib/{name}.rb"],
        "require_paths": ["lib"],
    }
    said["specification_version"] = 4
    lines = [f"{key}: {json.dumps(value)}\n" for key, value in {**said, "summary": name}.items()]
    metadata = "--- !ruby/object:Gem::Specification\n" + "".join(lines)
    metadata += 'version: !ruby/object:Gem::Version\n  version: "1.0.0"\n'
    parts = {"metadata.gz": metadata.encode(), "data.tar.gz": _tar({f"lib/{name}.rb": b"def one = 1\n"})}
    return _tar({path: gzip.compress(content, mtime=0) for path, content in parts.items()})


def _tar(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def composer_package(name: str) -> bytes:
    """Return an archive of Composer's."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(zipfile.ZipInfo("x/composer.json"), json.dumps({"name": f"acme/{name}"}))
        archive.writestr(zipfile.ZipInfo("x/one.php"), "<?php function one() { return 1; }\n")
    return made.getvalue()


def go_module(name: str, text: str = "func One() int { return 1 }") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in {"go.mod": _go_mod(name), "one.go": f"package {name}\n\n{text}\n"}.items():
            archive.writestr(zipfile.ZipInfo(f"example.org/{name}@v1.0.0/{path}"), content)
    return made.getvalue()


def go_sums(name: str) -> str:
    """Return what go.sum says of such a module (golang.org/x/mod/sumdb/dirhash, "Hash1")."""
    with zipfile.ZipFile(io.BytesIO(go_module(name))) as archive:
        whole = {path: archive.read(path) for path in archive.namelist()}
    said = []
    for where, files in (("", whole), ("/go.mod", {"go.mod": _go_mod(name).encode()})):
        listed = "".join(f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files))
        digest = base64.b64encode(hashlib.sha256(listed.encode()).digest()).decode()
        said.append(f"example.org/{name} v1.0.0{where} h1:{digest}\n")
    return "".join(said)


def _go_mod(name: str) -> str:
    return f"module example.org/{name}\n\ngo 1.19\n"


class RegistryServer(Loopback):
    """Serves, over TLS who asks for that; `asked` are the paths that were."""

    def __init__(self, authority: Authority | None = None) -> None:
        super().__init__()
        self._authority = authority
        self.asked: list[str] = []
        self.fault: Fault = ""
        self.scripts: dict[str, str] = {}
        """Of npm's package."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def taken(self, peer: str) -> Any:
        """Hear of a connection."""

    def serve(self, connection: socket.socket, _what: Any) -> None:
        """Answer one request."""
        if self.fault == "mute":
            self._closing.wait()
        elif self._authority is not None and connection.recv(1, socket.MSG_PEEK) == b"\x16":
            context = self._authority.context(HOST, self.fault if self.fault in TLS_FAULTS else "")
            with context.wrap_socket(connection, server_side=True) as secured:
                self._serve(secured)
        else:
            self._serve(connection)

    def _serve(self, connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:  # an audit has a body, which nobody reads
            if not (more := connection.recv(2**14)):
                return
            head += more
        path = head.split()[1].decode()
        self.asked.append(path)
        status, kind, body = self._answer(path)
        if self.fault == "silent":
            self._closing.wait()
            return
        if self.fault.isdigit():
            status, body = int(self.fault), b"no"
        if self.fault == "html":
            kind, body = "text/html", b"<html><form action=/login>Sign in</form></html>"
        if self.fault == "digest" and body[:2] in (b"PK", b"\x1f\x8b"):
            body = body[:-1] + b"x"
        if self.fault == "redirect":
            status, body = 302, b""
        kept = len(body) // 2 if self.fault == "cut" else len(body)
        fields = [
            f"content-type: {kind}",
            f"content-length: {len(body)}",
            f'etag: "{hashlib.md5(body, usedforsecurity=False).hexdigest()}"',  # as the compact index has it
            "location: https://elsewhere.invalid/" if self.fault == "redirect" else "server: test",
        ]
        if self.fault == "endless":
            connection.sendall(f"HTTP/1.1 200 X\r\ncontent-type: {kind}\r\n\r\n".encode())
            while True:
                connection.sendall(b" " * 2**16)
        lines = (f"HTTP/1.1 {status} X", *fields, "connection: close", "", "")
        connection.sendall("\r\n".join(lines).encode() + body[:kept])

    def _answer(self, path: str) -> tuple[int, str, bytes]:
        name = next((each for each in NAMES if each in path), NAMES[0])
        manifest = {"name": name, "version": "1.0.0", "main": "index.js", "scripts": self.scripts}
        package, file = tarball(manifest), f"{name}-1.0-py3-none-any.whl"
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(package).digest()).decode()}"
        dist = {"tarball": f"{self.url}/{name}/-/{name}-1.0.0.tgz", "integrity": integrity}
        version = {**manifest, "dist": dist, "hasInstallScript": bool(self.scripts)}
        document: dict[str, Any] = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        document["time"] = {"1.0.0": "2020-01-01T00:00:00.000Z"}
        entry = {"name": name, "vers": "1.0.0", "deps": [], "features": {}, "yanked": False}
        entry["cksum"] = hashlib.sha256(crate(name)).hexdigest()
        of_gem = {each: f"---\n1.0.0 |checksum:{hashlib.sha256(gem(each)).hexdigest()}\n".encode() for each in NAMES}
        digests = {each: hashlib.md5(info, usedforsecurity=False).hexdigest() for each, info in of_gem.items()}
        gems = "created_at: 2024-01-01T00:00:00Z\n---\n" + "".join(f"{n} 1.0.0 {d}\n" for n, d in digests.items())
        sha = hashlib.sha1(composer_package(name), usedforsecurity=False).hexdigest()
        package_of: dict[str, Any] = {
            "name": f"acme/{name}",
            "version": "1.0.0",
            "version_normalized": "1.0.0.0",
            "type": "library",
        }
        package_of["dist"] = {"type": "zip", "url": f"{self.url}/php/dl/{name}.zip", "shasum": sha}
        module = f"/go/example.org/{name}/@v"
        info = json.dumps({"Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z"}).encode()
        page = f'<!DOCTYPE html><a href="/files/{file}#sha256={hashlib.sha256(wheel(name)).hexdigest()}">{file}</a>'
        found = {
            "/crates/config.json": (_JSON, json.dumps({"dl": f"{self.url}/crates/dl"}).encode()),
            f"/crates/{name[:2]}/{name[2:4]}/{name}": ("text/plain", json.dumps(entry).encode()),
            f"/crates/dl/{name}/1.0.0/download": ("application/gzip", crate(name)),
            f"{module}/list": ("text/plain", b"v1.0.0\n"),
            f"{module}/v1.0.0.info": (_JSON, info),
            f"{module}/v1.0.0.mod": ("text/plain", _go_mod(name).encode()),
            f"{module}/v1.0.0.zip": ("application/zip", go_module(name)),
            "/gems/versions": ("text/plain", gems.encode()),
            f"/gems/info/{name}": ("text/plain", of_gem[name]),
            f"/gems/gems/{name}-1.0.0.gem": ("application/octet-stream", gem(name)),
            "/php/packages.json": (
                _JSON,
                json.dumps({"packages": [], "metadata-url": "/php/p2/%package%.json"}).encode(),
            ),
            f"/php/p2/acme/{name}.json": (_JSON, json.dumps({"packages": {f"acme/{name}": [package_of]}}).encode()),
            f"/php/dl/{name}.zip": ("application/zip", composer_package(name)),
            f"/simple/{name}/": ("text/html", page.encode()),
            f"/files/{file}": ("application/zip", wheel(name)),
            f"/{name}": (_JSON, json.dumps(document).encode()),
            f"/{name}/-/{name}-1.0.0.tgz": ("application/octet-stream", package),
        }.get(path)
        return (200, *found) if found else (404, "text/plain", b"no")
