"""Effects in short, for tests of who judges and shows them."""

import datetime as dt
from collections import Counter
from typing import Any, Final

from workers.changes.effects import Attempt, Change, Effects, Kind, NodeState, What

TODAY: Final = dt.date(2026, 11, 21)
FILE: Final = NodeState("file", 0o644)
NETWORK: Final = (Attempt("network", "tcp 192.0.2.1:443"),)


def change(text: str, **more: Any) -> Change:
    """Return a change written as "+ path" (added), "~" (modified), "-" (deleted), "=" (replaced), "x" (mode).

    A path with a slash at its end is a directory.
    """
    sign, path = text.split(" ", 1)
    kind: Kind = "dir" if path.endswith("/") else "file"
    state = FILE if kind == "file" else NodeState(kind, 0o755)
    what: What = {"+": "added", "~": "modified", "-": "deleted", "=": "replaced", "x": "mode"}[sign]  # type: ignore[assignment]
    before, after = (None if what == "added" else state), (None if what == "deleted" else state)
    if what == "mode":
        after = NodeState(kind, 0o700 if kind == "dir" else 0o600)
    raw = path.encode("utf-8", "surrogateescape")
    shown = raw.decode("utf-8", "backslashreplace")
    raw_path = raw.removesuffix(b"/") if shown != path else b""
    return Change(shown.removesuffix("/"), what, before, after, raw_path, **more)


def effects(*changes: str | Change, **more: Any) -> Effects:
    found = [each if isinstance(each, Change) else change(each) for each in changes]
    totals: Counter[What] = Counter(each.what for each in found)
    totals.update(more.get("left_out", {}))
    return Effects(tuple(sorted(found, key=lambda each: each.path)), dict(totals), b"", **more)
