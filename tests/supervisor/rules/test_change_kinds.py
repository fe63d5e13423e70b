"""Kinds of effect, change by change."""

from typing import Any, Final

from supervisor.rules.change_kinds import kinds_of
from tests.each_row import each_row
from workers.changes.effects import Change, Kind, NodeState, What


def state(kind: Kind = "file", mode: int = 0o644, **more: Any) -> NodeState:
    return NodeState(kind, mode, **more)


def link(target: str, path: str = "d/e/l", **more: Any) -> Change:
    return Change(path, "added", None, state("link", 0o777, target=target), **more)


def change(what: What, before: NodeState | None, after: NodeState | None, **more: Any) -> Change:
    return Change("d/a", what, before, after, **more)


ACL: Final = {"system.posix_acl_access": b"x"}
KINDS: Final = [
    ("a new file", change("added", None, state()), "content"),
    ("a new directory", change("added", None, state("dir", 0o755)), "content"),
    ("other content", change("modified", state(mode=0o755), state(mode=0o755)), "content"),
    ("another time", change("times", state(), state(mtime_ns=1)), ""),
    ("gone", change("deleted", state(), None), "deletion"),
    ("another kind", change("replaced", state("dir", 0o755), state()), "content deletion"),
    ("a link in its place", change("replaced", state(), state("link", 0o777, target="/etc")), "deletion link-outside"),
    ("a pipe in its place", change("replaced", state(), state("fifo")), "deletion special"),
    ("a pipe", change("added", None, state("fifo")), "special"),
    ("a socket", change("added", None, state("socket")), "special"),
    ("a device", change("added", None, state("device")), "special"),
    ("closed", change("mode", state(), state(mode=0o600)), "mode"),
    ("opened", change("mode", state(), state(mode=0o666)), "mode"),
    ("no longer to be run", change("mode", state(mode=0o755), state()), "mode"),
    ("a script", change("added", None, state(mode=0o755), script=True), "content executable"),
    ("a program", change("added", None, state(mode=0o755)), "content program"),
    ("a program by its mode", change("mode", state(), state(mode=0o755)), "program"),
    ("a script by its mode", change("mode", state(), state(mode=0o755), script=True), "executable"),
    ("to be run by others too", change("mode", state(mode=0o744), state(mode=0o745), script=True), "executable"),
    ("to be run and written", change("mode", state(), state(mode=0o777), script=True), "executable mode"),
    ("content and mode", change("modified", state(), state(mode=0o600)), "content mode"),
    ("a new one that all may write", change("added", None, state(mode=0o666)), "content mode"),
    ("set-user-ID", change("added", None, state(mode=0o4755), script=True), "content executable setuid"),
    ("set-user-ID, withheld", change("mode", state(mode=0o755), state(mode=0o755), withheld=0o4000), "setuid"),
    ("set-group-ID of a directory", change("mode", state("dir", 0o755), state("dir", 0o2755)), "mode"),
    ("attributes", change("attributes", state(), state(attributes=ACL)), "attributes"),
    ("attributes that go", change("attributes", state(attributes=ACL), state()), "attributes"),
    ("content and attributes", change("modified", state(), state(attributes=ACL)), "attributes content"),
    ("another name of a file", change("added", None, state(), same_as="b"), "content link"),
    ("beside", link("x"), "link"),
    ("above", link("../../x"), "link"),
    ("the root", link("../.."), "link"),
    ("beneath", link("./x//y/."), "link"),
    ("absolute", link("/etc/passwd"), "link-outside"),
    ("too far above", link("../../../x"), "link-outside"),
    ("above from the root", link("..", "l"), "link-outside"),
    ("by way of another", link("x/../../../y"), "link-outside"),
    ("down and up", link("x/.."), "link-outside"),
    ("where the worker saw it leave", link("x", leaves=True), "link-outside"),
    ("a name that is no text", link("x", raw_path=b"\xff"), "link"),
    ("a target that is no text", Change("l", "added", None, state("link", raw_target=b"../\xff")), "link-outside"),
    ("another target", Change("l", "modified", state("link", target="a"), state("link", target="/")), "link-outside"),
]


@each_row(("found", "kinds"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_a_change_has_every_kind_that_it_is(found: Change, kinds: str) -> None:
    assert " ".join(sorted(kinds_of(found))) == kinds
