"""The place of a soak: a temporary directory with a home, roots and a place for other files, and a web server.

Rule: nothing outside of the directory is written, and nothing but loopback is reached. What is in the roots and the
home afterwards is told by `remains`.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from scripts.soaking.work import ASKED, END, LOG, MADE, MARKER, NOTES, PAGES, SHARED, SHELL_LOG, WORD, folder
from supervisor.config.settings import Settings, load
from workers.tree.drafts import is_draft

PROFILE: Final = "soak"
CODE: Final = Path(__file__).parent.parent.parent
_ROOTS: Final = 3
_CONFIGURATION: Final = """\
profile = "{profile}"
model = "offline"

[limits.files]
call_s = 5
memory_mb = 192
file_mb = 8
[limits.search]
call_s = 10
[limits.web]
call_s = 10
[limits.shell]
call_s = 10
memory_mb = 256
file_mb = 8
processes = 64
[limits.restore]
call_s = 10

[shell]
programs = ["sh", "touch", "ls"]
timeout_s = 5.0
disk_mb = 16

[undo]
total_mb = 64

[web]
allow = ["{host}"]
ports = [80]
http = true
resolve = {{ "{host}:80" = "127.0.0.1:{port}" }}

[[rules]]
decision = "allow"
writes = ["c*/**"]
deletes = ["c*/**"]

[profiles.{profile}]
root = "{root}"
tools = ["read_file", "list_files", "search_files", "fetch_url", "write_file", "edit_file", "exec_shell"]
"""

_KNOWN: Final = frozenset(
    {
        "config.toml",
        "daemon.lock",
        "daemon.sock",
        "kept",
        "logs",
        "replies",
        "sessions.lock",
        "rules.json",
        "narrowings.json",
    }
    | {f"journal.{end}" for end in ("db", "db-wal", "db-shm", "index", "agents", "new", "search", "lock")}
    | {"proof_key.pem", "traces.json"}
    | {f"{name}.{end}" for name in ("proof_key", "traces") for end in ("new", "lock")}
)
"""What there may be in a home."""
_RESCUED: Final = "strongroom-rescued-"
_FAULT: Final = ".strongroom-fault"


class World:
    """One soak's directory; use `world`."""

    def __init__(self, base: Path, port: int, clients: int) -> None:
        self.base = base
        self.home = base / "home"
        self.scripts = base / "scripts"
        self.plans = base / "plans"
        self.temporary = base / "tmp"
        self.roots = [base / f"root{number}" for number in range(min(_ROOTS, clients))]
        for each in (self.home, self.scripts, self.plans, self.temporary, *self.roots):
            each.mkdir(mode=0o700)
        for root in self.roots:
            _fill(root)
        for client in range(clients):
            _fill_folder(self.root(client) / folder(client))
        host = PAGES.removeprefix("http://")
        text = _CONFIGURATION.format(profile=PROFILE, host=host, port=port, root=self.roots[0])
        (self.home / "config.toml").write_text(text)

    @property
    def settings(self) -> Settings:
        """What the daemon reads."""
        return load(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """The daemon's whole environment."""
        return {
            "PATH": os.environ["PATH"],
            "STRONGROOM_HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(CODE),
        }

    def root(self, client: int) -> Path:
        """Return the root that a client works on."""
        return self.roots[client % len(self.roots)]

    def markers(self) -> Counter[str]:
        """Count the markers in all roots, in names and in texts; not in what is kept for a person besides."""
        found: Counter[str] = Counter()
        for path in self._in_roots():
            if any(part.startswith(_RESCUED) for part in path.parts):
                continue
            found.update(MARKER.findall(path.name))
            if path.is_file():
                found.update(MARKER.findall(path.read_text("utf-8", "replace")))
        return found

    def remains(self, may_have: Callable[[str], bool]) -> Iterator[str]:
        """Yield what is left over and should not be; `may_have` says whether a pack may be there."""
        for path in self._in_roots():
            if is_draft(path.name) or path.name == _FAULT or path.name.endswith(".kept"):
                yield f"{path}: a left-over draft"
        kept = self.home / "kept"
        for path in kept.iterdir() if kept.is_dir() else ():
            if path.name == "scratch":
                yield from (f"{each}: left-over scratch" for each in path.iterdir())
            elif not may_have(path.name):
                yield f"{path}: a pack that no call has"
        yield from (f"{path}: unknown" for path in self.home.iterdir() if path.name not in _KNOWN)
        yield from (f"{path}: a left-over temporary file" for path in self.temporary.iterdir())

    def rescued(self) -> int:
        """Count what killed commits had begun to exchange, and is kept for a person."""
        return sum(path.name.startswith(_RESCUED) for root in self.roots for path in root.iterdir())

    def _in_roots(self) -> Iterator[Path]:
        return (path for root in self.roots for path in root.rglob("*"))


@contextmanager
def world(base: Path, clients: int) -> Iterator[World]:
    """Make everything in an empty directory, and serve pages as long as the context is open."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="pages", daemon=True)
    thread.start()
    try:
        yield World(base, server.server_port, clients)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"The page {self.path}.\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # a worker that was killed meanwhile
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def _fill(root: Path) -> None:
    (root / "notes").mkdir()
    for number in range(NOTES):
        (root / "notes" / f"{number}.md").write_text(f"# Note {number}\n\nA {WORD} sings.\n" * 20)
    (root / SHARED).write_text(f"begin{END}")
    (root / ASKED).mkdir()


def _fill_folder(own: Path) -> None:
    (own / MADE).mkdir(parents=True)
    (own / LOG).write_text(f"begin{END}")
    (own / SHELL_LOG).write_text("")
